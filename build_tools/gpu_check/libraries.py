"""Arrays of other libraries, streams, graphs and errors, as docs/gpus.md promises them.

`xp` is CuPy, `ts` the kernels' package. A library that is not installed is skipped.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from .budget import Budget
from .rows import Row, Status, caught

PART = "libraries"

Check = Callable[[ModuleType, ModuleType], None]
"""Raises AssertionError where a promise is not kept; ImportError, NotHere where it is not tried."""


NEEDED = ("clamp", "exp", "matmul", "max", "softmax", "sum")


class NotHere(Exception):
    """What is missing, so that a promise cannot be tried."""


def check(xp: ModuleType, ts: ModuleType, budget: Budget) -> Iterator[Row]:
    if missing := [name for name in NEEDED if not hasattr(ts, name)]:
        text = f"the package has no {', '.join(missing)}"
        yield Row(PART, "calls", "all of it", Status.SKIPPED, text)
        return
    for what, tried in CHECKS.items():
        yield caught(PART, "calls", what, partial(_row, xp, ts, what, tried), budget)


def _row(xp: ModuleType, ts: ModuleType, what: str, tried: Check) -> Row:
    try:
        tried(xp, ts)
    except (ImportError, NotHere) as error:
        return Row(PART, "calls", what, Status.SKIPPED, f"{type(error).__name__}: {error}")
    except AssertionError as error:
        return Row(PART, "calls", what, Status.WRONG, str(error))
    return Row(PART, "calls", what, Status.RIGHT)


def _expect(condition: object, text: str) -> None:
    if not condition:
        raise AssertionError(text)


def _refused(kind: type[Exception], words: str, call: Callable[[], object]) -> None:
    """The call raises that, and says so."""
    try:
        call()
    except kind as error:
        _expect(words in str(error), f"the error does not say {words!r}: {error}")
        return
    raise AssertionError(f"it is no {kind.__name__}")


def _drawn(shape: tuple[int, ...] = (33, 65)) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype("f4")


def _softmax(x: Any) -> Any:
    e = np.exp(x.astype("f8") - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _near(got: Any, right: Any) -> None:
    off = float(np.abs(np.asarray(got) - right).max())
    _expect(off < 1e-5, f"the largest error is {off}")


# ---------------------------------------------------------------- of other libraries


def torch(xp: ModuleType, ts: ModuleType) -> None:
    module, x = import_module("torch"), _drawn()
    tensor = module.from_numpy(x).cuda()
    result = ts.softmax(tensor)
    _expect(isinstance(result, module.Tensor), f"the result is a {type(result)}")
    _near(result.cpu(), _softmax(x))
    out = module.empty_like(tensor)
    _expect(ts.softmax(tensor, out=out) is out, "what is returned is not out=")
    _near(out.cpu(), _softmax(x))
    learnt = tensor.clone().requires_grad_()
    _refused(TypeError, "detach", lambda: ts.softmax(learnt))


def torch_stream(xp: ModuleType, ts: ModuleType) -> None:
    """What another stream still writes is waited for, and the result waits for ours."""
    module = import_module("torch")
    side = module.cuda.Stream()
    held = module.ones(1 << 26, device="cuda")
    for number in range(20):
        with module.cuda.stream(side):
            x = module.zeros(256, 256, device="cuda")
            for _ in range(20):
                held.mul_(1.0)
            x += number
            y = ts.exp(x)
            wanted = float(np.exp(np.float32(number)))
            got = float((y * 1).mean())
        _expect(abs(got - wanted) <= 1e-5 * wanted, f"{got} in place of {wanted}")


def jax(xp: ModuleType, ts: ModuleType) -> None:
    module, x = import_module("jax"), _drawn()
    array = module.numpy.asarray(x)
    if "cuda" not in str(array.device).lower():
        raise NotHere(f"JAX has no GPU: {array.device}")
    result = ts.softmax(array)
    _expect(isinstance(result, module.Array), f"the result is a {type(result)}")
    _near(np.asarray(result), _softmax(x))
    _refused(TypeError, "out", lambda: ts.softmax(array, out=array))


def numba(xp: ModuleType, ts: ModuleType) -> None:
    module, x = import_module("numba.cuda"), _drawn()
    result = ts.softmax(module.to_device(x))
    _near(result.get() if hasattr(result, "get") else result.copy_to_host(), _softmax(x))


def mixed(xp: ModuleType, ts: ModuleType) -> None:
    x = _drawn((8, 8))
    _refused(TypeError, "numpy", lambda: ts.matmul(xp.asarray(x), x))
    module = import_module("torch")
    tensor = module.from_numpy(x).cuda()
    _refused(TypeError, "torch", lambda: ts.matmul(xp.asarray(x), tensor))


# ---------------------------------------------------------------- what differs from NumPy's


def reductions(xp: ModuleType, ts: ModuleType) -> None:
    x = xp.asarray(_drawn())
    whole = ts.sum(x)
    _expect(isinstance(whole, xp.ndarray) and whole.shape == (), f"the sum is {whole!r}")
    _expect(abs(float(whole) - float(x.sum())) < 1e-3, "another sum")
    _expect(ts.sum(x[:0], axis=0).shape == (65,), "the sum of nothing has another shape")
    _refused(ValueError, "", lambda: ts.max(x[:0], axis=0))


def scalars(xp: ModuleType, ts: ModuleType) -> None:
    x = xp.asarray(_drawn())
    for low, high in ((0, 1), (np.float32(0), np.float64(1)), (xp.asarray(0.0), xp.asarray(1.0))):
        got = ts.clamp(x, low, high)
        _expect(bool((got == x.clip(0, 1)).all()), f"another result with {low!r}")
    _refused(TypeError, "num_threads", lambda: ts.exp(x, num_threads=1))


def overlap(xp: ModuleType, ts: ModuleType) -> None:
    whole = xp.arange(1000, dtype="f4") / 1000
    right = xp.exp(whole[:-1])
    ts.exp(whole[:-1], out=whole[1:])
    _expect(float(abs(whole[1:] - right).max()) < 1e-5, "overlapping arrays give something else")


# ---------------------------------------------------------------- workspace


def _needs_workspace(xp: ModuleType, ts: ModuleType) -> tuple[Any, Any, int]:
    """A call that keeps something between launches, and how many bytes."""
    x = xp.asarray(_drawn((1, 1 << 20)))
    out = xp.empty((), "f4")
    try:
        ts.sum(x, out=out, workspace=xp.empty(0, "u1"))
    except ValueError as error:
        found = [int(word) for word in str(error).split() if word.isdigit()]
        return x, out, max(found)
    raise NotHere("ts.sum needs no workspace")


def workspace(xp: ModuleType, ts: ModuleType) -> None:
    x, out, size = _needs_workspace(xp, ts)
    ts.sum(x, out=out, workspace=xp.empty(size, "u1"))
    _expect(abs(float(out) - float(x.sum())) < 1, "another sum")


def captured_workspace(xp: ModuleType, ts: ModuleType) -> None:
    """Refused without, replayed with."""
    x, out, size = _needs_workspace(xp, ts)
    held = xp.empty(size, "u1")
    ts.warmup(ts.sum)
    stream = xp.cuda.Stream(non_blocking=True)
    xp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        _refused(RuntimeError, "workspace=", lambda: ts.sum(x, out=out))
        ts.sum(x, out=out, workspace=held)
        graph = stream.end_capture()
        x *= 2
        graph.launch(stream)
        stream.synchronize()
    _expect(abs(float(out) - float(x.sum())) < 2, "the replay gives another sum")


def nothing_allocated(xp: ModuleType, ts: ModuleType) -> None:
    x = xp.asarray(_drawn())
    out, pool = xp.empty_like(x), xp.get_default_memory_pool()
    ts.softmax(x, out=out)
    before = pool.used_bytes(), pool.total_bytes()
    for _ in range(10):
        ts.softmax(x, out=out)
    _expect((pool.used_bytes(), pool.total_bytes()) == before, "a call with out= takes memory")


CHECKS: dict[str, Check] = {
    "PyTorch's tensors": torch,
    "a stream of PyTorch's": torch_stream,
    "JAX's arrays": jax,
    "Numba's arrays": numba,
    "libraries mixed": mixed,
    "sums without axes, and of nothing": reductions,
    "scalars on the GPU": scalars,
    "arrays that overlap": overlap,
    "workspace=": workspace,
    "a captured graph with workspace": captured_workspace,
    "nothing is allocated": nothing_allocated,
}
