"""Proofs remembered by content: what was proved once is not proved again.

Input: what `prove` takes, and a folder. Output: the same answer. The key is the text of both trees
and of the certificate, with types of floats replaced by their order of appearance, since a proof
compares them and asks no more, and so those of complex numbers; the source of the prover and of all
that it imports; and the version of isl. Of integers a proof asks how large they may be, as of an
index that is read from an array. Refusals are not kept: they are asked again, for the witness.
"""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path

import islpy as isl

from ..ir.nodes import Kernel
from ..ir.text.printer import to_text
from ..ir.types import DType, Kind
from .certificate import Scheduled
from .limit import Limited, Prove, prove_within
from .prove import prove
from .workbench import Workbench

PROVER = ("ir", "language", "poly")
"""The parts of the generator that the prover is in, or imports from, besides `errors`."""

_ALIKE = {t.value: t.kind.value for t in DType if t.kind in (Kind.FLOAT, Kind.COMPLEX)}
_TYPE = re.compile(rf"\b({'|'.join(_ALIKE)})\b")


SECONDS = 60.0
"""The longest that one proof may take: a step's takes under a second on all that ships."""


def prover(folder: Path, seconds: float = SECONDS, limited: Limited = prove_within) -> Prove:
    """The prover under a limit of time, with what it proved before remembered in a folder."""

    def within(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        limited(plain, state, seconds, bench=bench)

    return lambda plain, state, bench: prove_once(plain, state, folder, within, bench)


def prove_once(
    plain: Kernel,
    state: Scheduled,
    folder: Path,
    prove: Prove = prove,
    bench: Workbench | None = None,
) -> None:
    """Proves the tree unless `folder` says that it was proved before. Raises what `prove` does.

    The folder is made where it does not exist; an empty file in it stands for one proof. What is
    tested in part depends on more than the key: it is asked again.
    """
    bench = bench or Workbench()
    if state.standing.tested:
        prove(plain, state, bench)
        return
    known = folder / key(plain, state)
    if known.exists():
        return
    prove(plain, state, bench)
    folder.mkdir(parents=True, exist_ok=True)
    known.touch()


def key(plain: Kernel, state: Scheduled) -> str:
    """What names a proof, in hexadecimal."""
    flow = sorted((name, number, repr(source)) for (name, number), source in state.flow.items())
    scheduled = to_text(state.kernel).replace(" in unrolled(", " in range(")  # in the same order
    question = _without_types("\n".join((to_text(plain), scheduled, repr(flow), repr(state.laws))))
    return sha256(f"{_prover()}\n{question}".encode()).hexdigest()


def _without_types(text: str) -> str:
    names: dict[str, str] = {}
    return _TYPE.sub(lambda m: names.setdefault(m[0], f"{_ALIKE[m[0]]} {len(names)}"), text)


@cache
def _prover() -> str:
    """A digest of what the answer depends on besides the question: this code and isl."""
    texts = (p.read_text("utf-8") for p in sources(Path(__file__).parents[1]))
    return sha256("\n".join((isl.version.VERSION_TEXT, *texts)).encode()).hexdigest()


def sources(generator: Path) -> list[Path]:
    """The files of the generator that answer: those of `PROVER`, in folders however deep."""
    within = (p for name in PROVER for p in (generator / name).rglob("*"))
    return [generator / "errors.py", *sorted(p for p in within if p.suffix in (".py", ".yaml"))]
