"""`tilesmith tune`: the parameters of a recipe searched by measured time."""

import argparse
import datetime
import difflib
from pathlib import Path

from ..errors import TilesmithError
from ..language import Dtypes, build
from ..language.model import KernelSpec
from ..progress import progress
from ..targets.target import Target
from ..trial import timing
from ..trial.inputs import costed
from ..trial.tune.contest import ByCount, ByTime, Contest
from ..trial.tune.space import asked
from ..trial.tune.tune import Asked, tune
from ..trial.tune.write import written
from .arguments import Commands, count, dtype, dtypes, level, one, size


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "tune",
        help="search a recipe's parameters by measured time, and write the best into the spec",
        description="Tries values of a recipe's `params`, or of the numbers in the recipe that "
        "rules write where the spec has none. Each candidate is proved, compiled and compared as "
        "by `bench`, then timed in turn with what is there. What is faster for sure is written "
        "into the spec, with a comment. A search that is interrupted goes on where it was. Needs "
        "Optuna (pip install 'tilesmith[tune]') and a C compiler.",
    )
    command.add_argument("file", type=Path, help="a spec")
    command.add_argument(
        "--size",
        "--sizes",
        action="append",
        default=[],
        metavar="DIM=N,...",
        help="the sizes that are timed, and again for others (default: as `bench` has them)",
    )
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=N,...",
        help="a parameter to search, and its values: rows=4,6,8 or rows=4..8 or strip=64..1024*2 "
        "(default: each that is an integer, near its value)",
    )
    structure = "search among the rules that take a block, not their numbers"
    what.add_argument("--structure", action="store_true", help=structure)
    command.add_argument("--threads", type=count, default=1, help="of a call (default 1)")
    trials = "at most so many candidates (default 40)"
    command.add_argument("--trials", type=count, default=40, metavar="N", help=trials)
    command.add_argument("--seed", type=int, default=0, help="of the search")
    dry = "print what would change in the spec, and write nothing"
    command.add_argument("--dry-run", action="store_true", help=dry)
    afresh = "begin again, whatever an earlier search of the same has found"
    command.add_argument("--afresh", action="store_true", help=afresh)
    dtype(command)
    level(command, "this machine's best")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    spec = options.targets.load(options.file)
    text = options.file.read_bytes().decode("utf-8")
    target, contest = _machine(options)
    wanted = dtypes(spec, options.dtype)
    sizes = [dict(map(size, row.split(","))) for row in options.size]
    wish = Asked(
        sizes or _sizes(spec, wanted, contest),
        options.threads,
        [asked(text) for text in options.param],
        options.structure,
        options.trials,
        options.seed,
        options.afresh,
    )
    with progress(options.trials + 2) as shown:
        report = tune(spec, wanted, target, wish, contest, shown)
    print(report)
    if report.winner is None:
        return 0
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    new = written(text, spec, target, report, today)
    if options.dry_run:
        print("".join(_difference(text, new, str(options.file))), end="")
        return 0
    if options.file.read_bytes().decode("utf-8") != text:
        hint = "run tune again with --dry-run, and copy the values"
        raise TilesmithError(f"{options.file} has changed meanwhile: nothing is written", hint=hint)
    options.file.write_bytes(new.encode("utf-8"))
    print(f"  written   {options.file}")
    return 0


def _machine(options: argparse.Namespace) -> tuple[Target, Contest]:
    """The target that this machine runs, and times; else the one that it emulates, and counts."""
    kind = options.targets[options.target]
    try:
        here = kind.here()
    except TilesmithError as error:
        target = one(options, lambda t: t.shown)
        try:
            return target.emulating(), ByCount()
        except TilesmithError:
            raise error from None
    target = one(options, lambda t: here[-1])
    if target.level not in here:
        raise TilesmithError(f"this machine does not run {target.level}")
    return target, ByTime(options.threads)


def _sizes(spec: KernelSpec, dtypes: Dtypes, contest: Contest) -> list[dict[str, int]]:
    if isinstance(contest, ByTime):
        return timing.usual_sizes(spec)
    return [costed(spec, build(spec, dtypes))]


def _difference(old: str, new: str, path: str) -> list[str]:
    lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    return list(difflib.unified_diff(*lines, path, f"{path}, tuned"))
