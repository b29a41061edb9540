"""Whether a kernel's result depends on where along an axis an element is.

Input: a spec. Output: False where every statement treats the elements of the core axis alike: the
index of that axis stands in the places of arrays alone, as it is. Then a caller may put several
axes into one, in whatever order memory has them.
"""

from ..ir import nodes as ir
from ..ir.algebra import index
from ..ir.walk import variables
from .body.program import Definition, For, Part
from .model import KernelSpec
from .shapes import names_in
from .syntax import nodes as syntax

_OF_POSITIONS = frozenset({ir.Combiner.ARGMIN, ir.Combiner.ARGMAX})


def is_ordered(spec: KernelSpec) -> bool:
    """For a kernel with one core dim."""
    names = (names_in(size) for a in spec.arguments for size in a.shape)
    core = frozenset[str]().union(*names) - {spec.loop_dim}
    return any(_part_is_ordered(part, core) for part in spec.program.body)


def _part_is_ordered(part: Part, core: frozenset[str]) -> bool:
    if isinstance(part, For):
        along = part.over.names() & core
        return bool(along) or any(_part_is_ordered(p, core) for p in part.body)
    return _definition_is_ordered(part, core)


def _definition_is_ordered(d: Definition, core: frozenset[str]) -> bool:
    along: set[str] = set()
    for over in d.loops:
        if over.names() & (core | along):
            along.add(over.index)
            if over.lower != index(0) or not isinstance(over.upper, ir.Var) or over.names() & along:
                return True
    parts = [d.target, d.value, *([d.guard] if d.guard is not None else [])]
    of_positions = bool(along) and d.combiner in _OF_POSITIONS
    tested = any(along & variables(c) for c in d.conditions)
    return of_positions or tested or any(_tells_places(part, along) for part in parts)


def _tells_places(expr: syntax.Expr, along: set[str]) -> bool:
    """Whether an index stands elsewhere than as a place, or a place is no index as it is."""
    match expr:
        case syntax.Name(name):
            return name in along
        case syntax.Element(_, indices):
            return not all(isinstance(i, syntax.Name) for i in indices)
        case _:
            return any(_tells_places(part, along) for part in syntax.parts(expr))
