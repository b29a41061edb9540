"""Emitted expressions compiled, run on the extremes of their types, and compared with what the IR's
operators compute. The sanitizer sees that nothing in them is undefined.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from gen.ir.algebra import dtype_of
from gen.ir.index.facts import Facts
from gen.ir.interpret.evaluate import (
    InterpError,
    binary,
    cast,
    function,
    numpy_dtype,
    scalar,
    unary,
)
from gen.ir.nodes import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    External,
    Function,
    Load,
    Select,
    Unary,
    Var,
)
from gen.ir.types import DType
from gen.ir.walk import walk
from gen.targets.c.expr import Scalars
from gen.targets.c.names import C_TYPE
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level

from .expressions import EXTREMES, TYPES, deeper, is_index, loads, nested

TREES = 1200  # of some 14000
POINTS = 24
NOT_EXACT = (Function.EXP, Function.POW, Function.ATAN2)
USUAL: Mapping[DType, tuple[bool | int | float | complex, ...]] = {
    DType.FLOAT32: (0.0, 3.0, 0.5, 1e10),
    DType.FLOAT64: (0.0, 3.0, 0.5, 1e300, 1e10),
    DType.INT8: (0, 3, 7, -5),
    DType.INT32: (0, 3, 31, -5),
    DType.INT64: (0, 3, 63, -5),
    DType.UINT8: (3, 7, 200),
    DType.UINT64: (3, 63, 2**60),
    DType.COMPLEX64: (1 + 2j, 0j),
    DType.FLOAT16: (1.5, -0.0, float("inf"), 65504.0),
}


class Undefined(Exception):
    """The value is not one value: C and NumPy may differ."""


def value(expr: Expr, at: Mapping[str, Any]) -> Any:
    """What the expression is. Raises Undefined."""
    match expr:
        case Var(name):
            return at[name]
        case Const(number, dtype):
            return scalar(number, dtype)
        case Load(buffer):
            return at[buffer]
        case Select(condition, then, otherwise):
            return value(then if value(condition, at) else otherwise, at)
        case Unary(op, a):
            return unary(op, dtype_of(a))(value(a, at))
        case Binary(BinaryOp.AND, a, b):
            return value(a, at) and value(b, at)
        case Binary(BinaryOp.OR, a, b):
            return value(a, at) or value(b, at)
        case Binary(op, a, b):
            x, y, dtype = value(a, at), value(b, at), dtype_of(a)
            _require_one_value(op, dtype, x, y)
            try:
                return binary(op, dtype)(x, y)
            except InterpError:
                raise Undefined from None
        case Cast(dtype, a):
            x, old = value(a, at), dtype_of(a)
            if old.is_float and dtype.is_integer and not _holds(dtype, x):
                raise Undefined
            return cast(old, dtype)(x)
        case Call(Function() as name, args):
            if name is Function.ABS and dtype_of(args[0]).is_complex:
                raise Undefined
            given = [value(arg, at) for arg in args]
            if name is Function.COPYSIGN and np.isnan(given[1]):
                raise Undefined  # NaNs have any sign
            return function(name, dtype_of(args[0]))(*given)
        case _:
            raise ValueError(f"{expr} is of no kind")


def _require_one_value(op: BinaryOp, dtype: DType, x: Any, y: Any) -> None:
    if dtype.is_complex and op in (BinaryOp.MUL, BinaryOp.DIV):
        raise Undefined
    zeros = dtype.is_float and x == y == 0 and np.signbit(x) != np.signbit(y)
    if op in (BinaryOp.MIN, BinaryOp.MAX) and zeros:
        raise Undefined


def _holds(dtype: DType, x: Any) -> bool:
    limits = np.iinfo(dtype.value)
    return bool(np.isfinite(x)) and int(limits.min) <= int(x) <= int(limits.max)


# ---------------------------------------------------------------- trees, points, C


def trees(count: int) -> list[Expr]:
    def exact(tree: Expr) -> bool:
        calls = [n.function for n in walk(tree) if isinstance(n, Call)]
        indices = [n for n in walk(tree) if isinstance(n, Expr) and is_index(n)]
        huge = any(isinstance(n, Const) and abs(n.value) > 2**40 for e in indices for n in walk(e))
        if huge and any(isinstance(n, Binary) for n in indices):
            return False  # no index is as large
        return not any(isinstance(f, External) or f in NOT_EXACT for f in calls)

    found = [tree for tree in (*nested(), *deeper(2000)) if exact(tree)]
    return Random(0).sample(found, min(count, len(found)))


def points(count: int) -> Iterator[dict[str, Any]]:
    """Values of all elements and of the indices."""
    rng = Random(0)
    for _ in range(count):
        at: dict[str, Any] = {"i": rng.randrange(-20, 20), "n": rng.randrange(-20, 20)}
        for dtype in TYPES:
            values = [*EXTREMES.get(dtype, ()), *USUAL.get(dtype, ())]
            for load in loads(dtype):
                at[load.buffer] = scalar(rng.choice(values), dtype)
        yield at


def program(given: Sequence[Expr]) -> str:
    """C that reads points from its standard input and writes all expressions' values at each."""
    scalars = Scalars({"i": "i", "n": "n"}, lambda name, at, facts: f"{name}[0]", Facts((), ()))
    names = [(load.buffer, C_TYPE[dtype]) for dtype in TYPES for load in loads(dtype)]
    declared = "".join(f"static {ctype} {name}[1];\n" for name, ctype in names)
    read = "".join(f"fread({name}, sizeof {name}, 1, stdin);\n" for name, _ in names)
    functions, calls = "", ""
    for k, tree in enumerate(given):
        ctype = C_TYPE[dtype_of(tree)]
        functions += f"static void e{k}(void) {{ {ctype} v = {scalars.value(tree)};"
        functions += " fwrite(&v, sizeof v, 1, stdout); }\n"
        calls += f"e{k}();\n"
    return (
        '#include <stdio.h>\n#include "ts_abi.h"\n#include "ts_simd.h"\n#include "ts_math.h"\n'
        '#include "ts_complex.h"\n#include "ts_math_more.h"\n'
        f"static int64_t i, n;\n{declared}{functions}"
        "int main(void) {\nwhile (fread(&i, sizeof i, 1, stdin)) {\n"
        "fread(&n, sizeof n, 1, stdin);\n"
        f"{read}{calls}}}\n}}\n"
    )


def test_values_at_extremes(tmp_path: Path) -> None:
    given, at = trees(TREES), list(points(POINTS))
    source, made = tmp_path / "e.c", tmp_path / "e"
    source.write_text(program(given))
    command = list(jit.compiler_command(Level.V2, ("-O0", "-w", "-fsanitize=undefined")))
    subprocess.run([*command, str(source), "-o", str(made), "-lm"], check=True)
    order = [load.buffer for dtype in TYPES for load in loads(dtype)]
    types = {load.buffer: numpy_dtype(d) for d in TYPES for load in loads(d)}
    data = b"".join(
        np.int64(p["i"]).tobytes()
        + np.int64(p["n"]).tobytes()
        + b"".join(np.asarray(p[name], types[name]).tobytes() for name in order)
        for p in at
    )
    done = subprocess.run([made], input=data, capture_output=True, check=True)
    assert not done.stderr, done.stderr.decode()[:2000]
    got = memoryview(done.stdout)
    wrong, compared = [], 0
    with np.errstate(all="ignore"):
        for point in at:
            for k, tree in enumerate(given):
                dtype = numpy_dtype(dtype_of(tree))
                (found,), got = np.frombuffer(got[: dtype.itemsize], dtype), got[dtype.itemsize :]
                try:
                    wanted = np.asarray(value(tree, point), dtype)
                except Undefined:
                    continue
                compared += 1
                if not _same(found, wanted[()]):
                    wrong.append((k, found, wanted, {n: point[n] for n in _names(tree)}))
    assert compared > len(at) * len(given) // 2
    shown = [
        f"{program([given[k]]).split('v = ')[1].split(' fwrite')[0]} {f} {w} {p}"
        for k, f, w, p in wrong[:40]
    ]
    assert not wrong, f"{len(wrong)}\n" + "\n".join(shown)


def _names(tree: Expr) -> set[str]:
    return {n.buffer for n in walk(tree) if isinstance(n, Load)} | {
        n.name for n in walk(tree) if isinstance(n, Var)
    }


def _same(a: Any, b: Any) -> bool:
    """Bit for bit, but for which NaN it is."""
    if np.iscomplexobj(a):
        return _same(a.real, b.real) and _same(a.imag, b.imag)
    return bool(
        a == b and np.signbit(a) == np.signbit(b) if a.dtype.kind == "f" else a == b
    ) or bool(a != a and b != b)
