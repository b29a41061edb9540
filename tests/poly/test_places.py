"""Accesses that constant indices keep apart: what is left out meets nowhere; what is asked then."""

from pathlib import Path

import pytest

from gen.poly.sets import order
from gen.poly.sets.extract import extract
from gen.poly.sets.order import Relations
from gen.poly.sets.places import Places
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.registry import TARGETS
from gen.trial import check

from .script import block, kernel, nest

HEAD = """tilesmith: 1
kernel: k
doc: Many elements, a statement each.
signature: ({count})->({count})
dtypes: {{T: [float32]}}
arguments:
  x: {{type: "T[{count}]"}}
  y: {{type: "T[{count}]", intent: out}}
compute: |
"""


def test_what_is_left_out_meets_nowhere() -> None:
    """Rows, columns and elements by constants, and what runs over all of them."""
    places = ("0, j", "1, j", "j, 2", "j, 3", "1, 2", "0, 3", "j, j", "j + 1, 2")
    whole = "\n".join(
        nest("for j in range(3)", block(f"b{k}", "j=j", f"y[{at}] = y[{other}] + x[{at}]"))
        for k, (at, other) in enumerate(zip(places, reversed(places), strict=True))
    )
    tree = extract(kernel("n, x: float32[4, 4], y: Out[float32[4, 4]]", whole))
    relations = Relations(tree)
    storage = tree.arguments["y"]
    accesses = [a for s in tree.statements for a in (*s.reads, *s.writes) if a.storage is storage]
    found = Places(accesses)
    for a in accesses:
        alike = [b for b in accesses if all(b.fixed.get(k, v) == v for k, v in a.fixed.items())]
        assert found.near(a) == alike, "in their order"
        assert all(relations.meet(a, b).is_empty() for b in accesses if b not in alike)
    assert sum(len(found.near(a)) for a in accesses) == len(accesses) ** 2 - 72


def asked(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many pairs of statements a check of so many statements puts in order."""
    times = 0
    ordered = order.ordered

    def counting(*given: object) -> object:
        nonlocal times
        times += 1
        return ordered(*given)  # type: ignore[arg-type]

    body = "".join(f"  y[{k}] = x[{k}] + {k}\n" for k in range(count))
    path = folder / "k.yaml"
    path.write_text(HEAD.format(count=count) + body, encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(order, "ordered", counting)
        assert check._checked(path, TARGETS, [Cpu(Level.V3)]).error is None
    return times


def test_elements_ask_about_their_own_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs in proportion to the statements: 300 took 10 seconds for all of theirs."""
    few, many = (asked(tmp_path, count, monkeypatch) for count in (20, 80))
    assert many < 5 * few
