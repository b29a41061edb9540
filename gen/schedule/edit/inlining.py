"""Expressions put in place of reads, with the sources of the reads that result.

Input: a consumer, a producer that stores one expression, at its own iteration variables or at
those that loops around both do not fix, and the flow. Output: the consumer with the expression in
place of its reads from the producer, and the sources of its new reads in their textual order.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from ...ir.nodes import (
    Block,
    Destination,
    Expr,
    IterVar,
    Load,
    Loop,
    Node,
    Origin,
    Stmt,
    Store,
    Var,
)
from ...ir.walk import ancestors, map_children, substitute, variables
from ...poly.certificate import Flow, Source
from .tree import CannotApply

Inlined = tuple[Expr, tuple[Source, ...]]


def inline_reads(
    consumer: Block, producer: Block, flow: Flow, shared: Mapping[str, Expr] | None = None
) -> tuple[Block, tuple[Source, ...]]:
    """The consumer without reads from the producer, and the sources of its reads.

    shared: the producer's iteration variables that its place does not name, in the consumer's.
    """
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
        arguments: dict[str, Inlined] = {name: (e, ()) for name, e in (shared or {}).items()}
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
    if unnamed(block):
        name = block.name
        raise CannotApply(
            f"the indices that block '{name}' writes are not its iteration variables, each once"
        )


def unnamed(block: Block) -> tuple[IterVar, ...]:
    """The iteration variables that the place which the block writes does not name. Refuses one
    that names anything else, or one of them twice.
    """
    assert isinstance(block.body, Store)
    indices = block.body.target.indices
    named = [i.name for i in indices if isinstance(i, Var)]
    own = [v.name for v in block.iters]
    if len(named) != len(indices) or len({*named}) != len(named) or not {*named} <= {*own}:
        raise CannotApply(
            f"the indices that block '{block.name}' writes are not its iteration variables, each"
            " once"
        )
    return tuple(v for v in block.iters if v.name not in named)


def in_consumer(root: Stmt, producer: Block, consumer: Block) -> dict[str, Expr]:
    """The producer's iteration variables that its place does not name, as those of a consumer: in
    the same iteration of the loops around both, in which it reads what was written there. Refuses
    where loops around the producer alone give them their values.
    """
    inside = {loop.var for loop in ancestors(root, consumer) if isinstance(loop, Loop)}
    bound = dict(zip(consumer.bindings, (v.name for v in consumer.iters), strict=True))
    values: dict[str, Expr] = {}
    bindings = dict(zip((v.name for v in producer.iters), producer.bindings, strict=True))
    for v in unnamed(producer):
        binding = bindings[v.name]
        if not variables(binding) <= inside or binding not in bound:
            own = " and ".join(f"'{name}'" for name in sorted(variables(binding)))
            raise CannotApply(
                f"block '{producer.name}' writes each place once an iteration of {own}, which is"
                f" not around block '{consumer.name}' alike",
                "merge the loops, or give the temporary an axis for that index",
            )
        values[v.name] = Var(bound[binding])
    return values
