"""Every kernel side by side with the peers, on this machine, in one run.

python -m bench [kernels...]        measure; no kernel named: all
python -m bench drawn [kernels...]  sizes that a seed draws, as no recipe was tuned on, worst first
python -m bench overhead            what a call on tiny arrays and an import cost
python -m bench call [--write]      what a call spends its time on, step by step
python -m bench compare A B [...]   two commits, or a commit and . for the working tree
python -m bench report FILE         the table of a run kept by --json
python -m bench specs FILES...      specs without recipes, beside Numba on the same loops
python -m bench polybench [...]     PolyBench's thirty beside NumPy and Numba: docs/polybench.md
python -m bench scaling [...]       time against size, and the jumps in it: docs/scaling.md
python -m bench gallery [...]       operators beside PyTorch, SciPy and NumPy: docs/gallery.md
"""

import argparse
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import cases, compare, drawn, native, peers, plot, prefer_installed, report, results, run
from .kernels import KERNELS


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        match words:
            case ["overhead"]:
                prefer_installed()
                from . import overhead  # imports tilesmith, which the rest of this process does not

                overhead.main()
            case ["call", *rest]:
                _call(rest)
            case ["compare", *rest]:
                _compare(rest)
            case ["drawn", *rest]:
                _drawn(rest)
            case ["specs", *rest]:
                _specs(rest)
            case ["polybench", *rest]:
                _polybench(rest)
            case ["gallery", *rest]:
                _gallery(rest)
            case ["scaling", *rest]:
                _scaling(rest)
            case ["report", *rest]:
                _report(rest)
            case _:
                _measure(words)
    except (cases.UnknownName, compare.BuildFailed, native.CannotBuild, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _measure(words: Sequence[str]) -> None:
    parser = _parser("python -m bench", __doc__)
    _add_sizes(parser)
    _add_peers(parser)
    options = parser.parse_intermixed_args(words)
    _beside_peers(_cases(options), options)


def _drawn(words: Sequence[str]) -> None:
    parser = _parser("python -m bench drawn", drawn.__doc__)
    parser.add_argument("--count", type=_count, default=200, help="how many cases (200)")
    parser.add_argument("--seed", type=int, help="to draw the same ones again; else another one")
    _add_peers(parser)
    options = parser.parse_intermixed_args(words)
    _check_outputs(options)
    seed = options.seed if options.seed is not None else secrets.randbelow(1 << 32)
    print(f"sizes drawn with --seed {seed}\n", flush=True)
    _beside_peers(drawn.draw(cases.named(options.kernels), options.count, seed), options)


def _beside_peers(chosen: Sequence[cases.Case], options: argparse.Namespace) -> None:
    found = run.run(chosen, peers.choose(options.peers), _settings(options), _keeper(options))
    print(report.markdown(found), end="", flush=True)
    _write(found, options)


def _compare(words: Sequence[str]) -> None:
    parser = _parser(
        "python -m bench compare",
        "Two commits, built and measured side by side.",
        before="a commit",
        after="a commit, or . for the working tree",
    )
    _add_sizes(parser)
    _add_outputs(parser)
    parser.set_defaults(level=None, rounds=15)
    options = parser.parse_intermixed_args(words)
    chosen = _cases(options)
    pair = compare.peers(options.before, options.after)
    found = run.run(chosen, pair, _settings(options), _keeper(options))
    print(compare.markdown(found, options.before, options.after), end="", flush=True)
    _write(found, options)


def _specs(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench specs")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--threads", type=lambda t: [int(n) for n in t.split(",")], default=[1, 2])
    options = parser.parse_args(words)
    from . import specs  # imports Numba, which the rest of this process does not

    specs.main(options.files, options.threads)


def _polybench(words: Sequence[str]) -> None:
    # imports Numba, which the rest of this process does not
    from . import polybench, polybench_cases

    parser = argparse.ArgumentParser(prog="python -m bench polybench")
    known = [b.name for b in polybench_cases.BENCHMARKS]
    parser.add_argument(
        "names", nargs="*", choices=[*known, []], metavar="KERNEL", help="of kernels; none: all"
    )
    parser.add_argument("--size", choices=polybench_cases.NAMES, default="MEDIUM")
    parser.add_argument("--threads", type=_numbers, default=(1, 2), help="such as 1,2")
    parser.add_argument("--rounds", type=_count, default=7)
    parser.add_argument("--write", action="store_true", help="keep the table in docs/polybench.md")
    options = parser.parse_args(words)
    if options.write and options.names:
        parser.error("--write keeps all kernels: name none")
    polybench.main(
        options.names, options.size, options.threads, options.rounds, write=options.write
    )


def _gallery(words: Sequence[str]) -> None:
    from . import gallery, gallery_cases

    parser = argparse.ArgumentParser(prog="python -m bench gallery")
    known = {word: None for e in gallery_cases.ENTRIES for word in (e.kind, e.name)}
    parser.add_argument(
        "names",
        nargs="*",
        choices=[*known, []],
        metavar="NAME",
        help="operators, classes; none: all",
    )
    parser.add_argument("--rounds", type=_count, default=7)
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/gallery.md")
    options = parser.parse_args(words)
    if options.write and options.names:
        parser.error("--write keeps all operators: name none")
    gallery.main(options.names, options.rounds, write=options.write)


def _scaling(words: Sequence[str]) -> None:
    from .scaling import command

    command.main(words, _numbers, _count)


def _call(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench call")
    parser.add_argument("--rounds", type=_count, default=15)
    parser.add_argument("--write", action="store_true", help="keep the table in docs/bench.md")
    options = parser.parse_args(words)
    prefer_installed()
    from .call import parts  # imports tilesmith, which the rest of this process does not

    parts.main(options.rounds, write=options.write)


def _report(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench report")
    parser.add_argument("file", type=Path)
    _add_outputs(parser)
    options = parser.parse_args(words)
    _check_outputs(options)
    found = results.read(options.file)
    print(report.markdown(found), end="", flush=True)
    _write(found, options)


# ---------------------------------------------------------------- options


def _parser(program: str, description: str | None, **positionals: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program, description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    for name, meaning in positionals.items():
        parser.add_argument(name, help=meaning)
    parser.add_argument("kernels", nargs="*", help="names; none: all")
    parser.add_argument("--threads", type=_numbers, default=(1, 2), help="such as 1,2")
    parser.add_argument("--rounds", type=_count, default=7)
    parser.add_argument(
        "--offset", type=int, choices=range(0, 64, 4), default=16, metavar="BYTES",
        help="where arrays begin, past a multiple of 64 (16, as NumPy's large ones do)",
    )  # fmt: skip
    return parser


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    kinds = "kinds (main, odd, L1, ...) or dims such as 512x512"
    parser.add_argument("--sizes", type=_names, default=[], help=kinds)
    parser.add_argument("--quick", action="store_true", help="the headline kernels' main sizes")


def _add_peers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--peers", type=_names, default=[], help="by name, with commas between")
    parser.add_argument("--level", choices=["v3"], help="hold every peer to x86-64-v3")
    _add_outputs(parser)


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, help="keep everything that was measured in this file")
    parser.add_argument("--plot", type=Path, help="draw it: a file .svg or .png")


def _check_outputs(options: argparse.Namespace) -> None:
    """Now, and not at the end of a long run."""
    if options.plot:
        plot.check(options.plot)
    for path in filter(None, (options.json, options.plot)):
        path.parent.mkdir(parents=True, exist_ok=True)


def _cases(options: argparse.Namespace) -> list[cases.Case]:
    _check_outputs(options)
    kernels, sizes = options.kernels, options.sizes
    if options.quick:
        kernels = kernels or [name for name, k in KERNELS.items() if k.headline]
        sizes = sizes or ["main"]
    return cases.choose(kernels, sizes)


def _settings(options: argparse.Namespace) -> run.Settings:
    return run.Settings(options.threads, options.rounds, options.offset, options.level)


def _keeper(options: argparse.Namespace) -> Callable[[results.Results], None]:
    """Keeps what is measured by each case's end: a long run may be ended by hand."""
    return lambda found: found.write(options.json) if options.json else None


def _write(found: results.Results, options: argparse.Namespace) -> None:
    if options.json:
        found.write(options.json)
    if options.plot:
        plot.draw(found, options.plot)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_count(part) for part in _names(text))


if __name__ == "__main__":
    sys.exit(main())
