"""set_scope: where a temporary lives."""

from typing import Literal

from ...ir.nodes import Scope
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.layouts import declared
from ..edit.tree import CannotApply, buffer_named
from ..examples import RANKS, TWICE


class SetScope(Primitive):
    """Says where a temporary lives: on the stack, on the heap, `auto`, where lowering decides by
    size, or in registers; on a GPU in memory that the threads of a block share, that each thread
    has for itself, that is constant during a launch, or that is the GPU's own; or in memory that
    each rank has for itself.

    A buffer in registers has a small constant size. It is vectors there if every access of it is a
    whole vector at a constant place, once loops are unrolled; short serial loops over it are
    unrolled for that. If not, it is a local array: `check` and `show` say so, and why.
    """

    buffer: str
    scope: Literal[
        "auto", "heap", "stack", "register", "shared", "local", "constant", "device", "rank"
    ]

    aliases = (
        "set_buffer",
        "SetBuffer",
        "set_memory",
        "tag_gpu_global",
        "tag_gpu_shared",
        "tag_gpu_local",
        "tag_gpu_constant",
    )

    def apply(self, state: Scheduled) -> Scheduled:
        scope = buffer_named(state.kernel, self.buffer).scope
        if scope is Scope.GLOBAL:
            reason = f"'{self.buffer}' is an argument: the caller decides where it lives"
            raise CannotApply(reason)
        if scope is Scope.MESSAGE:
            raise CannotApply(f"'{self.buffer}' is a message, which ranks send and receive")
        return declared(state, self.buffer, scope=Scope(self.scope))

    EXAMPLES = (
        Example("On the heap", TWICE, "- set_scope: {buffer: t, scope: heap}"),
        Example(
            "An argument",
            TWICE,
            "- set_scope: {buffer: y, scope: heap}",
            refused="'y' is an argument: the caller decides where it lives",
        ),
        Example(
            "Memory of the GPU that the host would compute with",
            TWICE,
            "- set_scope: {buffer: t, scope: device}",
            refused="block 't' would compute with 't' outside of a launch, and the host only copies"
            " device memory",
        ),
        Example(
            "Memory of the GPU that one launch uses: no launch allocates it",
            TWICE,
            "- merge: {loops: [t.i, y.i], as: [z.i]}\n"
            "- bind: {loop: z.i, axis: blockIdx.x}\n"
            "- set_scope: {buffer: t, scope: device}",
        ),
        Example(
            "A rank's own memory that another rank reads",
            RANKS,
            "- set_scope: {buffer: t, scope: rank}",
            refused="the proof was refused: y[i=4] needs t[3] from 't', but rank 1 has neither"
            " computed nor received it",
        ),
        Example(
            "A rank's own where there are no ranks",
            TWICE,
            "- set_scope: {buffer: t, scope: rank}",
            refused="block 't' accesses 't', which each rank has for itself, in no distributed"
            " loop",
        ),
    )
