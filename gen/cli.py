"""`tilesmith`: the author's loop on the command line.

stdout is the result, stderr the errors and progress. Exit codes: 0 right; 1 an error in a spec, a
recipe or a result; 2 a wrong command line.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import dedent

from . import __version__, project
from . import language as specs
from .commands import build
from .display import page
from .display import text as show
from .errors import TilesmithError, told
from .pipeline import generate, prover, suffix
from .progress import able, progress
from .reference import primitives as reference
from .reference import schema
from .targets.cpu import jit
from .targets.cpu.levels import Level
from .trial import check, timing
from .trial import run as trial
from .trial.proofs import counted, proofs, summary

LEVELS = tuple(level.value for level in Level)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["build"]:
        return build.main(given[1:])
    options = _parser().parse_args(given)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except BrokenPipeError:
        return 0
    except (TilesmithError, OSError) as error:
        print(told(error), file=sys.stderr)
        return 1


# ---------------------------------------------------------------- commands


def _init(options: argparse.Namespace) -> int:
    print(*project.create(options.name, options.output or Path(options.name)), sep="\n")
    return 0


def _check(options: argparse.Namespace) -> int:
    """Every spec and recipe read and every step tried, without a compiler; all errors, not one."""
    failed = tried = 0
    for path in _files(options.files):
        error = check.error(path, options.levels)
        tried += error is None
        if error is not None:
            failed += 1
            print(error)
    if tried:
        print(counted(tried, "spec"), "without errors (not proved: tilesmith prove does that)")
    return 1 if failed else 0


def _show(options: argparse.Namespace) -> int:
    spec = specs.load(options.file)
    wanted = spec, _dtypes(spec, options.dtype), Level(options.level)
    if options.html:
        with progress(2) as shown:
            text = page.page(*wanted, options.variant, shown)
        options.html.write_text(text, encoding="utf-8")
        text = f"{options.html}\n"
    else:
        with progress(1) as shown:
            text = show.text(*wanted, _view(options), shown)
    print(text, end="", flush=True)
    if not (options.html or options.steps or options.whole):
        print("not proved: tilesmith prove does that", file=sys.stderr)
    return 0


def _view(options: argparse.Namespace) -> show.View:
    variant = options.variant or "0"
    if options.steps or options.whole:
        return show.Steps(variant, options.whole, able(sys.stdout))
    if options.step is not None:
        return show.AfterStep(variant, options.step)
    return show.Stage(options.stage, variant)


def _prove(options: argparse.Namespace) -> int:
    levels = [Level(level) for level in options.levels]
    loaded, failed = [], False
    for path in _files(options.files):
        try:
            loaded.append(specs.load(path))
        except (TilesmithError, OSError) as error:
            failed = True
            print(told(error), file=sys.stderr)
    with progress(len(levels) * sum(len(specs.choices(spec)) for spec in loaded)) as shown:
        results = [result for spec in loaded for result in proofs(spec, levels, shown)]
    as_json = json.dumps([r.as_json() for r in results], indent=2)
    for line in [as_json] if options.json else [*results, *summary(results)]:
        print(line)
    return 1 if failed or any(r.refused for r in results) else 0


def _run(options: argparse.Namespace) -> int:
    sizes = dict(_size(text) for text in options.size)
    spec = specs.load(options.file)
    level = Level(options.level) if options.level else jit.native_level()
    with progress(2) as shown:
        report = trial.run(spec, _dtypes(spec, options.dtype), level, sizes, options.seed, shown)
    print(report)
    return 0 if report.right else 1


def _bench(options: argparse.Namespace) -> int:
    spec = specs.load(options.file)
    sizes = [dict(map(_size, text.split(","))) for text in options.sizes]
    sizes = sizes or timing.usual_sizes(spec)
    levels = [Level(name) for name in options.levels or [jit.native_level().value]]
    dtypes = _dtypes(spec, options.dtype)
    with progress(len(levels) + len(sizes)) as shown:
        report = timing.bench(spec, dtypes, levels, options.threads, sizes, options.rounds, shown)
    print(json.dumps(report.as_json(), indent=2) if options.json else report)
    return 0


def _generate(options: argparse.Namespace) -> int:
    options.output.mkdir(parents=True, exist_ok=True)
    paths = list(_files(options.files))
    written: list[Path] = []
    with progress(len(paths)) as shown:
        for path in paths:
            shown.part(path.stem)
            prove = trial.counting(prover(jit.cache_folder() / "proofs"), shown)
            made = generate(path, options.levels, prove)
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


def _schema(options: argparse.Namespace) -> int:
    print(schema.text(), end="")
    return 0


def _primitives(options: argparse.Namespace) -> int:
    if options.json:
        print(reference.as_json())
    else:
        print(reference.step(options.name) if options.name else reference.names())
    return 0


# ---------------------------------------------------------------- arguments


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files named, and the specs of the folders named."""
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob("*.yaml"))
        else:
            yield path


def _size(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not equals or not value.removeprefix("-").isdecimal():
        raise TilesmithError(f"a size is DIM=NUMBER, not {text!r}")
    if value.startswith("-"):
        raise TilesmithError(f"a size is at least 0, not {value}, as in {text!r}")
    return name, int(value)


def _dtypes(spec: specs.KernelSpec, wanted: str | None) -> specs.Dtypes:
    """The choice of dtypes named, as in symbols; the first without a name."""
    choices = {suffix(c): c for c in specs.choices(spec)}
    if wanted is None:
        return next(iter(choices.values()))
    if wanted not in choices:
        raise TilesmithError(f"{spec.name} has no dtype {wanted!r}: it has {', '.join(choices)}")
    return choices[wanted]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilesmith",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Kernels written as algebra in YAML, scheduled by recipes, proved, compiled.",
        epilog=dedent(
            """\
            a first session: a project of your own, and its first kernel
              tilesmith init my-kernels                  a package that builds, with tests and CI
              cd my-kernels/kernels_spec
              tilesmith check normalize.yaml             read it and try every step of its recipes
              tilesmith show normalize.yaml              the loops that the recipe makes of it
              tilesmith show normalize.yaml --steps      what each step changed
              tilesmith show normalize.yaml --html normalize.html
                                                         the same beside the C and its assembly
              tilesmith prove normalize.yaml             each step proved for all sizes, or refused
              tilesmith run normalize.yaml --size m=64 --size n=1000
                                                         compiled, compared with the oracle
              tilesmith bench normalize.yaml             timed beside the oracle
              tilesmith generate normalize.yaml -o out/  the C sources

            `tilesmith COMMAND --help` tells the rest; `tilesmith build` is for meson.build
            files. Progress is shown on a terminal alone."""
        ),
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument(
        "--includedir",
        action="version",
        version=str(build.RUNTIME),
        help="print the folder of the runtime's headers and exit",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_init(commands)
    _add_check(commands)
    _add_show(commands)
    _add_prove(commands)
    _add_run(commands)
    _add_bench(commands)
    _add_generate(commands)
    command = commands.add_parser(
        "primitives", help="list the steps that a recipe can take, or explain one"
    )
    alone = command.add_mutually_exclusive_group()
    explain = "explain this step: its documentation, arguments and an example"
    alone.add_argument("name", nargs="?", metavar="NAME", help=explain)
    alone.add_argument("--json", action="store_true", help="as JSON, with their arguments")
    command.set_defaults(run=_primitives)
    command = commands.add_parser(
        "schema",
        help="print the JSON Schema of specs, for editors",
        description="Editors complete and check a spec that says in its first line where a copy "
        "is: # yaml-language-server: $schema=tilesmith.schema.json",
    )
    command.set_defaults(run=_schema)
    return parser


_Commands = argparse._SubParsersAction  # argparse has no public name for it


def _add_init(commands: "_Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "init",
        help="begin a project of kernels: specs, build files, tests, CI",
        description="Writes a folder whose kernels build into a wheel that needs NumPy alone, "
        "and prints the files. Nothing that exists is changed.",
    )
    command.add_argument("name", help="of the project, such as my-kernels; imported as my_kernels")
    command.add_argument("-o", "--output", type=Path, help="the new folder (default: the name)")
    command.set_defaults(run=_init)


def _add_check(commands: "_Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "check",
        help="read specs and recipes, and try every step",
        description="Prints errors as path:line:column: error: ..., with the line and a hint; "
        "exit code 1 if there is one. Steps are tried but not proved: see `prove`.",
    )
    _many_files(command)
    command.set_defaults(run=_check)


def _add_show(commands: "_Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "show",
        help="print the IR at a stage, what each step changed, or the C code; or make a page of it",
        description="Prints a variant of a kernel for one dtype and level.",
    )
    command.add_argument("file", type=Path, help="a spec")
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--stage",
        choices=show.STAGES,
        default="scheduled",
        help="plain: the spec's order; scheduled: after the recipe (the default); lowered: with "
        "bounds, tails and storage; c: the generated source",
    )
    what.add_argument("--step", type=int, metavar="N", help="the IR after this many steps")
    steps = "prove each step, and print what it changed: + new, - gone, > and < at another depth"
    what.add_argument("--steps", action="store_true", help=steps)
    what.add_argument("--whole", action="store_true", help="as --steps, with each tree whole")
    html = "write a page of the recipe, the IR after each step, the C and its assembly"
    what.add_argument("--html", type=Path, metavar="FILE", help=html)
    variant = "a variant of the recipe (default: 0; with --html, all of them)"
    command.add_argument("--variant", metavar="NAME", help=variant)
    _dtype(command)
    command.add_argument("--level", choices=LEVELS, default="v3", help="ISA level (default v3)")
    command.set_defaults(run=_show)


def _add_prove(commands: "_Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "prove",
        help="prove every step of every recipe, for all sizes",
        description="Prints a line a step: proved, tested, or refused with an example. Levels "
        "whose vectors have equally many lanes give equal lines; each is proved on its own.",
    )
    _many_files(command)
    command.add_argument("--json", action="store_true", help="one object a step")
    command.set_defaults(run=_prove)


def _add_run(commands: "_Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "run",
        help="compile a kernel, compare it with its oracle, and time it",
        description="Runs the kernel on random arrays of the sizes given and on edge cases (small "
        "and long sizes, ties, extremes, NaN, strides), and prints errors and time. Needs a C "
        "compiler, and runs the C of `externals`.",
    )
    command.add_argument("file", type=Path, help="a spec")
    size = "a dim's size (default: 64, or less where there are many dims)"
    command.add_argument("--size", action="append", default=[], metavar="DIM=N", help=size)
    command.add_argument("--seed", type=int, default=0, help="of the random arrays")
    _dtype(command)
    command.add_argument("--level", choices=LEVELS, help="ISA level (default: this machine's best)")
    command.set_defaults(run=_run)


def _add_bench(commands: "_Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "bench",
        help="time a kernel beside its oracle",
        description="Compiles the kernel, compares it with its oracle at the sizes given and at "
        "small ones, and prints the least milliseconds of each call beside those of the oracle as "
        "NumPy and SciPy run it. Needs a C compiler.",
    )
    command.add_argument("file", type=Path, help="a spec")
    command.add_argument(
        "--sizes",
        action="append",
        default=[],
        metavar="DIM=N,...",
        help="the sizes of a row, and again for each row (default: three rows, of arrays of about "
        "4096, 65536 and 1048576 elements)",
    )
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    command.add_argument(
        "--threads",
        type=_counts,
        default=sorted({1, processors}),
        help=f"numbers of threads, such as 1,2,4 (default: 1 and this machine's, {processors})",
    )
    command.add_argument(
        "--levels", type=_levels, help="ISA levels, such as v2,v3 (default: this machine's best)"
    )
    _dtype(command)
    command.add_argument(
        "--rounds", type=_count, default=5, help="rounds, of which the best counts (default 5)"
    )
    command.add_argument("--json", action="store_true", help="as JSON, in seconds")
    command.set_defaults(run=_bench)


def _counts(text: str) -> list[int]:
    return [_count(part) for part in text.split(",")]


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 4096")
    return int(text)


def _add_generate(commands: "_Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser("generate", help="write the C sources and manifest entries")
    _many_files(command)
    command.add_argument("-o", "--output", type=Path, required=True, help="folder to write into")
    command.set_defaults(run=_generate)


def _many_files(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="specs, or folders of specs"
    )
    command.add_argument(
        "--levels",
        type=_levels,
        default=["v2", "v3", "v4"],
        help=f"ISA levels, of {', '.join(LEVELS)} (default v2,v3,v4)",
    )


def _levels(text: str) -> list[str]:
    levels = text.split(",")
    unknown = [level for level in levels if level not in LEVELS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown level {unknown[0]!r}: there are {', '.join(LEVELS)}"
        )
    return levels


def _dtype(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dtype", help="for example float64 (default: the spec's first)")
