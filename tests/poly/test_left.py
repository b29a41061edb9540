"""Which loops may be left for a flag, and what may then be dropped: all else is refused."""

import pytest

from gen.ir.nodes import Kernel
from gen.ir.rules.verify import IRError, verify, verify_any
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.lower.leaving import leave_early
from gen.poly.rewrites.left import check_left
from gen.poly.witness import Refused

HEAD = "def k(m, n, x: float32[n], y: InOut[float32[n]], z: Out[float32[n]]):\n"
BEFORE = """\
    for i in range(n):
        with allocate(going=int32[()], own=float32[()]):
            with block("going"):
                going[()] = 1
            with block("z"):
                z[i] = 0.0
            for t in range(m):
                with block("going_1"):
                    going[()] = int32(going[()] != 0 and y[i] < 9.0)
                with block("own"):
                    own[()] = y[i] * 2.0
                with block("y"):
                    y[i] = own[()] + x[i] if going[()] != 0 else y[i]
                with block("z_1"):
                    z[i] = combine.sum(z[i], x[i] if going[()] != 0 else 0.0)
"""
FLAG = "int32(going[()] != 0 and y[i] < 9.0)\n"
LEAVE = "                leave_unless(going[()] != 0)\n"
AFTER = (
    BEFORE.replace(FLAG, FLAG + LEAVE)
    .replace("own[()] + x[i] if going[()] != 0 else y[i]", "own[()] + x[i]")
    .replace("x[i] if going[()] != 0 else 0.0", "x[i]")
)


def tree(text: str) -> Kernel:
    return from_text(HEAD + text)


def test_it_is_what_the_pass_makes() -> None:
    assert to_text(leave_early(tree(BEFORE))) == to_text(tree(AFTER))
    check_left(tree(BEFORE), tree(AFTER))
    check_left(tree(BEFORE), tree(BEFORE.replace(FLAG, FLAG + LEAVE)))


IN_LANES = ("for i in range(n):", "for i in vectorized(n):")


def test_lanes_ask_on() -> None:
    """Where lanes leave together, what each keeps stays under its flag."""
    before = tree(BEFORE.replace(*IN_LANES))
    made = leave_early(before)
    assert to_text(made) == to_text(tree(BEFORE.replace(*IN_LANES).replace(FLAG, FLAG + LEAVE)))
    check_left(before, made)
    with pytest.raises(Refused, match="block 'y': left early, it does more"):
        check_left(before, tree(AFTER.replace(*IN_LANES)))


UNSOUND = {  # what is replaced before, and what the checker says of leaving the loop all the same
    "an effect that is not under the flag": (
        ("own[()] + x[i] if going[()] != 0 else y[i]", "own[()] + x[i]"),
        "block 'y' has an effect where not going",
    ),
    "another place is kept": (("else y[i]", "else x[i]"), "block 'y' has an effect"),
    "another flag": (
        ("own[()] + x[i] if going[()] != 0", "own[()] + x[i] if x[i] != 0.0"),
        "block 'y' has an effect",
    ),
    "no identity": (("else 0.0", "else 1.0"), "block 'z_1' has an effect"),
    "the flag may come back": (
        ("going[()] != 0 and y[i] < 9.0", "y[i] < 9.0 and going[()] != 0"),
        "what it is left for is no flag",
    ),
    "something else sets the flag": (
        ('with block("own"):\n                    own[()] = y[i] * 2.0',
         'with block("own"):\n                    going[()] = 1'),
        "block 'own' has an effect",
    ),
    "what is not kept is read afterwards": (
        ("    for i in range(n):\n        with allocate(going=int32[()], own=float32[()]):\n",
         "    with allocate(own=float32[()]):\n     for i in range(n):\n"
         "        with allocate(going=int32[()]):\n"),
        "block 'own' has an effect",
    ),
    "the flag is read where it is not written": (
        ('with block("going_1"):', 'with block("going_1", where=t < 3):'),
        "its flag is not always written",
    ),
    "iterations in any order": (("for t in range(m)", "for t in parallel(m)"), "no serial loop"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSOUND)
def test_unsound(name: str) -> None:
    (old, new), message = UNSOUND[name]
    assert old in BEFORE
    before = BEFORE.replace(old, new)
    assert leave_early(tree(before)) == tree(before)
    flag = next(line for line in before.splitlines() if "going[()] = int32(" in line) + "\n"
    with pytest.raises(Refused, match=message):
        check_left(tree(before), tree(before.replace(flag, flag + LEAVE)))


MUTANTS = {
    "left before the flag is known": ("for t in range(m):\n", f"for t in range(m):\n{LEAVE}"),
    "a statement is gone": (
        '                with block("own"):\n                    own[()] = y[i] * 2.0\n', "",
    ),
    "a statement more": (LEAVE, f"{LEAVE}                barrier()\n"),
    "left for something else": ("leave_unless(going[()] != 0)", "leave_unless(y[i] != 0.0)"),
    "left where it goes on": ("leave_unless(going[()] != 0)", "leave_unless(going[()] == 0)"),
    "another value": ("y[i] = own[()] + x[i]", "y[i] = own[()]"),
    "another test": ("going[()] != 0 and y[i] < 9.0", "going[()] != 0 and y[i] < 8.0"),
    "another loop": ("for t in range(m)", "for t in range(n)"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants(name: str) -> None:
    old, new = MUTANTS[name]
    assert old in AFTER
    with pytest.raises(Refused):
        check_left(tree(BEFORE), tree(AFTER.replace(old, new)))


def test_flags_of_each_iteration() -> None:
    """A loop over elements is not left for the flag of one of them."""
    text = (
        "    with allocate(going=int32[n]):\n"
        "        for t in range(m):\n"
        "            for i in range(n):\n"
        '                with block("going"):\n'
        "                    going[i] = int32(going[i] != 0 and y[i] < 9.0)\n"
        '                with block("y"):\n'
        "                    y[i] = x[i] if going[i] != 0 else y[i]\n"
    )
    assert leave_early(tree(text)) == tree(text)
    leave = "                leave_unless(going[i] != 0)\n"
    flagged = text.replace("y[i] < 9.0)\n", "y[i] < 9.0)\n" + leave)
    with pytest.raises(Refused, match="its flag is another one in each iteration"):
        check_left(tree(text), tree(flagged))


def test_threads_leave_for_flags_of_their_own() -> None:
    text = (
        "    with allocate(going=int32[n] @ device):\n"
        "        for i in threadIdx.x(n):\n"
        "            for t in range(m):\n"
        '                with block("going"):\n'
        "                    going[i] = int32(going[i] != 0 and y[i] < 9.0)\n"
    )
    assert leave_early(tree(text)) == tree(text)
    own = text.replace(
        "    with allocate(going=int32[n] @ device):\n        for i in threadIdx.x(n):\n",
        "    for i in threadIdx.x(n):\n        with allocate(going=int32[n] @ local):\n",
    )
    assert "leave_unless" in to_text(leave_early(tree(own)))


# ---------------------------------------------------------------- the statement


def test_rules_of_trees() -> None:
    verify_any(tree(AFTER))
    with pytest.raises(IRError, match="a 'leave' stands in a tree that is not lowered"):
        verify(from_text(HEAD + "    for t in range(m):\n        leave_unless(t < 3)\n"))
    with pytest.raises(IRError, match="no serial loop is around a 'leave'"):
        verify_any(from_text(HEAD + "    leave_unless(m < 3)\n"))
    with pytest.raises(IRError, match="no serial loop is around a 'leave'"):
        verify_any(from_text(HEAD + "    for t in parallel(m):\n        leave_unless(t < 3)\n"))
    with pytest.raises(IRError, match="the condition of a 'leave'"):
        verify_any(from_text(HEAD + "    for t in range(m):\n        leave_unless(t)\n"))
