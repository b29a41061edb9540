"""Which loops a read shares with its writer, read off their places.

Input: a tree and a flow. Output: the flow with a loop added to `shared` wherever reader and writer
name the same place only in the same iteration of it. A stronger claim, and so one that the
prover checks; it lets the temporary live inside the loop.
"""

from collections.abc import Iterable
from dataclasses import replace

from ..ir.nodes import Block, Expr, Kernel
from ..ir.walk import blocks, loads, substitute, targets
from ..poly.certificate import Flow, Source
from .bounds import Linear, linear
from .edit import loops_around, tree


def share_loop(kernel: Kernel, flow: Flow, var: str) -> Flow:
    """The flow with `var` shared by the reads that can take their value in its iteration alone."""
    root = tree(kernel)
    by_name = {b.name: b for b in blocks(root)}
    around = {name: tuple(x.var for x in loops_around(root, b)) for name, b in by_name.items()}

    def with_loop(reader: str, number: int, source: Source) -> Source:
        everyone = (reader, *source.writers)
        inside = all(var in around[name] for name in everyone)
        if source.initial or not source.writers or not inside or var in source.shared:
            return source
        load = loads(by_name[reader].body)[number]
        read = in_loops(by_name[reader], load.indices)
        writers = (by_name[name] for name in source.writers)
        if all(_fixes(read, _places(w, load.buffer), var, source.shared) for w in writers):
            return replace(source, shared=(*source.shared, var))
        return source

    return {(b, n): with_loop(b, n, source) for (b, n), source in flow.items()}


def in_loops(block: Block, indices: Iterable[Expr]) -> tuple[Expr, ...]:
    """Indices in a block's iteration variables, in the variables of its loops."""
    values = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}
    return tuple(substitute(i, values) for i in indices)


def _places(writer: Block, buffer: str) -> tuple[Expr, ...]:
    places = (t.indices for t in targets(writer.body) if t.buffer == buffer)
    return in_loops(writer, next(places, ()))


def _fixes(
    read: tuple[Expr, ...], written: tuple[Expr, ...], var: str, shared: tuple[str, ...]
) -> bool:
    """Whether some axis has one index, of `var` and loops that are shared, in both."""

    def only(form: Linear) -> bool:
        names = {getattr(atom, "name", None) for atom in form.terms}
        return var in names and None not in names and names <= {var, *shared}

    forms = [(linear(a), linear(b)) for a, b in zip(read, written, strict=False)]
    return any(a == b and only(a) for a, b in forms)
