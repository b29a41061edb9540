"""`tilesmith generate`: the C sources and manifest entries, written."""

import argparse
import json
from pathlib import Path

from ..cache import cache_folder
from ..pipeline import generate
from ..poly.cache import prover
from ..progress import progress
from ..trial import run as trial
from . import build
from .arguments import Commands, files, many_files, shipped


def add(commands: Commands) -> None:
    command = commands.add_parser("generate", help="write the C sources and manifest entries")
    many_files(command)
    command.add_argument("-o", "--output", type=Path, required=True, help="folder to write into")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    options.output.mkdir(parents=True, exist_ok=True)
    paths = list(files(options.files))
    written: list[Path] = []
    with progress(len(paths)) as shown:
        for path in paths:
            shown.part(path.stem)
            prove = trial.counting(prover(cache_folder() / "proofs"), shown)
            spec = options.targets.load(path)
            made = generate(spec, shipped(options, spec), prove)
            texts = {
                **made.c_files,
                f"{path.stem}.json": json.dumps(made.manifest, indent=1) + "\n",
            }
            for name, text in texts.items():
                build.write_if_changed(options.output / name, text)
                written.append(options.output / name)
    for path in written:
        print(path)
    return 0
