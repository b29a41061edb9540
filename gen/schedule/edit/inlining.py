"""Expressions put in place of reads, with the sources of the reads that result.

Input: a consumer, a producer that stores one expression at its own iteration variables, and the
flow. Output: the consumer with the expression in place of its reads from the producer, and the
sources of its new reads in their textual order.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from ...ir.nodes import Block, Destination, Expr, Load, Node, Origin, Store, Var
from ...ir.walk import map_children, substitute
from ...poly.certificate import Flow, Source
from .tree import CannotApply

Inlined = tuple[Expr, tuple[Source, ...]]


def inline_reads(consumer: Block, producer: Block, flow: Flow) -> tuple[Block, tuple[Source, ...]]:
    """The consumer without reads from the producer, and the sources of its reads."""
    assert isinstance(producer.body, Store)
    variables = [cast(Var, i).name for i in producer.body.target.indices]
    value = producer.body.value
    found: list[Source] = []
    count = 0

    def go(n: Node) -> Node:
        nonlocal count
        if not isinstance(n, Load):
            return map_children(n, go)
        source = flow[consumer.name, count]
        count += 1
        if producer.name not in source.writers:
            found.append(source)
            return map_children(n, go)
        start = len(found)
        arguments: dict[str, Inlined] = {}
        for name, i in zip(variables, n.indices, strict=True):
            before = len(found)
            new = cast(Expr, go(i))
            arguments[name] = new, tuple(found[before:])
        del found[start:]
        expr, sources = instantiate(producer.name, value, arguments, flow)
        found.extend(sources)
        return expr

    body = cast(Store, go(consumer.body))
    origin = consumer.origin or _origin(consumer, producer)
    return replace(consumer, body=body, origin=origin), tuple(found)


def _origin(copy: Block, producer: Block) -> Origin | None:
    """What a copy computes once the expression of the copied values is in it."""
    match copy.body, producer.body:
        case Store(_, Load(_, indices)), Store(Destination(_, at)) if producer.origin:
            values = {cast(Var, v).name: i for v, i in zip(at, indices, strict=True)}
            return substitute(producer.origin, values)
        case _:
            return None


def instantiate(block: str, value: Expr, arguments: Mapping[str, Inlined], flow: Flow) -> Inlined:
    """A block's expression at given iteration variables, with the sources of its reads."""
    found: list[Source] = []
    count = 0

    def go(n: Node) -> Node:
        nonlocal count
        match n:
            case Var(name) if name in arguments:
                expr, sources = arguments[name]
                found.extend(sources)
                return expr
            case Load():
                found.append(flow[block, count])
                count += 1
        return map_children(n, go)

    return cast(Expr, go(value)), tuple(found)


def require_plain_indices(block: Block) -> None:
    """Refuses a block whose place does not name its instance, variable for variable."""
    assert isinstance(block.body, Store)
    indices = block.body.target.indices
    named = [i.name for i in indices if isinstance(i, Var)]
    if len(named) != len(indices) or sorted(named) != sorted(v.name for v in block.iters):
        name = block.name
        raise CannotApply(
            f"the indices that block '{name}' writes are not its iteration variables, each once"
        )
