"""What the fragments of the stand-in kernels say."""

import math

from gen.binding.manifest import Entry, EntryArgument, EntryParameter
from gen.ir.nodes import Intent

_BOTH = {"float32": ("sm_90",), "float64": ("sm_90",)}


def _in(name: str, *core: str | int, looped: bool = True) -> EntryArgument:
    return EntryArgument(name, Intent.IN, "T", looped, core)


def _out(
    name: str,
    *core: str | int,
    looped: bool = True,
    in_place: tuple[str, ...] = (),
    on_gpus: tuple[str, ...] = (),
) -> EntryArgument:
    return EntryArgument(name, Intent.OUT, "T", looped, core, in_place, on_gpus)


def _entry(
    kernel: str,
    signature: str,
    *arguments: EntryArgument,
    dims: tuple[str, ...] = ("m",),
    loop_dim: str | None = "m",
    parameters: tuple[EntryParameter, ...] = (),
    requires: dict[str, int] | None = None,
    constraints: tuple[str, ...] = (),
    named: dict[str, str] | None = None,
    types: dict[str, tuple[str, ...]] | None = None,
    following: dict[str, str] | None = None,
    architectures: dict[str, tuple[str, ...]] = _BOTH,
    ordered: bool = True,
) -> Entry:
    return Entry(
        kernel=kernel,
        doc=f"The stand-in {kernel}.",
        signature=signature,
        types=types or {"T": ("float32", "float64")},
        following=following or {},
        dims=dims,
        loop_dim=loop_dim,
        arguments=arguments,
        parameters=parameters,
        requires=requires or {},
        constraints=constraints,
        named=named or {},
        levels=("v2", "v3", "v4"),
        architectures=architectures,
        ordered=ordered,
        details={"proof": "tested"},
    )


_CLAMP = (
    EntryParameter("low", "T"),
    EntryParameter("high", "T", math.inf),
    EntryParameter("factor", "int32", 1),
)

ENTRIES = (
    _entry("square", "()->()", _in("x"), _out("y", in_place=("x",), on_gpus=("x",))),
    _entry("softmax", "(n)->(n)", _in("x", "n"), _out("y", "n"), dims=("m", "n")),
    _entry("total", "(n)->()", _in("x", "n"), _out("y"), dims=("m", "n"), ordered=False),
    _entry(
        "max",
        "(n)->()",
        _in("x", "n"),
        _out("y"),
        dims=("m", "n"),
        requires={"n": 1},
        ordered=False,
    ),
    _entry(
        "matmul",
        "(m,k),(k,n)->(m,n)",
        _in("a", "m", "k", looped=False),
        _in("b", "k", "n", looped=False),
        _out("c", "m", "n", looped=False),
        dims=("m", "k", "n"),
        loop_dim=None,
    ),
    _entry(
        "affine",
        "(k),(n,k)->(n)",
        _in("x", "k"),
        _in("w", "n", "k", looped=False),
        _out("y", "n"),
        dims=("m", "k", "n"),
    ),
    _entry("clamp", "()->()", _in("x"), _out("y", in_place=("x",)), parameters=_CLAMP),
    _entry("parts", "()->(),()", _in("x"), _out("whole"), _out("rest")),
    _entry(
        "add_into",
        "(n),(n)->(n)",
        EntryArgument("a", Intent.INOUT, "T", True, ("n",)),
        _in("b", "n"),
        dims=("m", "n"),
    ),
    _entry(
        "turn",
        "(),()->(),()",
        _in("x"),
        EntryArgument("w", Intent.IN, "real(T)", True, ()),
        _out("y"),
        EntryArgument("imaginary", Intent.OUT, "real(T)", True, ()),
        parameters=(EntryParameter("by", "T"), EntryParameter("gain", "real(T)", 1.0)),
        types={"T": ("complex64", "complex128"), "real(T)": ("float32", "float64")},
        following={"real(T)": "T"},
        architectures={"complex64_float32": ("sm_90",)},
    ),
    _entry("grey", "(3)->()", _in("x", 3), _out("y")),
    _entry(
        "scaled",
        "(),()->()",
        _in("x"),
        EntryArgument("by", Intent.IN, "int8", True, ()),
        _out("y"),
        architectures={"float32": ("sm_90",)},
    ),
    _entry("greedy", "()->()", _in("x"), _out("y"), architectures={"float64": ("sm_90",)}),
    _entry(
        "windows",
        "(n)->(count)",
        _in("x", "n"),
        _out("y", "count"),
        dims=("m", "n"),
        parameters=(
            EntryParameter("seconds", "float64", 1.5),
            EntryParameter("rate", "float64", 2.0),
            EntryParameter("step", "int64", 1),
        ),
        constraints=("length >= 1", "step <= n"),
        named={"length": "int64(seconds * rate + 0.5)", "count": "(n - length) // step + 1"},
    ),
    _entry("limits", "(n)->(n)", _in("x", "n"), _out("y", "n"), dims=("m", "n"), architectures={}),
)
