"""`tilesmith show`: a variant at a stage, what each step changed, or a page of it."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..display import page
from ..display import text as views
from ..display.advice import advice
from ..display.cut import before
from ..errors import TilesmithError
from ..language import Dtypes
from ..language.model import KernelSpec
from ..lower.variants import Variant
from ..progress import Progress, able, progress
from ..targets.target import Target
from ..trial import costs
from ..trial.sizes import usual
from .arguments import Commands, dtype, dtypes, level, one, size


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "show",
        help="print the IR at a stage, what each step changed, or the C code; or make a page of it",
        description="Prints a variant of a kernel for one dtype and level.",
    )
    command.add_argument("file", type=Path, help="a spec")
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--stage",
        choices=views.STAGES,
        default="scheduled",
        help="plain: the spec's order; scheduled: after the recipe (the default); lowered: with "
        "bounds, tails and storage; finished: as it is emitted; c: the generated source",
    )
    what.add_argument("--step", type=int, metavar="N", help="the IR after this many steps")
    steps = "prove each step, and print what it changed: + new, - gone, > and < at another depth"
    what.add_argument("--steps", action="store_true", help=steps)
    what.add_argument("--whole", action="store_true", help="as --steps, with each tree whole")
    recipe = "the recipe that rules write, to paste, with which rule took which block and why"
    what.add_argument("--recipe", action="store_true", help=recipe)
    html = "write a page of the recipe, the IR after each step, the C and its assembly"
    what.add_argument("--html", type=Path, metavar="FILE", help=html)
    variant = "a variant of the recipe (default: that of calls with dims of 256; --html: all)"
    command.add_argument("--variant", metavar="NAME", help=variant)
    sizes = "with --html, the sizes that costs are told for (default: 256, where that is allowed)"
    command.add_argument("--size", action="append", default=[], metavar="DIM=N,...", help=sizes)
    dtype(command)
    level(command, "the one that the target shows")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    spec = options.targets.load(options.file)
    wanted = spec, dtypes(spec, options.dtype), one(options, lambda t: t.shown)
    told: list[str] = []
    if options.html:
        sizes = dict(size(text) for row in options.size for text in row.split(","))
        with progress(3) as shown:
            asked = costs.asked(*wanted, sizes, shown)
            text = page.page(*wanted, options.variant, shown, asked=asked)
        options.html.write_text(text, encoding="utf-8")
        text = f"{options.html}\n"
    else:
        with progress(1) as shown:
            text, refused = _text(*wanted, _view(options), shown, told)
        if refused is not None:
            print(text, end="", flush=True)
            raise refused
    print(text, end="", flush=True)
    for warning in told:
        print(warning, file=sys.stderr)
    if not (options.html or options.steps or options.whole or options.recipe):
        print("not proved: tilesmith prove does that", file=sys.stderr)
    return 0


def _text(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    view: views.View,
    shown: Progress,
    told: list[str],
) -> tuple[str, TilesmithError | None]:
    """The view, as far as the steps are right; and why the next is refused, if it has to do with
    what is asked. told: is given the advice that there is.
    """

    def advised(variants: Sequence[Variant]) -> None:
        told.extend(advice(spec, variants, target))

    try:
        return views.text(spec, dtypes, target, view, shown, partial(usual, spec), advised), None
    except TilesmithError as error:
        refused, short = error, before(spec, error)
    if short is None:
        raise refused
    try:
        text, _ = _text(short, dtypes, target, view, shown, told)
    except TilesmithError:
        raise refused from None
    match view:
        case views.AfterStep() | views.Stage("plain"):
            return text, None
        case _:
            return text, refused


def _view(options: argparse.Namespace) -> views.View:
    variant = options.variant
    if options.recipe:
        return views.WrittenByRules()
    if options.steps or options.whole:
        return views.Steps(variant, options.whole, able(sys.stdout))
    if options.step is not None:
        return views.AfterStep(variant, options.step)
    return views.Stage(options.stage, variant)
