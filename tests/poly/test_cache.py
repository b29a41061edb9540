"""Remembered proofs and the time limit."""

import ast
import os
import sys
import time
from pathlib import Path
from shutil import copytree, ignore_patterns

import islpy as isl
import pytest

from gen.errors import ScheduleError
from gen.ir.nodes import Kernel
from gen.poly import cache, limit
from gen.poly.cache import key, prove_once
from gen.poly.certificate import Scheduled, Source
from gen.poly.limit import (
    ProofTimeout,
    Prove,
    ProverError,
    attempted,
    prove_or_end,
    prove_within,
)
from gen.poly.prove import Refused, prove
from gen.poly.values.flow import plain_flow
from gen.poly.workbench import Workbench

from .script import block, kernel, nest

ROOT = Path(__file__).parents[2]


def doubled(dtype: str = "float32", upper: str = "n", other: str = "float64") -> Kernel:
    body = block("y", "i:0:n=y.i", f"y[i] = x[i] * {dtype}(2)")
    arguments = f"n, x: {dtype}[n], z: {other}[n], y: Out[{dtype}[n]]"
    return kernel(arguments, nest(f"for y.i in range({upper})", body))


def state(tree: Kernel) -> Scheduled:
    return Scheduled(tree, plain_flow(doubled()))


def never(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    raise AssertionError("asked again")


def test_a_proof_is_asked_once(tmp_path: Path) -> None:
    folder = tmp_path / "proofs"
    prove_once(doubled(), state(doubled()), folder)
    prove_once(doubled(), state(doubled()), folder, never)
    changed = Scheduled(doubled(), {("y", 0): Source(("y",), initial=True)})
    with pytest.raises(AssertionError, match="asked again"):
        prove_once(doubled(), changed, folder, never)


def test_a_refusal_is_not_kept(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(Refused, match="must end as"):
            prove_once(doubled(), state(doubled(upper="n - 1")), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_key_asks_only_which_types_are_equal() -> None:
    one, two = doubled("float32"), doubled("float16")
    assert key(one, state(one)) == key(two, state(two))
    same = doubled("float32", other="float32")
    assert key(one, state(one)) != key(same, state(same))
    indices = doubled("float32", other="int64")
    assert key(one, state(one)) != key(indices, state(indices))


def looked_up(dtype: str) -> Kernel:
    body = block("y", "i=y.i", "y[i] = t[int64(k[i])]")
    arguments = f"n, k: {dtype}[n], t: float32[256], y: Out[float32[n]]"
    return kernel(arguments, nest("for y.i in range(n)", body))


def test_how_large_integers_may_be_is_asked_of_each_type(tmp_path: Path) -> None:
    """What an index of eight bits cannot leave, another can."""
    for dtype in ("uint8", "int32", "uint16"):
        plain = looked_up(dtype)
        state = Scheduled(plain, plain_flow(plain))
        if dtype == "uint8":
            prove_once(plain, state, tmp_path)
            continue
        with pytest.raises(Refused, match="outside its bounds"):
            prove_once(plain, state, tmp_path)


def test_complex_numbers_are_asked_apart_from_floats() -> None:
    """A product may be padded with ones, but not one of complex numbers."""
    one, two = doubled("float32"), doubled("complex64")
    assert key(one, state(one)) != key(two, state(two))


def test_an_unrolled_loop_asks_what_a_serial_one_does() -> None:
    serial, unrolled, parallel = (
        kernel(
            "n, x: float32[n], y: Out[float32[n]]",
            nest(
                "for y.i_0 in range(n)",
                f"for y.i_1 in {kind}(1)",
                block("y", "i:0:n=y.i_0 + y.i_1", "y[i] = x[i]"),
            ),
        )
        for kind in ("range", "unrolled", "parallel")
    )
    assert key(serial, state(serial)) == key(serial, state(unrolled))
    assert key(serial, state(serial)) != key(serial, state(parallel))


def imported(module: str, found: set[Path]) -> set[Path]:
    """The files of the generator that a module's import runs, packages around it included."""
    parts = module.split(".")
    for k in range(1, len(parts)):  # `gen` itself imports nothing of the prover's
        for file in (
            ROOT.joinpath(*parts[:k], f"{parts[k]}.py"),
            ROOT.joinpath(*parts[: k + 1], "__init__.py"),
        ):
            if file.exists() and file not in found:
                found.add(file)
                package = file.relative_to(ROOT).parts[:-1]
                for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                    if isinstance(node, ast.ImportFrom) and node.level:
                        base = ".".join(package[: len(package) - node.level + 1])
                        inside = f"{base}.{node.module}" if node.module else base
                        for alias in node.names:
                            imported(f"{inside}.{alias.name}", found)
    return found


def test_the_key_covers_all_that_the_prover_imports() -> None:
    needed = imported("gen.poly.prove", set())
    assert len(needed) > 60
    assert needed <= set(cache.sources(ROOT / "gen"))


def test_a_file_of_the_prover_that_moves_is_in_the_key(tmp_path: Path) -> None:
    before = copytree(ROOT / "gen", tmp_path / "gen", ignore=ignore_patterns("__pycache__"))
    moved = tmp_path / "gen" / "poly" / "deeper" / "still" / "order.py"
    moved.parent.mkdir(parents=True)
    (Path(before) / "poly" / "sets" / "order.py").rename(moved)
    assert moved in cache.sources(tmp_path / "gen")
    names = {p.name for p in cache.sources(ROOT / "gen")}
    assert {p.name for p in cache.sources(tmp_path / "gen")} == names


def sleeping(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    time.sleep(60)


def computing(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    while True:
        pass


def dying(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    os._exit(3)


def failing(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    raise RuntimeError("isl gave up")


def test_a_proof_within_its_limit() -> None:
    prove_within(doubled(), state(doubled()), 60)
    with pytest.raises(Refused) as refused:
        prove_within(doubled(), state(doubled(upper="n - 1")), 60)
    assert refused.value.reason == "element [0] of 'y' must end as y[0], and does not"
    assert refused.value.witness and refused.value.witness.sizes == {"n": 1}


@pytest.mark.parametrize("prove", [sleeping, computing])
def test_a_proof_that_takes_too_long(prove: Prove) -> None:
    with pytest.raises(ProofTimeout) as timeout:
        prove_within(doubled(), state(doubled()), 0.05, prove)
    assert timeout.value.message == "the proof of kernel 'k' had no answer within 0.05 seconds"


def hungry(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    bytearray(2**28)


def starved(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    raise isl.Error("call to isl_set_params failed: allocation failure in isl_ctx.c:73")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("prove", [hungry, starved])
def test_a_proof_that_takes_too_much_memory(prove: Prove, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, "MEMORY", 2**27)
    with pytest.raises(ProofTimeout) as timeout:
        prove_within(doubled(), state(doubled()), 60, prove)
    assert timeout.value.message == (
        "the proof of kernel 'k' had no answer within 0.125 GiB of memory"
    )


def proved_here(prove: Prove, seconds: float, tree: Kernel) -> bool | None:
    """What a child process says in which the proof ran."""

    def work() -> bool:
        try:
            prove_or_end(doubled(), state(tree), seconds, prove)
        except Refused as refused:
            return refused.reason != "element [0] of 'y' must end as y[0], and does not"
        return True

    return attempted(work)


def test_proofs_in_one_child_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends where `prove_within` would say that there is no answer."""
    assert proved_here(prove, 60, doubled()) is True
    assert proved_here(prove, 60, doubled(upper="n - 1")) is False
    assert proved_here(computing, 0.05, doubled()) is None
    assert proved_here(starved, 60, doubled()) is None
    assert proved_here(dying, 60, doubled()) is None
    if sys.platform == "linux":
        monkeypatch.setattr(limit, "MEMORY", 2**27)
        assert proved_here(hungry, 60, doubled()) is None


def test_an_error_of_the_step_is_told_as_it_is() -> None:
    """As where an init cannot be written out: it is no failure of the prover."""
    with pytest.raises(ScheduleError) as refused:
        prove_within(doubled(), state(doubled()), 60, no_init)
    assert refused.value.message == "the init of block 'y' cannot go there"
    assert refused.value.hint == "fuse later"


def no_init(plain: Kernel, tree: Scheduled, bench: Workbench) -> None:
    raise ScheduleError("the init of block 'y' cannot go there", hint="fuse later")


def test_a_prover_that_fails() -> None:
    with pytest.raises(ProverError, match=r"(?s)the proof of kernel 'k' failed:.*isl gave up"):
        prove_within(doubled(), state(doubled()), 60, failing)
    with pytest.raises(ProverError) as ended:
        prove_within(doubled(), state(doubled()), 60, dying)
    assert ended.value.message == "the proof of kernel 'k' had no answer, but exit code 3"
