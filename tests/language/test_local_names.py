"""Local names: a body with them is the body with their values written out; and mistakes."""

from textwrap import indent

import pytest

from gen.errors import SpecError
from gen.ir.text.printer import to_text
from gen.language import build, choices, loads

HEAD = """tilesmith: 1
kernel: k
doc: Local names.
signature: (n),(n)->(n),(n)
dtypes: {T: [float32]}
arguments:
  x: {type: "T[m, n]"}
  b: {type: "T[n]", intent: inout}
  y: {type: "T[m, n]", intent: out}
scalars:
  shift: {type: int64, default: 1}
constraints: [n >= 1]
compute: |
"""
FIRST = HEAD.count("\n") + 1
"""The line of a body's first."""

REST = "b[j] = b[j] + T(shift)\n"
"""So that all that is declared is used."""


def plain(body: str) -> str:
    """The plain schedule as text."""
    spec = loads(HEAD + indent(body.strip() + "\n" + REST, "  "), "k.yaml")
    return to_text(build(spec, choices(spec)[0]))


def refused(body: str) -> SpecError:
    with pytest.raises(SpecError) as refusal:
        plain(body)
    assert refusal.value.span is not None
    return refusal.value


SAME = {
    "a value": (
        "v = x[i, j] + b[j]\ny[i, j] = max(v, 0) * v",
        "y[i, j] = max(x[i, j] + b[j], 0) * (x[i, j] + b[j])",
    ),
    "a local name in another": (
        "v = x[i, j] + b[j]\nw = v * v\ny[i, j] = w - v",
        "y[i, j] = (x[i, j] + b[j]) * (x[i, j] + b[j]) - (x[i, j] + b[j])",
    ),
    "terms of a sum": (
        "v = x[i, k] * 2\ny[i, j] = x[i, j] + sum(v ** 2 for k in n if v > 0)",
        "y[i, j] = x[i, j] + sum((x[i, k] * 2) ** 2 for k in n if x[i, k] * 2 > 0)",
    ),
    "several statements": (
        "v = x[i, j] * 2\nt[i] = sum(v for j in n)\ny[i, j] = v / t[i]",
        "t[i] = sum(x[i, j] * 2 for j in n)\ny[i, j] = x[i, j] * 2 / t[i]",
    ),
    "a position": (
        "p = j + shift\ny[i, j] = x[i, min(max(p, 0), n - 1)] if 0 <= p < n else 0",
        "y[i, j] = x[i, min(max(j + shift, 0), n - 1)] if 0 <= j + shift < n else 0",
    ),
    "a position on the left": (
        "for i in range(m):\n    y[i, n - 1] = 0\n    p = j - 1\n    for j in range(1, n):\n"
        "        y[i, p] = x[i, j]",
        "for i in range(m):\n    y[i, n - 1] = 0\n    for j in range(1, n):\n"
        "        y[i, j - 1] = x[i, j]",
    ),
    "a bound and a condition": (
        "last = j + 1\nfor i in range(m):\n    for j in range(n):\n        y[i, j] = 0\n"
        "        if last < n:\n            for k in range(last):\n"
        "                y[i, j] += x[i, k]",
        "for i in range(m):\n    for j in range(n):\n        y[i, j] = 0\n"
        "        if j + 1 < n:\n            for k in range(j + 1):\n"
        "                y[i, j] += x[i, k]",
    ),
    "one in each block": (
        "for i in range(m):\n    v = x[i, j] * 2\n    t[i] = sum(v for j in n)\n"
        "for i in range(m):\n    v = x[i, j] * 3\n    y[i, j] = v + t[i]",
        "for i in range(m):\n    t[i] = sum(x[i, j] * 2 for j in n)\n"
        "for i in range(m):\n    y[i, j] = x[i, j] * 3 + t[i]",
    ),
    "what it reads is written where it is used": (
        "y[i, j] = x[i, j]\nw = y[i, j] * 2\ny[i, j] = w",
        "y[i, j] = x[i, j]\ny[i, j] = y[i, j] * 2",
    ),
}


@pytest.mark.parametrize("what", SAME)
def test_it_is_its_value_written_out(what: str) -> None:
    with_names, without = SAME[what]
    assert plain(with_names) == plain(without)


def test_a_value_whose_indices_have_ranges_is_a_temporary() -> None:
    """With a block of its own, as is one without indices, and one that is declared."""
    body = (
        "for i in range(m):\n    for j in range(n):\n        v = x[i, j] * 2\n        y[i, j] = v"
    )
    assert 'block("v"' in plain(body)
    assert 'block("v"' in plain("v = b[0] * 2\ny[i, j] = v + x[i, j]")
    assert 'block("v"' in plain("u = b[0] * 2\nv = u + 1\ny[i, j] = v + x[i, j]")


USED = "y[i, j] = v + x[i, j]"
REFUSED = {
    "an index without a range": (
        "v = x[i, k] * 2\ny[i, j] = x[i, j] + v", 0, "unknown name 'k'",
        "an index must be on the left, in a 'for' or in a reduction",
    ),
    "a misspelt name": (
        "v = x[i, j] * shft\ny[i, j] = v", 0, "unknown name 'shft'", "did you mean 'shift'?",
    ),
    "no use": (
        "v = x[i, j] * 2\ny[i, j] = x[i, j]", 0, "nothing uses the local name 'v'", None,
    ),
    "no use in its block": (
        "for i in range(m):\n    v = x[i, j] * 2\ny[i, j] = x[i, j]", 1,
        "nothing uses the local name 'v'", None,
    ),
    "a use after its block": (
        "for i in range(m):\n    v = x[i, j] * 2\n    y[i, j] = v\ny[i, j] = v", 3,
        "unknown name 'v'", "an index must be on the left, in a 'for' or in a reduction",
    ),
    "a use before it": (
        f"{USED}\nv = x[i, j] * 2\n{USED}", 0, "unknown name 'v'",
        "an index must be on the left, in a 'for' or in a reduction",
    ),
    "a reduction": (
        "v = sum(x[i, j] for j in n)\ny[i, j] = x[i, j] / v", 0, "unknown name 'i'",
        "give 'v' its index: v[i]",
    ),
    "twice": (
        f"v = x[i, j] * 2\n{USED}\nv = x[i, j] * 3\n{USED}", 2,
        f"'v' is a local name already, in line {FIRST}", "choose another name",
    ),
    "an array of its name": (
        f"v = x[i, j] * 2\n{USED}\nv[i] = x[i, 0]", 2,
        f"'v' is a local name already, in line {FIRST}", "choose another name",
    ),
    "an index of its name": (
        "v = x[i, j] * 2\ny[i, j] = v + sum(x[i, v] for v in n)", 1,
        "'v' already has a meaning here", "give the index a name of its own",
    ),
    "an index of its name in a sum without it": (
        f"v = x[i, j] * 2\n{USED} + sum(b[v] for v in n)", 1,
        "'v' already has a meaning here", "give the index a name of its own",
    ),
    "a 'for' of its name": (
        f"v = x[i, j] * 2\n{USED}\nfor v in range(n):\n    y[0, v] = 0", 2,
        "'v' already has a meaning here", "give the index a name of its own",
    ),
    "axes": (
        "v = x[i, j] * 2\ny[i, j] = v[i, j]", 1, "'v' is a local name: it has no axes", "write v",
    ),
    "a write of what it reads": (
        f"v = x[i, j] * b[j]\nb[j] = b[j] * 2\n{USED}", 2,
        "'v' reads 'b', which is written after its definition",
        "define 'v' after that, or as an array with axes, which keeps its values",
    ),
    "a write of a temporary without axes that it reads": (
        f"u = b[0] * 2\nv = x[i, j] * u\nu = b[0] * 3\n{USED}", 3,
        "'v' reads 'u', which is written after its definition",
        "define 'v' after that, or as an array with axes, which keeps its values",
    ),
    "a write in an earlier iteration": (
        "v = x[i, j] * b[j]\nfor i in range(m):\n    y[i, j] = v\n    b[j] = b[j] * 2", 2,
        "'v' reads 'b', which is written after its definition",
        "define 'v' after that, or as an array with axes, which keeps its values",
    ),
    "a write of what another reads, which it uses": (
        f"u = b[j] * 2\nv = u + x[i, j]\nb[j] = u\n{USED}", 3,
        "'v' reads 'b', which is written after its definition",
        "define 'v' after that, or as an array with axes, which keeps its values",
    ),
    "an output's name": ("y = x[i, j]", 0, "'y' has 2 axes and is given 0 indices", None),
    "a dim's name": ("n = x[i, j]", 0, "'n' is not an array", "choose another name"),
    "a function's name": ("max = x[i, j]", 0, "'max' is not an array", "choose another name"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED)
def test_refused(mistake: str) -> None:
    body, line, message, hint = REFUSED[mistake]
    error = refused(body)
    assert (error.message, error.hint) == (message, hint)
    assert error.span is not None
    assert error.span.line == FIRST + line


def test_an_error_in_a_value_is_shown_with_its_uses() -> None:
    error = str(refused("v = x[i, k] * 2\nw = v + 1\ny[i, j] = x[i, j] + w"))
    assert error.splitlines() == [
        f"k.yaml:{FIRST}:12: error: unknown name 'k'",
        "      v = x[i, k] * 2",
        "               ^",
        f"k.yaml:{FIRST + 1}:7: in the local name 'v', used here",
        "      w = v + 1",
        "          ^",
        f"k.yaml:{FIRST + 2}:23: in the local name 'w', used here",
        "      y[i, j] = x[i, j] + w",
        "                          ^",
        "  hint: an index must be on the left, in a 'for' or in a reduction",
    ]


def test_what_local_names_come_to_has_a_limit() -> None:
    """Each twice the one before it."""
    lines = ["v0 = x[i, j] + 1", *(f"v{k + 1} = v{k} + v{k}" for k in range(60))]
    error = refused("\n".join([*lines, "y[i, j] = v60"]))
    assert error.message == "with local names written out, this has more than 4096 parts"
    assert error.span is not None
    assert error.span.line == FIRST + 10  # v0 has 5, v1 has 11, ..., v9 has 3071
    assert error.hint == "define a part of it as an array of its own"


def test_how_deep_they_nest_has_a_limit() -> None:
    lines = ["v0 = x[i, j] + 1", *(f"v{k + 1} = v{k} + 1" for k in range(120))]
    error = refused("\n".join([*lines, "y[i, j] = v120"]))
    assert error.message == "the expression nests deeper than 100"
