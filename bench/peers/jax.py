"""JAX on the CPU, jitted for the very shape. Results are its own arrays, from kept memory."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ..worker import Array, Call, Maker

VERSION = jax.__version__


def _bordered(stencil: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    """Borders repeated, in strips of their own: padding all of x would be a pass over memory."""

    def padded(part: jax.Array) -> jax.Array:
        return stencil(jnp.pad(part, 1, mode="edge"))

    y = jnp.zeros_like(x).at[1:-1, 1:-1].set(stencil(x))
    y = y.at[:1].set(padded(x[:2])[:1]).at[-1:].set(padded(x[-2:])[1:])
    y = y.at[1:-1, :1].set(padded(x[:, :2])[1:-1, :1])
    return y.at[1:-1, -1:].set(padded(x[:, -2:])[1:-1, 1:])


def _mean3x3(p: jax.Array) -> jax.Array:
    rows = p[:-2] + p[1:-1] + p[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) * (1 / 9)


def _sobel3x3(p: jax.Array) -> jax.Array:
    smooth, slope = p[:-2] + 2 * p[1:-1] + p[2:], p[:-2] - p[2:]
    across = smooth[:, :-2] - smooth[:, 2:]
    along = slope[:, :-2] + 2 * slope[:, 1:-1] + slope[:, 2:]
    return jnp.sqrt((across * across + along * along) * (1 / 32))


def _layer_norm(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * weight + bias


_reductions = {"sum": jnp.sum, "mean": jnp.mean, "max": jnp.max, "argmax": jnp.argmax}
_FUNCTIONS: dict[str, Callable[..., jax.Array]] = {
    "matmul": jnp.matmul,
    "linear": lambda x, w, b: jnp.maximum(x @ w + b, 0),
    "softmax": lambda x: jax.nn.softmax(x, axis=-1),
    "layer_norm": _layer_norm,
    "exp": jnp.exp,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "clamp": lambda x: jnp.clip(x, 0, 1),
    "transpose": jnp.transpose,
    "cumsum": lambda x: jnp.cumsum(x, axis=-1),
    "grey": lambda rgb: rgb @ jnp.array([0.2125, 0.7154, 0.0721], jnp.float32),
    "blur": lambda x: _bordered(_mean3x3, x),
    "sobel": lambda x: _bordered(_sobel3x3, x),
    "unsharp": lambda x: 2 * x - _bordered(_mean3x3, x),
    **{
        f"{name}_{place}": lambda x, f=f, axis=axis: f(x, axis=axis)
        for name, f in _reductions.items()
        for axis, place in ((0, "first"), (1, "last"))
    },
}  # fmt: skip


def _maker(name: str) -> Maker:
    def make(out: Array | None, *arguments: Array) -> Call:
        arrays = [jnp.asarray(x) for x in arguments]
        jitted = jax.jit(_FUNCTIONS[name])
        return lambda: jitted(*arrays).block_until_ready()

    return make


KERNELS = {name: _maker(name) for name in _FUNCTIONS}
