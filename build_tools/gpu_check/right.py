"""Small cases on the GPU: results beside what is right, and beside the emulator's, bit by bit.

Each case is called with its arrays as they are, with `out=`, with arrays of other strides, in
place, and with a first argument that is broadcast. `xp` is CuPy, `ts` the kernels' package.
"""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .budget import Budget
from .cases import Case, Expected
from .rows import Row, Status, failure

Array = NDArray[Any]
Call = Callable[[ModuleType, ModuleType, Case], tuple[list[Array], str]]
"""Calls the kernel: gives the results, in the processor's memory, and what else is wrong."""

PART = "right"
REPEATED = 3  # how often a broadcast first argument is


def check(
    xp: ModuleType, ts: ModuleType, kernel: str, cases: Iterator[Case], budget: Budget
) -> Iterator[Row]:
    """A row for each dtype and way to call, and one for each of the first cases that are wrong."""
    counts: dict[tuple[str, str], list[int]] = {}
    worst: dict[tuple[str, str], float] = {}
    reported = 0
    for case in cases:
        if not budget.left:
            yield Row(PART, kernel, "all cases", Status.SKIPPED, f"no time left before {case}")
            break
        for way, call in WAYS.items():
            found = tried(xp, ts, case, way, call)
            for what, ratio, text in found:
                key = case.dtypes, what
                counts.setdefault(key, [0, 0])[0] += 1
                counts[key][1] += bool(text)
                worst[key] = max(worst.get(key, 0.0), ratio)
                if text and reported < MOST_REPORTED:
                    reported += 1
                    yield Row(PART, kernel, f"{what}: {case}", Status.WRONG, text)
    for (dtypes, what), (tried_, wrong) in counts.items():
        status = Status.WRONG if wrong else Status.RIGHT
        numbers = {"tried": tried_, "wrong": wrong, "of what is allowed": worst[dtypes, what]}
        yield Row(PART, kernel, f"{dtypes} {what}", status, "", numbers)


MOST_REPORTED = 8


def tried(
    xp: ModuleType, ts: ModuleType, case: Case, way: str, call: Call
) -> Iterator[tuple[str, float, str]]:
    """What was compared, the largest error over what is allowed, and what is wrong, if anything."""
    try:
        results, wrong = call(xp, ts, case)
    except NotHere:
        return
    except Exception as error:
        yield way, np.inf, failure(PART, case.kernel, way, error).text
        return
    if all(e.exact is not None for e in case.outputs):
        ratio, text = 0.0, wrong
        for got, wanted in zip(results, case.outputs, strict=True):
            own, at = off(got, wanted)
            ratio, text = max(ratio, own), text or at
        yield way, ratio, text
    if way == "plain" and all(e.bits is not None for e in case.outputs):
        if not any(got.size for got in results):
            return  # no variant runs
        if (ran := ts.last_call()["variant"]) != case.variant:
            yield "another variant than the emulator's", 0.0, ""
            return
        pairs = zip(results, case.outputs, strict=True)
        texts = [text for got, wanted in pairs if (text := other_bits(got, wanted))]
        yield f"bits, variant {ran}", 0.0, "; ".join(texts)


def off(got: Array, wanted: Expected) -> tuple[float, str]:
    """The largest error over what is allowed, and where it is, if that is more than 1."""
    exact, bound = wanted.exact, wanted.bound
    assert exact is not None
    shape = got.shape
    if shape not in (exact.shape, (REPEATED, *exact.shape)):
        return np.inf, f"{wanted.name} has the shape {shape}, not {exact.shape}"
    if not got.size:
        return 0.0, ""
    with np.errstate(all="ignore"):
        value = got if got.dtype.kind in "biu" else got.astype(np.float64)
        error = np.abs(value - exact - (0 if wanted.low is None else wanted.low), dtype=np.float64)
        same = (value == exact) | (np.isnan(value) & np.isnan(exact))
        same |= np.isinf(value) & (got == exact.astype(got.dtype))
        allowed = np.broadcast_to(0.0 if bound is None else bound, shape)
        ratio = np.where(same, error * 0, error) / np.maximum(allowed, np.finfo(float).tiny)
        ratio = np.where(same & np.isnan(ratio), 0, np.where(np.isnan(ratio), np.inf, ratio))
    at = np.unravel_index(int(np.argmax(ratio)), shape)
    if ratio[at] <= 1:
        return float(ratio[at]), ""
    where = ", ".join(map(str, at))
    right = np.broadcast_to(exact, shape)[at]
    text = f"{wanted.name}[{where}] is {got[at]!r}, and {right!r} is right: {ratio[at]:.3g} of what"
    return float(ratio[at]), f"{text} is allowed, {int((ratio > 1).sum())} of {got.size} are wrong"


def other_bits(got: Array, wanted: Expected) -> str:
    """Where bits are not the emulator's; empty if nowhere. Any NaN is as good as another."""
    bits = wanted.bits
    assert bits is not None
    if (got.shape, got.dtype) != (bits.shape, bits.dtype):
        return f"{wanted.name} is {got.dtype}{got.shape}, and {bits.dtype}{bits.shape} there"
    if not got.size:
        return ""
    number = np.dtype(f"u{got.itemsize}")
    mine, theirs = (np.ascontiguousarray(x).view(number) for x in (got, bits))
    differ = mine != theirs
    if got.dtype.kind == "f":
        differ &= ~(np.isnan(got) & np.isnan(bits))
    if not differ.any():
        return ""
    at = np.unravel_index(int(np.argmax(differ)), got.shape)
    where = ", ".join(map(str, at))
    text = f"{wanted.name}[{where}] is {got[at]!r}, and {bits[at]!r} under the emulator"
    return f"{text}; {int(differ.sum())} of {got.size} differ"


# ---------------------------------------------------------------- ways to call


class NotHere(Exception):
    """The case cannot be called so."""


def host(array: Any) -> Array:
    """The array in the processor's memory."""
    return np.asarray(array.get() if hasattr(array, "get") else array)


def _function(ts: ModuleType, case: Case) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(ts, case.kernel)
    return lambda *given, **more: function(*given, **case.options, **more)


def _given(xp: ModuleType, case: Case) -> list[Any]:
    return [xp.array(x) for x in case.inputs.values()]


def _tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def plain(xp: ModuleType, ts: ModuleType, case: Case) -> tuple[list[Array], str]:
    return [host(y) for y in _tuple(_function(ts, case)(*_given(xp, case)))], ""


def _unwritten(xp: ModuleType, like: Any) -> Any:
    """An array of that shape in which nothing is right."""
    return xp.full_like(like, np.nan if like.dtype.kind == "f" else 77)


def with_out(xp: ModuleType, ts: ModuleType, case: Case) -> tuple[list[Array], str]:
    function, given = _function(ts, case), _given(xp, case)
    outs = tuple(_unwritten(xp, y) for y in _tuple(function(*given)))
    results = _tuple(function(*given, out=outs if len(outs) > 1 else outs[0]))
    same = all(y is out for y, out in zip(results, outs, strict=True))
    return [host(out) for out in outs], "" if same else "what is returned is not out="


def _apart(xp: ModuleType, array: Any) -> tuple[Any, Any]:
    """An array of the same shape with room between, every other axis backwards, and all of it."""
    whole = xp.full([2 * n + 3 for n in array.shape], 77, array.dtype)
    ways = tuple(
        slice(1, 1 + 2 * n, 2) if k % 2 else slice(2 * n, 0, -2) for k, n in enumerate(array.shape)
    )
    return whole[ways], whole


def strided(xp: ModuleType, ts: ModuleType, case: Case) -> tuple[list[Array], str]:
    function, given = _function(ts, case), _given(xp, case)
    outs = [_apart(xp, y) for y in _tuple(function(*given))]
    if not any(y.ndim for y, _ in outs):
        raise NotHere
    views = []
    for x in given:
        view, _ = _apart(xp, x)
        view[...] = x
        views.append(view)
    out = tuple(y for y, _ in outs)
    function(*views, out=out if len(out) > 1 else out[0])
    results = [host(y).copy() for y in out]
    for y, whole in outs:
        y[...] = 77
        if not (host(whole) == 77).all():
            return results, "something beside out= is written"
    return results, ""


def in_place(xp: ModuleType, ts: ModuleType, case: Case) -> tuple[list[Array], str]:
    function, given = _function(ts, case), _given(xp, case)
    (result, *others) = _tuple(function(*given))
    fitting = [x for x in given if (x.shape, x.dtype) == (result.shape, result.dtype)]
    if others or not fitting:
        raise NotHere
    function(*given, out=fitting[0])
    return [host(fitting[0])], ""


def broadcast(xp: ModuleType, ts: ModuleType, case: Case) -> tuple[list[Array], str]:
    first, *others = _given(xp, case)
    results = _function(ts, case)(xp.broadcast_to(first, (REPEATED, *first.shape)), *others)
    return [host(y) for y in _tuple(results)], ""


WAYS: dict[str, Call] = {
    "plain": plain,
    "out=": with_out,
    "strided": strided,
    "in place": in_place,
    "broadcast": broadcast,
}
