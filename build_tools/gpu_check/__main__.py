"""`python -m build_tools.gpu_check prepare OUT`, and `run` in what that made."""

import argparse
import datetime
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from . import cases, jobs, parts, report, sanitizer
from .budget import Budget
from .rows import row_of, write


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m build_tools.gpu_check", description=__doc__)
    commands = made.add_subparsers(dest="command", required=True)
    prepare = commands.add_parser("prepare", help="make the folder that is carried along")
    prepare.add_argument("out", type=Path)
    prepare.add_argument("--python", default="cp312", help="cp312, or a path: of the GPU's machine")
    there = "wheels, or folders with packages, that there are: none is built"
    prepare.add_argument("--wheel", type=Path, action="append", default=[], help=there)
    prepare.add_argument("--specs", type=Path, help="a folder of specs, by default kernels_spec")
    prepare.add_argument("--kernels", help="with commas between, by default all with CUDA code")
    run = commands.add_parser("run", help="on a machine with a GPU, in that folder")
    run.add_argument("--seconds", type=float, default=480.0, help="that all may take")
    run.add_argument("--to", type=Path, default=Path("results"), help="a folder for the tables")
    run.add_argument("--kernels", help="with commas between, by default all")
    run.add_argument("--only", help="stages, with commas between, by default all")
    page = commands.add_parser("page", help="a page of documentation from the JSON of a run")
    page.add_argument("json", type=Path)
    page.add_argument("to", type=Path)
    job = commands.add_parser("job")
    job.add_argument("part", choices=[*parts.PARTS])
    job.add_argument("subjects", nargs="*")
    job.add_argument("--seconds", type=float, required=True)
    job.add_argument("--rows", type=Path, required=True)
    job.add_argument("--tool", default="")
    smaller = "divides the edges of large arrays, for GPUs of little memory"
    for command in (run, job):
        command.add_argument("--folder", type=Path, default=Path(), help="what was carried")
        command.add_argument(
            "--scale", type=int, default=1, choices=range(1, 65), metavar="N", help=smaller
        )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    match options.command:
        case "prepare":
            return prepared(options)
        case "run":
            return run(options)
        case "page":
            told = json.loads(options.json.read_text("utf-8"))
            found = [row_of(one) for one in told["rows"]]
            options.to.write_text(report.page(found, told["date"]), "utf-8")
            return 0
        case _:
            work = parts.Work(options.folder, options.subjects, options.tool,
                              Budget.of(options.seconds), options.scale)  # fmt: skip
            for row in parts.run(options.part, work):
                write(options.rows, row)
            return 0


def prepared(options: argparse.Namespace) -> int:
    """Makes the folder. Exit status 1 where it cannot be made, and why."""
    from gen.errors import TilesmithError  # the generator is here, and not where `run` is called

    from .prepare import prepare

    names = options.kernels.split(",") if options.kernels else None
    try:
        for line in prepare(options.out, options.python, options.wheel, options.specs, names):
            print(line, flush=True)
    except TilesmithError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run(options: argparse.Namespace) -> int:
    """All stages; the tables are written anew after each. Exit status 1 where one is not good."""
    budget = Budget.of(options.seconds)
    folder, date = options.folder.resolve(), f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    if not (folder / "packages").is_dir():
        print(f"{folder} has no packages: gpu_check prepare OUT makes a folder, in which this runs",
              file=sys.stderr)  # fmt: skip
        return 1
    wanted = options.kernels.split(",") if options.kernels else cases.kernels(folder / "cases")
    stages = parts.stages(wanted, sanitizer.found())
    if options.only:
        stages = [stage for stage in stages if stage.name in options.only.split(",")]
    options.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as site:
        unpacked = unpack(folder / "packages", Path(site))
        more = ("--folder", str(folder), "--scale", str(options.scale))
        runner = partial(jobs.in_a_process, environment=environment(unpacked), more=more)
        rows = []
        for rows in jobs.run(stages, budget, runner):
            (options.to / "gpu_check.json").write_text(report.as_json(rows, date), "utf-8")
            (options.to / "gpu_check.md").write_text(report.as_markdown(rows, date), "utf-8")
    print(report.as_markdown(rows, date))
    return 0 if report.good(rows) else 1


def unpack(packages: Path, site: Path) -> list[Path]:
    """What goes on sys.path: a folder with all wheels in it, and the folders that were carried."""
    for wheel in sorted(packages.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    return [site, *sorted(path for path in packages.iterdir() if path.is_dir())]


def environment(paths: Sequence[Path]) -> dict[str, str]:
    own = Path(__file__).resolve().parents[2]
    before = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    joined = os.pathsep.join([*map(str, paths), str(own), *before])
    return {**os.environ, "PYTHONPATH": joined, "PYTHONSAFEPATH": "1"}


if __name__ == "__main__":
    sys.exit(main())
