"""Whether all that a spec declares is used, and every output is written.

Input: a KernelSpec whose names and shapes are checked. Output: nothing, or a SpecError.
"""

from ..errors import SpecError
from ..ir import nodes as ir
from ..ir import walk
from .body.resolve import definitions
from .model import KernelSpec
from .recipes import mentioned
from .shapes import names_in
from .syntax import nodes as syntax


def check_used(spec: KernelSpec) -> None:
    """Raises SpecError where something is not."""
    all_definitions = list(definitions(spec.program.body))
    written = {target.array for d in all_definitions for target in d.targets}
    arrays_read, names_read = set[str](), set[str]()
    for d in all_definitions:
        if d.others:  # the parts of a tuple need each other
            arrays_read |= {target.array for target in d.targets}
        for expr in (d.value, *d.target.indices, d.guard):
            for part in syntax.descend(expr) if expr else ():
                if isinstance(part, syntax.Element):
                    arrays_read.add(part.array)
                elif isinstance(part, syntax.Name):
                    names_read.add(part.name)
    for a in spec.arguments:
        if a.intent is not ir.Intent.IN and a.name not in written:
            raise SpecError(f"the output '{a.name}' is never written", a.span)
        if a.intent is ir.Intent.IN and a.name not in arrays_read | names_read:
            raise SpecError(f"the argument '{a.name}' is not used", a.span)
    for t in spec.program.temporaries:
        if t.name in written and t.name not in arrays_read | names_read:
            raise SpecError(f"the temporary '{t.name}' is never read", t.span)
    _check_declared(spec, written, names_read)
    called = {
        part.function
        for d in all_definitions
        for expr in (d.value, d.guard)
        for part in (syntax.descend(expr) if expr else ())
        if isinstance(part, syntax.Apply)
    }
    for external in spec.externals:
        if external.name not in called:
            raise SpecError(f"the external function '{external.name}' is not used", external.span)
    for reduction in spec.reductions:
        if all(d.combiner != reduction.name for d in all_definitions):
            raise SpecError(f"the reduction '{reduction.name}' is not used", reduction.span)


def _check_declared(spec: KernelSpec, written: set[str], names_read: set[str]) -> None:
    for temporary in spec.temporaries:
        if temporary.name not in written:
            raise SpecError(f"the temporary '{temporary.name}' is never defined", temporary.span)
    used = names_read.union(
        spec.program.names_in_bounds(),
        mentioned(spec.recipes),
        *(names_in(axis) for a in spec.arguments for axis in a.shape),
        *(names_in(axis) for t in spec.temporaries for axis in t.shape or ()),
        *(walk.variables(size.value) for size in spec.sizes),
    )
    for size in spec.sizes:
        if size.name not in used:
            raise SpecError(f"the size '{size.name}' is not used", size.span)
    for scalar in spec.scalars:
        if scalar.name not in used:
            raise SpecError(f"the scalar '{scalar.name}' is not used", scalar.span)
