"""What a build calls: specs to C files and fragments, all fragments to the binding; and, for
GPUs, sources to machine code.

Input: specs; fragments; sources. Output: files in the build's folder, written only if their text
changes, so that nothing is compiled again without need. Invariant: the same input gives the same
bytes in any folder; the depfile names all that an output was made from.
"""

import argparse
import gc
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ..cache import cache_folder
from ..errors import TilesmithError
from ..targets.runtime import CUDA, DEVICE_HEADERS, RUNTIME, digest

# What takes long to load is loaded where it is used: most calls of a build ask for a path.
if TYPE_CHECKING:
    from ..binding.manifest import Entry
    from ..poly.limit import Limited

GENERATOR = Path(__file__).parents[1]
RUNTIME_SOURCES = (
    "ts_cache.c",
    "ts_caller.c",
    "ts_carry.c",
    "ts_flat.c",
    "ts_engine.c",
    "ts_gpu.c",
    "ts_launches.c",
    "ts_levels.c",
    "ts_measure.c",
    "ts_move.c",
    "ts_openmp.c",
    "ts_overlap.c",
    "ts_pool.c",
    "ts_sizes.c",
    "ts_threads.c",
    "ts_workspace.c",
)


def generate(
    specs: Sequence[Path],
    levels: Sequence[str],
    folder: Path,
    depfile: Path | None,
    architectures: Sequence[str] = (),
    cuda_kernels: Sequence[str] | None = None,
    limited: "Limited | None" = None,
) -> None:
    """Writes of each spec `<kernel>.<level>.c` for each level and the fragment `<kernel>.json` into
    the folder; of cuda_kernels, of each architecture `.c`, the host side, and `.cu`. None: of all
    that have a recipe for GPUs. limited: the prover, by default `prove_within`.

    A spec's file is named after its kernel. Raises TilesmithError, also where a kernel has such a
    recipe and cuda_kernels leave it out.
    """
    from .. import pipeline
    from ..binding.manifest import entry_from_json
    from ..poly.cache import SECONDS, prover
    from ..poly.limit import prove_within
    from ..schedule.recipe import choose
    from ..targets.registry import TARGETS

    chosen = TARGETS.chosen(None, levels)
    prove = prover(folder / "proofs", SECONDS, limited or prove_within)
    for spec in specs:
        read = TARGETS.load(spec)
        on = [a for a in architectures if choose(read.recipes, "cuda", a)]
        if cuda_kernels is not None:
            if on and spec.stem not in cuda_kernels:
                found = f"{spec.name} has a recipe for cuda: "
                raise TilesmithError(f"{found}name it in cuda_kernels of meson.build")
            on = list(architectures) if spec.stem in cuda_kernels else []
        targets = (*chosen, *(TARGETS.chosen("cuda", on) if on else ()))
        generated = pipeline.generate(read, targets, prove)
        entry = entry_from_json(generated.manifest)
        if entry.kernel != spec.stem:
            raise TilesmithError(
                f"{spec.name} defines kernel {entry.kernel}: name it {entry.kernel}.yaml"
            )
        write_kernel(entry, generated.c_files, folder, on)
    if depfile is not None:
        write_if_changed(depfile, dependencies(folder / f"{specs[0].stem}.json", specs))


def write_kernel(
    entry: "Entry", c_files: dict[str, str], folder: Path, architectures: Sequence[str] = ()
) -> None:
    """Writes a kernel's C files and fragment; there must be one file a level, two of GPUs."""
    from ..binding.manifest import entry_to_json

    expected = {
        *(f"{entry.kernel}.{level}.c" for level in entry.levels),
        *(f"{entry.kernel}.{level}.{kind}" for level in architectures for kind in ("c", "cu")),
    }
    if set(c_files) != expected:
        raise TilesmithError(
            f"kernel {entry.kernel}: generated {sorted(c_files)}, not {sorted(expected)}"
        )
    for name, text in c_files.items():
        write_if_changed(folder / name, text)
    write_if_changed(
        folder / f"{entry.kernel}.json", json.dumps(entry_to_json(entry), indent=1) + "\n"
    )


def dependencies(target: Path, inputs: Sequence[Path]) -> str:
    """A depfile: the target depends on the inputs and on the generator's modules now loaded."""
    loaded = {Path(getattr(module, "__file__", None) or ".") for module in sys.modules.values()}
    files = sorted(file for file in loaded if GENERATOR in file.parents)
    names = [*map(str, inputs), *map(str, files)]
    return f"{_escaped(str(target))}: {' '.join(map(_escaped, names))}\n"


def _escaped(path: str) -> str:
    return path.replace("$", "$$").replace(" ", "\\ ").replace("#", "\\#")


def merge(
    fragments: Sequence[Path], package: str, version: str, folder: Path, depfile: Path | None
) -> None:
    """Writes the extension's sources `_kernels.pyx` and `ts_kernels.c` into the folder, and what is
    installed beside it: `_kernels.pyi`, `manifest.json`, `<package>.h` and `<package>.pxd`.
    package: its importable name, or its folder.

    Raises TilesmithError for a malformed fragment, a name that cannot be a package's, or where two
    kernels have one name, be it in C alone.
    """
    from ..binding import cython, descriptors, header, stubs
    from ..binding.manifest import manifest_text

    package = package.replace("/", ".")
    if not all(part.isidentifier() and part.isascii() for part in package.split(".")):
        raise TilesmithError(f"{package!r} cannot be the name of a package")
    read = [(path, _read(path)) for path in fragments]
    entries = sorted((entry for _, entry in read), key=lambda entry: entry.kernel)
    device = [path.with_name(name) for path, entry in read for name in _sources(entry)]
    device += DEVICE_HEADERS if device else ()
    for first, second in pairwise(entries):
        if first.kernel == second.kernel:
            raise TilesmithError(f"two kernels are named {first.kernel}")
    _check_symbols(entries)
    write_if_changed(folder / "_kernels.pyx", cython.module(entries, package, version))
    write_if_changed(folder / "ts_kernels.c", descriptors.descriptors(entries))
    write_if_changed(folder / "_kernels.pyi", stubs.stubs(entries))
    sources = digest(device) if device else None
    write_if_changed(folder / "manifest.json", manifest_text(entries, version, sources))
    name = header.c_name(package)
    write_if_changed(folder / f"{name}.h", header.header(entries, package))
    write_if_changed(folder / f"{name}.pxd", header.pxd(entries, package))
    if depfile is not None:
        own = [*sorted(RUNTIME.glob("*.pxi")), RUNTIME / "ts_caller.h"]
        inputs = [*fragments, *own, *device]
        write_if_changed(depfile, dependencies(folder / "_kernels.pyx", inputs))


def _read(fragment: Path) -> "Entry":
    from ..binding.manifest import entry_from_json

    return entry_from_json(json.loads(fragment.read_text("utf-8")))


def _sources(entry: "Entry") -> list[str]:
    """The names of a kernel's files of device text."""
    levels = {level for levels in entry.architectures.values() for level in levels}
    return [f"{entry.kernel}.{level}.cu" for level in sorted(levels)]


def compile_source(source: Path, folder: Path) -> None:
    """Writes the machine code of `<kernel>.<architecture>.cu` for that architecture and all later
    ones, and what its functions take of each: `.fatbin` and `.functions.json`.

    Raises TilesmithError as `machine_code`.
    """
    from ..targets.cuda.machine_code import machine_code

    name, architecture = source.stem, source.stem.rpartition(".")[2]
    to = folder / f"{name}.fatbin"
    functions = machine_code(source, architecture, to, cache_folder() / "machine-code")
    write_if_changed(folder / f"{name}.functions.json", json.dumps(functions, indent=1) + "\n")


def _check_symbols(entries: Sequence["Entry"]) -> None:
    """Raises TilesmithError where a kernel's name with its types is another's with fewer types."""
    from ..binding.descriptors import overloads

    of: dict[str, str] = {}
    for entry in entries:
        for dtypes in overloads(entry):
            symbol = "_".join([entry.kernel, *dtypes])
            other = of.setdefault(symbol, entry.kernel)
            if other != entry.kernel:
                raise TilesmithError(
                    f"kernels {other} and {entry.kernel} have one name in C: {symbol}"
                )


def write_if_changed(path: Path, text: str) -> None:
    data = text.encode("utf-8")
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


@contextmanager
def _cycles_kept() -> Iterator[None]:
    """Python does not look for cycles meanwhile, nor, at its end, in what is made: that would take
    a tenth of the time, and free what the end frees anyway.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of `tilesmith build`: 0, or 1 with the error on stderr."""
    options = _parser().parse_args(arguments)
    try:
        match options.command:
            case "generate":
                return 0 if _generated(options) else 1
            case "merge":
                merge(
                    options.fragments,
                    options.package,
                    options.version,
                    options.output_dir,
                    options.depfile,
                )
            case "compile":
                compile_source(options.source, options.output_dir)
            case "data-wheel":
                from .data_wheel import data_wheel

                print(data_wheel(options.wheel, options.output_dir))
            case "includedir":
                print(RUNTIME)
            case "cuda-includedir":
                print(CUDA)
            case "nvcc":
                from ..targets.cuda.compilers import required

                print(required())
            case "device-headers":
                print("\n".join(map(str, DEVICE_HEADERS)))
            case "sources":
                print("\n".join(str(RUNTIME / name) for name in RUNTIME_SOURCES))
    except TilesmithError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _generated(options: argparse.Namespace) -> bool:
    """Whether it was; else an error was printed. In a child process first, which a proof that
    passes its limit ends: then here, where each proof has a process of its own.
    """
    from ..poly.limit import Limited, attempted, prove_or_end, prove_within

    def work(limited: Limited) -> bool:
        try:
            with _cycles_kept():
                generate(
                    options.specs,
                    options.levels.split(","),
                    options.output_dir,
                    options.depfile,
                    options.architectures.split(",") if options.architectures else (),
                    options.cuda_kernels,
                    limited,
                )
        except TilesmithError as error:
            print(error, file=sys.stderr)
            return False
        return True

    done = attempted(lambda: work(prove_or_end))
    return work(prove_within) if done is None else done


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilesmith build", description="What a meson.build calls."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("generate", help="the specs' C files and binding fragments")
    command.add_argument("specs", type=Path, nargs="+")
    command.add_argument("--levels", required=True, help="of CPUs, with commas between")
    command.add_argument("--architectures", help="of GPUs, with commas between")
    command.add_argument("--cuda-kernels", nargs="*", help="all that are for GPUs, too")
    command.add_argument("--output-dir", type=Path, required=True)
    command.add_argument("--depfile", type=Path)
    command = commands.add_parser("merge", help="the extension's sources from all fragments")
    command.add_argument("fragments", type=Path, nargs="+")
    command.add_argument("--package", required=True, help="the package's importable name")
    command.add_argument("--version", required=True, help="the package's version")
    command.add_argument("--output-dir", type=Path, required=True)
    command.add_argument("--depfile", type=Path)
    command = commands.add_parser("compile", help="a GPU's source to machine code, by nvcc")
    command.add_argument("source", type=Path)
    command.add_argument("--output-dir", type=Path, required=True)
    command = commands.add_parser(
        "data-wheel", help="the wheel with the machine code of a package's wheel, by nvcc"
    )
    command.add_argument("wheel", type=Path, help="the package's, with its sources for GPUs")
    command.add_argument("-o", "--output-dir", type=Path, default=Path("dist"))
    commands.add_parser("includedir", help="print the folder of the runtime's headers")
    commands.add_parser("cuda-includedir", help="print the folder of what GPUs' host sides include")
    commands.add_parser("nvcc", help="print the compiler of GPUs' sources")
    commands.add_parser("device-headers", help="print the headers of GPUs' sources, one a line")
    commands.add_parser("sources", help="print the runtime's C files, one a line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
