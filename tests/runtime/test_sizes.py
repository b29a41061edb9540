"""The postfix programs of sizes and constraints: the C evaluator beside Python's arithmetic."""

import ast
import ctypes
import random
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gen.binding.descriptors import descriptors
from gen.binding.manifest import Entry, EntryArgument, EntryParameter
from gen.ir.interpret.sizes import from_text, value
from gen.ir.nodes import Intent
from gen.targets.runtime import RUNTIME

NAMES = ("n", "k", "s")
LARGE = (0, 1, 2, 3, 7, 2**31, 2**61, 2**63 - 1)


def random_text(rng: random.Random, depth: int) -> str:
    """An expression over n, k (dims) and s (a scalar), as `expr_to_text` would print it."""
    if not depth or rng.random() < 0.2:
        return rng.choice([*NAMES, *map(str, range(4)), str(2**62)])
    a, b = random_text(rng, depth - 1), random_text(rng, depth - 1)
    match rng.randrange(7):
        case 0 | 1 | 2 as k:
            return f"({a}) {'+-*'[k]} ({b})"
        case 3 | 4 as k:
            divisor = f"({b})" if rng.random() < 0.3 else str(rng.randint(1, 5))
            return f"({a}) {('//', '%')[k - 3]} {divisor}"
        case k:
            return f"{('min', 'max')[k - 5]}({a}, {b})"


def entry(constraints: tuple[str, ...]) -> Entry:
    return Entry(
        "k", "d", "(n),(k)->()", {}, ("n", "k"), None,
        (EntryArgument("x", Intent.IN, "float64", False, ("n",)),
         EntryArgument("w", Intent.IN, "float64", False, ("k",)),
         EntryArgument("y", Intent.OUT, "float64", False, ())),
        (EntryParameter("s", "int64"),), {}, ("v2",), constraints=constraints,
    )  # fmt: skip


@pytest.fixture(scope="module")
def texts() -> tuple[str, ...]:
    rng = random.Random(5)
    sides = [(random_text(rng, 3), random_text(rng, 2)) for _ in range(150)]
    compared = (f"({a}) {rng.choice(['<', '<=', '>', '>=', '==', '!='])} ({b})" for a, b in sides)
    return (*(a for a, _ in sides), *compared)


@pytest.fixture(scope="module")
def library(texts: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("sizes")
    tables = re.findall(r"static const ts_term .*", descriptors([entry(texts)]))
    tables = [t.replace("static const", "const") for t in tables]
    (folder / "t.c").write_text('#include "ts_engine.h"\n' + "\n".join(tables))
    command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined",
               "-fsanitize-undefined-trap-on-error", "-shared", "-fPIC", f"-I{RUNTIME}",
               str(folder / "t.c"), str(RUNTIME / "ts_sizes.c"), "-o",
               str(folder / "t.so")]  # fmt: skip
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "t.so"))


def test_as_python_evaluates(texts: tuple[str, ...], library: ctypes.CDLL) -> None:
    rng, seen, too_large, bad = random.Random(6), set(), 0, 0
    exact_, too_large_, bad_divisor = range(3)  # ts_evaluated
    for number, text in enumerate(texts):
        terms = ctypes.byref(ctypes.c_int.in_dll(library, f"k_constraints_{number}"))
        for _ in range(20):
            n, k = rng.choice(LARGE), rng.choice(LARGE[:5])
            s = rng.choice([*LARGE, -1, -2, -7, -(2**63)])
            dims, scalars = (ctypes.c_int64 * 2)(n, k), (ctypes.c_int64 * 1)(s)
            result = ctypes.c_int64()
            exact = exactly(text, {"n": n, "k": k, "s": s})
            status = library.ts_evaluate(terms, dims, scalars, ctypes.byref(result))
            if exact is None:
                bad += status == bad_divisor
                assert status in (bad_divisor, too_large_), (text, n, k, s)
            elif status == exact_:
                assert result.value == exact, (text, n, k, s)
                seen.add(exact)
                if max(abs(n), abs(k), abs(s)) < 8:
                    assert value(from_text(text), {"n": n, "k": k, "s": s}) == exact
            else:
                too_large += 1
                assert status == too_large_
                assert max(n, k, abs(s)) > 7 or str(2**62) in text, text
    assert len(seen) > 80 and too_large > 100 and bad > 50


def exactly(text: str, values: dict[str, int]) -> int | None:
    """In integers of any size; None where a divisor is not positive."""
    try:
        return int(_exactly(ast.parse(text, mode="eval").body, values))
    except ZeroDivisionError:
        return None


def _exactly(node: ast.expr, values: dict[str, int]) -> int:
    match node:
        case ast.BinOp(lhs, ast.FloorDiv() | ast.Mod() as op, rhs):
            a, b = _exactly(lhs, values), _exactly(rhs, values)
            if b <= 0:
                raise ZeroDivisionError
            return a // b if isinstance(op, ast.FloorDiv) else a % b
        case ast.BinOp(lhs, op, rhs):
            a, b = _exactly(lhs, values), _exactly(rhs, values)
            return {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b}[type(op)]
        case ast.Call(ast.Name(name), args):
            return {"min": min, "max": max}[name](_exactly(a, values) for a in args)
        case ast.Compare(lhs, [op], [rhs]):
            compare = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
                       ast.NotEq: "!="}[type(op)]  # fmt: skip
            return int(eval(f"{_exactly(lhs, values)} {compare} {_exactly(rhs, values)}"))
        case _:
            return int(eval(ast.unparse(node), {}, values))


REALS = ["int64(r * q + 0.5)", "int64(r - 0.25) // s", "n + int64(r * 3.0)", "a + b"]


def test_sizes_of_reals(tmp_path: Path) -> None:
    """Named sizes: of float64 scalars, and of the sizes before them."""
    named = {"a": REALS[0], "b": REALS[1], "c": REALS[2], "d": REALS[3]}
    made = replace(
        entry(()),
        named=named,
        parameters=tuple(
            EntryParameter(*p) for p in (("s", "int64"), ("r", "float64"), ("q", "float64"))
        ),
    )
    tables = re.findall(r"static const ts_term .*", descriptors([made]))
    assert len(tables) == len(named)
    text = "\n".join(t.replace("static const", "const") for t in tables)
    (tmp_path / "t.c").write_text(f'#include "ts_engine.h"\n{text}')
    command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
               f"-I{RUNTIME}", str(tmp_path / "t.c"), str(RUNTIME / "ts_sizes.c"), "-o",
               str(tmp_path / "t.so")]  # fmt: skip
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(tmp_path / "t.so"))

    def evaluated(s: int, r: float, q: float) -> list[int | None]:
        bits = [s, *(ctypes.c_int64.from_buffer(ctypes.c_double(x)).value for x in (r, q))]
        words = [word for number in bits for word in (number, 0)]  # of 16 bytes each
        dims, scalars = (ctypes.c_int64 * 6)(5, 6), (ctypes.c_int64 * 6)(*words)
        results: list[int | None] = []
        for number in range(len(named)):
            terms = ctypes.byref(ctypes.c_int.in_dll(library, f"k_sizes_{number}"))
            result = ctypes.c_int64()
            status = library.ts_evaluate(terms, dims, scalars, ctypes.byref(result))
            results.append(None if status else result.value)
            dims[2 + number] = result.value
        return results

    assert evaluated(2, 2.5, 3.0) == [8, 1, 12, 9]
    assert evaluated(2, -2.5, 3.0) == [-7, -1, -2, -8]
    assert evaluated(0, 2.5, 3.0)[:3] == [8, None, 12]
    assert evaluated(2, 1e19, 1.0)[:3] == [None, None, None]
    assert evaluated(2, float("nan"), 1.0)[:3] == [None, None, None]
