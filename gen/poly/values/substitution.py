"""Producers inlined at places that depend on data: `t[p[i]]`, where t[v] = f(x[v]), is f(x[p[i]]).

Input: a load of the plain schedule. Output: its producer's expression, with the load's indices for
the iteration variables, at the consumer's place, and the values that the loads in it take. Whatever
data says, the producer writes at its iteration variables, so the element tells the instance; and
its loads take what they take there, which the proof knows for every element.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

import islpy as isl

from ...ir.nodes import Expr, Load, Node, Store, Var
from ...ir.walk import children, loads, substitute
from ..sets.statement import Access, Statement, reads_of
from .flow import Computed, Logical, Values, events_of, through


@final
@dataclass(frozen=True, slots=True)
class Substituted:
    """The expression, a statement whose reads are the loads in it, and their values by number."""

    expr: Expr
    statement: Statement
    reads: Mapping[int, Values]


def substituted(
    consumer: Statement, load: Load, number: int, logical: Logical
) -> Substituted | None:
    """The producer's expression in place of a read of the consumer. None where there are several,
    or where an element does not tell what a load in it takes.
    """
    read = consumer.reads[number]
    value, *others = logical.reads[consumer.name, number]
    if others or not read.free or not isinstance(value, Computed):
        return None
    producer = logical.blocks[value.block]
    body = producer.block.body
    if not isinstance(body, Store) or producer.opaque:
        return None
    pairs = zip(body.target.indices, load.indices, strict=True)
    named = {at.name: index for at, index in pairs if isinstance(at, Var)}
    if set(named) != {v.name for v in producer.block.iters}:
        return None
    expr = substitute(body.value, named)
    block = replace(consumer.block, name=f"{consumer.name} with {value.block} in it")
    statement = replace(consumer, block=block, reads=[])
    storages = {r.storage.name: r.storage for r in (*consumer.reads, *producer.reads)}
    statement.reads.extend(reads_of(statement, expr, consumer.domain, storages))
    reads: dict[int, Values] = {}
    for access, source in zip(statement.reads, _sources(body, load, number), strict=True):
        if source.consumer:
            reads[access.number] = logical.reads[consumer.name, source.number]
            continue
        values = _values(access, producer.reads[source.number], logical)
        if values is None:
            return None
        reads[access.number] = values
    return Substituted(expr, statement, reads)


@final
@dataclass(frozen=True, slots=True)
class _Source:
    """The read that a load in the expression was: the consumer's in an index, or the producer's."""

    consumer: bool
    number: int


def _sources(body: Store, load: Load, number: int) -> Iterator[_Source]:
    """The sources of the loads in the expression, in textual order."""
    inside: dict[str, range] = {}  # what is read in the index that stands for a variable
    first = number + 1
    for at, index in zip(body.target.indices, load.indices, strict=True):
        if isinstance(at, Var):
            inside[at.name] = range(first, first + len(loads(index)))
        first += len(loads(index))

    def go(node: Node, first: int) -> Iterator[_Source]:
        if isinstance(node, Var) and node.name in inside:
            yield from (_Source(True, k) for k in inside[node.name])
        if isinstance(node, Load):
            yield _Source(False, first)
            first += 1
        for child in children(node):
            yield from go(child, first)
            first += len(loads(child))

    return go(body.value, len(loads(body.target)))


def _values(access: Access, source: Access, logical: Logical) -> Values | None:
    """What a load in the expression takes: what the producer's read of that element does. None
    where its instances that read the element do not all take one value.
    """
    here = events_of(access).apply_range(access.place)
    there = events_of(source).apply_range(source.place)
    same = here.apply_range(there.reverse())
    found = through(same, logical.reads[source.statement.name, source.number])
    taken: isl.Set | None = None
    for m in found.values():
        domain = m.domain()
        if not m.is_single_valued() or not (taken is None or taken.is_disjoint(domain)):
            return None
        taken = domain if taken is None else taken.union(domain)
    return found
