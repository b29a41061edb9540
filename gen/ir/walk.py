"""Walking, asking and rebuilding trees.

Everything here is a pure function on nodes; a tree in which nothing changed is returned as the
same object. No function here makes one that calls itself: that is a cycle, and would keep the tree
that it was asked about until Python looks for cycles.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from operator import is_not
from types import MappingProxyType
from typing import Any, TypeVar, assert_never, cast

from . import nodes as ir
from .algebra import simplify

N = TypeVar("N", bound=ir.Node)
A = TypeVar("A")

_NONE: frozenset[str] = frozenset()


def _holders(kind: type[ir.Node]) -> tuple[str, ...]:
    """The fields that may hold nodes."""
    mine = (f for f in fields(kind) if f.name != "span" and not _holds_none(f.type))
    return tuple(f.name for f in mine)


def _holds_none(declared: object) -> bool:
    return isinstance(declared, type) and not issubclass(declared, ir.Node | tuple)


def _kinds(kind: type[ir.Node]) -> Iterator[type[ir.Node]]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds(below)


_HOLDERS = {kind: _holders(kind) for kind in _kinds(ir.Node)}
_OTHERS = {
    kind: tuple(f.name for f in fields(kind) if f.name not in held)
    for kind, held in _HOLDERS.items()
}


def remembered(f: Callable[[N], A]) -> Callable[[N], A]:
    """A pure function of a node, asked once of each: trees share what a step leaves alone, so what
    is known of their parts carries over. Its answer is immutable, as the node is: what changes
    while something is worked on is in a workbench (`poly.workbench`).
    """

    def ask(node: N) -> A:
        try:
            known: A = node._answers[f]
            return known
        except AttributeError:
            object.__setattr__(node, "_answers", {})
        except KeyError:
            pass
        answer = node._answers[f] = f(node)
        return answer

    return wraps(f)(ask)


def children(node: ir.Node) -> tuple[ir.Node, ...]:
    """The nodes directly below, in field order."""
    try:
        return node._children
    except AttributeError:
        found = _children(node)
        object.__setattr__(node, "_children", found)
        return found


def _children(node: ir.Node) -> tuple[ir.Node, ...]:
    found: list[ir.Node] = []
    for name in _HOLDERS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, ir.Node):
            found.append(value)
        elif isinstance(value, tuple):
            found += [item for item in value if isinstance(item, ir.Node)]
    return tuple(found)


def walk(node: ir.Node) -> Sequence[ir.Node]:
    """The node and all below it, parents first, in textual order."""
    found, left = list[ir.Node](), [node]
    while left:
        first = left.pop()
        found.append(first)
        if below := children(first):
            left += below[::-1]
    return found


def map_children(node: N, f: Callable[[Any], Any]) -> N:
    """The node with `f` applied to each child; the same object where nothing changed."""
    if not children(node):
        return node
    values: dict[str, Any] = {}
    changed = False
    for name in _HOLDERS[type(node)]:
        value = values[name] = getattr(node, name)
        if isinstance(value, ir.Node):
            values[name] = new = f(value)
            changed |= new is not value
        elif isinstance(value, tuple) and value:
            new = tuple([f(item) if isinstance(item, ir.Node) else item for item in value])
            if any(map(is_not, new, value)):
                values[name], changed = new, True
    if not changed:
        return node
    # As `dataclasses.replace`, which took a fifteenth of the generator's time.
    return type(node)(**values, **{name: getattr(node, name) for name in _OTHERS[type(node)]})


def substitute(node: N, values: Mapping[str, ir.Expr]) -> N:
    """`values` in place of the variables that they name, simplified on the way up, where that keeps
    what is loaded: a block's reads are known by their numbers.

    Iteration variables are local to their block: replacing loop variables in a tree touches the
    blocks' bindings and predicates, never a body's own names, since those hold no dot.
    """
    return cast(N, _substituted(node, values))


def _substituted(node: ir.Node, values: Mapping[str, ir.Expr]) -> ir.Node:
    if isinstance(node, ir.Var):
        return values.get(node.name, node)
    if values.keys().isdisjoint(variables(node)):
        return node
    new = map_children(node, lambda n: _substituted(n, values))
    if not isinstance(new, ir.Binary) or new is node:
        return new
    simple = simplify(new)
    keeps = not accessed(node) or len(loads(simple)) == len(loads(new))
    return simple if keeps else new


@remembered
def variables(node: ir.Node) -> frozenset[str]:
    """Names of all variables that occur."""
    if isinstance(node, ir.Var):
        return frozenset((node.name,))
    return _NONE.union(*map(variables, children(node)))


@remembered
def accessed(node: ir.Node) -> frozenset[str]:
    """The buffers that are read or written, in a statement or below."""
    here = (node.buffer,) if isinstance(node, ir.Load | ir.Destination) else ()
    return _NONE.union(here, *map(accessed, children(node)))


@remembered
def nested(node: ir.Node) -> tuple[ir.Stmt, ...]:
    """The statements directly inside, in order."""
    return tuple(s for s in children(node) if isinstance(s, ir.Stmt))


@remembered
def blocks(node: ir.Node) -> tuple[ir.Block, ...]:
    """The blocks, in textual order."""
    if isinstance(node, ir.Block):
        return (node,)
    return tuple(b for s in nested(node) for b in blocks(s))


@remembered
def loops(node: ir.Node) -> tuple[ir.Loop, ...]:
    """The loops, outer ones first, in textual order."""
    here = (node,) if isinstance(node, ir.Loop) else ()
    return (*here, *(loop for s in nested(node) for loop in loops(s)))


@remembered
def nests(node: ir.Node) -> tuple[tuple[ir.Block, tuple[ir.Loop, ...]], ...]:
    """The blocks, in textual order, each with the loops around it, outermost first."""
    if isinstance(node, ir.Block):
        return ((node, ()),)
    here = (node,) if isinstance(node, ir.Loop) else ()
    return tuple((b, (*here, *around)) for s in nested(node) for b, around in nests(s))


@remembered
def statements(node: ir.Node) -> tuple[ir.Stmt, ...]:
    """The statements, outer ones first, in textual order; expressions are not looked into."""
    here = (node,) if isinstance(node, ir.Stmt) else ()
    return (*here, *(s for child in nested(node) for s in statements(child)))


@remembered
def left(loop: ir.Loop) -> tuple[ir.Leave, ...]:
    """The statements that end the loop."""
    return tuple(s for part in nested(loop) for s in _leaves(part))


def _leaves(stmt: ir.Stmt) -> Iterator[ir.Leave]:
    if isinstance(stmt, ir.Leave):
        yield stmt
    elif not isinstance(stmt, ir.Loop):
        for part in nested(stmt):
            yield from _leaves(part)


@remembered
def loads(body: ir.Node) -> tuple[ir.Load, ...]:
    """The loads below, in textual order: a block's reads are numbered so, from 0.

    An Update's reads of its own targets are implied and have no number.
    """
    if isinstance(body, ir.Stmt):
        return tuple(load for n in children(body) for load in loads(n))
    return tuple(n for n in walk(body) if isinstance(n, ir.Load))


@remembered
def externals(node: ir.Node) -> tuple[ir.External, ...]:
    """The external functions that are called, each once."""
    if isinstance(node, ir.Stmt):
        return tuple(dict.fromkeys(f for n in children(node) for f in externals(n)))
    called = (n.function for n in walk(node) if isinstance(n, ir.Call))
    return tuple(dict.fromkeys(f for f in called if isinstance(f, ir.External)))


@remembered
def buffers(kernel: ir.Kernel) -> Mapping[str, ir.Buffer]:
    """The arguments and the temporaries, by name."""
    temporaries = (b for s in statements(kernel) if isinstance(s, ir.Allocate) for b in s.buffers)
    both = (*(p.buffer for p in kernel.parameters), *temporaries)
    return MappingProxyType({b.name: b for b in both})


def targets(body: ir.Store | ir.Init | ir.Update) -> tuple[ir.Destination, ...]:
    match body:
        case ir.Store(target, _):
            return (target,)
        case ir.Init(_, targets_) | ir.Update(_, targets_, _):
            return targets_
        case _:
            assert_never(body)


def seq(statements: tuple[ir.Stmt, ...]) -> ir.Stmt:
    """The statements in order, nested sequences flattened, one alone as itself."""
    flat = tuple(inner for s in statements for inner in (s.body if isinstance(s, ir.Seq) else (s,)))
    return flat[0] if len(flat) == 1 else ir.Seq(flat)


# ---------------------------------------------------------------- editing trees


def map_nested(stmt: ir.Stmt, f: Callable[[ir.Stmt], ir.Stmt]) -> ir.Stmt:
    """The statement with `f` applied to each directly inside, sequences flattened: what a walk does
    with all kinds of statements but its own.
    """
    if isinstance(stmt, ir.Block):
        return stmt
    new = map_children(stmt, lambda n: f(n) if isinstance(n, ir.Stmt) else n)
    return seq(new.body) if isinstance(new, ir.Seq) and new is not stmt else new


def replace_stmt(stmt: ir.Stmt, old: ir.Stmt, new: ir.Stmt) -> ir.Stmt:
    """The tree with the node `old` (by identity) replaced."""
    if stmt is old:
        return new
    if id(old) not in _held(stmt):
        return stmt
    return map_nested(stmt, lambda s: replace_stmt(s, old, new))


def ancestors(stmt: ir.Stmt, node: ir.Stmt) -> tuple[ir.Stmt, ...]:
    """The statements from the root down to just above `node` (by identity)."""
    found = list[ir.Stmt]()
    while stmt is not node:
        found.append(stmt)
        below = next((child for child in nested(stmt) if id(node) in _held(child)), None)
        if below is None:
            raise ValueError("the node is not in the tree")
        stmt = below
    return tuple(found)


@remembered
def _held(stmt: ir.Stmt) -> frozenset[int]:
    """The identities of the statement and of all inside."""
    return frozenset((id(stmt),)).union(*map(_held, nested(stmt)))
