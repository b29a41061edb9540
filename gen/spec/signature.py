"""The gufunc-style signature: which axes of each argument are its core, which is looped over."""

import re

from ..errors import Span, SpecError
from ..ir import nodes as ir
from . import yaml
from .model import Argument, Signature, Size


def sizes(text: str, span: Span) -> tuple[Size, ...]:
    """The axes in a text such as `m, 3`. Raises SpecError."""
    items = [item.strip() for item in text.split(",")] if text.strip() else []
    for item in items:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}|[0-9]{1,9}", item) or "__" in item:
            raise SpecError(f"'{item[:64]}' is not a dim or a size", span)
    return tuple(int(item) if item.isdigit() else item for item in items)


def read_signature(node: yaml.Scalar) -> Signature:
    """The signature in a text such as `(m,k),(k,n)->(m,n)`. Raises SpecError."""
    text = node.text.replace(" ", "")
    operand = r"\([A-Za-z0-9_,]*\)"
    operands = rf"{operand}(?:,{operand})*"
    match = re.fullmatch(rf"({operands})?->({operands})", text)
    if not match:
        raise SpecError(
            f"'{node.text[:64]}' is not a signature",
            node.span,
            "write it as NumPy's gufuncs do: (m,k),(k,n)->(m,n)",
        )
    sides = [
        tuple(sizes(shape, node.span) for shape in re.findall(r"\(([^()]*)\)", side or ""))
        for side in match.groups()
    ]
    return Signature(*sides)


def loop_dim_of(signature: Signature, arguments: tuple[Argument, ...], span: Span) -> str | None:
    """The dim that the leading axes flatten to: first in the arguments that have it.

    None where no argument has leading axes. Raises SpecError where shapes and signature differ.
    """
    inputs = [a for a in arguments if a.intent is not ir.Intent.OUT]
    outputs = [a for a in arguments if a.intent is not ir.Intent.IN]
    loop_dims: dict[Size, None] = {}
    for side, shapes, operands in (
        ("inputs", signature.inputs, inputs), ("outputs", signature.outputs, outputs)
    ):  # fmt: skip
        if len(shapes) != len(operands):
            raise SpecError(
                f"the signature has {len(shapes)} {side}, the arguments {len(operands)}",
                span,
                "an inout argument is both",
            )
        for core, argument in zip(shapes, operands, strict=True):
            leading = argument.shape[: len(argument.shape) - len(core)]
            if argument.shape[len(leading) :] != core or len(leading) > 1:
                raise SpecError(
                    f"the signature gives '{argument.name}' the core axes {_tuple(core)}, its shape"
                    f" is {_tuple(argument.shape)}",
                    argument.span,
                )
            loop_dims |= dict.fromkeys(leading)
    named = [dim for dim in loop_dims if isinstance(dim, str)]
    core_dims = {s for shape in signature.inputs + signature.outputs for s in shape}
    if len(loop_dims) > 1 or len(named) < len(loop_dims) or core_dims & loop_dims.keys():
        shown = ", ".join(str(dim) for dim in loop_dims)
        raise SpecError(f"the leading axes must be one dim of its own, not {shown}", span)
    return named[0] if named else None


def _tuple(shape: tuple[Size, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"
