"""The binding in which calls stop after a step: its text, and the parts that follow from times."""

import numpy as np
import pytest

from bench.call import parts, stopped
from bench.call.parts import ENDS, STOPS, Times
from bench.native import CannotBuild
from gen.binding import cython


@pytest.fixture(scope="module")
def binding() -> str:
    return cython.module([], "some_package", "0")


def test_calls_can_stop_in_the_binding_as_it_is(binding: str) -> None:
    text = stopped.with_stops(binding)
    assert text.count("_stop == 1") == text.count("_stop == 2") == 1
    assert text.count("_stop == 3") == 2 and text.count("_stop == 4") == 1  # a flat call's, too
    assert text.index("def stop_at") < text.index("\n_PACKAGE = 'some_package'")
    added = [line for _, stop in stopped.STOPS for line in stop.splitlines()]
    added += stopped.FUNCTIONS.splitlines()
    assert len(text.splitlines()) == len(binding.splitlines()) + len(added) + 1


def test_a_step_that_has_gone_is_named(binding: str) -> None:
    changed = binding.replace("if _extents_suffice(&v, outputs):", "if True:")
    with pytest.raises(CannotBuild, match="no longer has this line once: if _extents_suffice"):
        stopped.with_stops(changed)
    with pytest.raises(CannotBuild, match="no longer has this line once: if inputs is given"):
        stopped.with_stops(binding + "    if inputs is given:\n        result = _flat()\n")


def test_calls_are_of_the_kernels_that_are_compiled() -> None:
    every = list(parts.calls())
    assert {call.kernel for call in every} == set(stopped.KERNELS)
    assert len({call.name for call in every}) == len(every)


def test_the_parts_are_the_whole() -> None:
    states = dict(zip((*STOPS, *ENDS), (40.0, 47, 97, 160, 180, 380, 390, 900), strict=True))
    found = parts.differences(states)
    assert found == [40, 7, 70, 63, 200, 10, 510] and sum(found) == 900
    lines = list(parts.table({"exp": Times(905, 1200, states), "softmax": Times(9, None, states)}))
    assert lines[2] == "| exp | 1200 | 905 | 40 | 7 | 70 | 63 | 200 | 10 | 510 | 900 |"
    assert lines[3].startswith("| softmax |  | 9 |")


@pytest.mark.thorough  # to compile the binding takes ten seconds
def test_calls_stop_and_are_right_where_they_do_not() -> None:
    import tilesmith as ts

    module = stopped.load(ts)
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    for kernels in (stopped.NOTHING, stopped.ONE, stopped.WHOLE):
        stopped.use(module, ts, kernels)
    assert np.array_equal(module.exp(x), ts.exp(x))
    assert np.array_equal(module.softmax(x), ts.softmax(x))
    for step, name in enumerate(stopped.STEPS, 1):
        module.stop_at(step)
        made = name in {"result", "overlap"}
        found = module.softmax(x)
        assert isinstance(found, np.ndarray) and found.shape == x.shape if made else found is None
    module.stop_at(0)
    assert np.array_equal(module.matmul(x, x), ts.matmul(x, x))
