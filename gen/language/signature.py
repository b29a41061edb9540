"""The gufunc-style signature: which axes of each argument are its core, which is looped over."""

from collections.abc import Mapping
from dataclasses import replace

from ..errors import Span, SpecError
from ..ir import nodes as ir
from . import yaml
from .model import Argument, Signature, Size, size_text
from .shapes import names_in, read_size, same_size
from .syntax import grammar
from .syntax import nodes as syntax


def read_signature(node: yaml.Scalar, scalars: Mapping[str, str]) -> Signature:
    """The signature in a text such as `(m,k),(k,n)->(m,n)` or `(n),(k)->(n - k + 1)`.

    scalars: the element types of the scalars. Raises SpecError.
    """
    left, arrow, right = node.text.partition("->")
    sides = [_groups(left) if left.strip() else [], _groups(right)]
    if not arrow or None in sides:
        raise SpecError(
            f"'{node.text[:64]}' is not a signature",
            node.span,
            "write it as NumPy's gufuncs do: (m,k),(k,n)->(m,n)",
        )
    return Signature(
        *(tuple(_axes(group, node, scalars) for group in side or ()) for side in sides)
    )


def _groups(text: str) -> list[str] | None:
    """The texts inside the outermost parentheses of `(m,k),(k,n)`; None for anything else."""
    groups: list[str] = []
    depth = start = 0
    between = ""
    for k, character in enumerate(text):
        if depth == 0 and character != "(":
            between += character
        if depth == 0 and character == "(":
            if between.strip() != ("," if groups else ""):
                return None
            start, between = k + 1, ""
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ")":
            groups.append(text[start:k])
        if depth < 0:
            return None
    return None if depth or between.strip() or not groups else groups


def _axes(group: str, node: yaml.Scalar, scalars: Mapping[str, str]) -> tuple[Size, ...]:
    if not group.strip():
        return ()
    match grammar.expression(replace(node, text=f"axes[{group}]")):
        case syntax.Element(_, axes):
            return tuple(read_size(axis, scalars) for axis in axes)
        case _:
            raise SpecError(f"'{group[:64]}' are not the axes of an array", node.span)


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
        for axes, argument in zip(shapes, operands, strict=True):
            leading = argument.shape[: len(argument.shape) - len(axes)]
            own = argument.shape[len(leading) :]
            if len(leading) > 1 or len(own) != len(axes) or not all(map(same_size, own, axes)):
                raise SpecError(
                    f"the signature gives '{argument.name}' the core axes {_tuple(axes)}, its shape"
                    f" is {_tuple(argument.shape)}",
                    argument.span,
                )
            loop_dims |= dict.fromkeys(leading)
    named = [dim for dim in loop_dims if isinstance(dim, str)]
    core = [size for shape in signature.inputs + signature.outputs for size in shape]
    used = frozenset[str]().union(*map(names_in, core))
    if len(loop_dims) > 1 or len(named) < len(loop_dims) or used & loop_dims.keys():
        shown = ", ".join(map(size_text, loop_dims))
        raise SpecError(f"the leading axes must be one dim of its own, not {shown}", span)
    return named[0] if named else None


def _tuple(shape: tuple[Size, ...]) -> str:
    return "(" + ", ".join(map(size_text, shape)) + ")"
