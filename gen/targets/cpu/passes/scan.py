"""Running reductions of the lanes of a vector: which loops are those, and their C.

Input: a lowered tree, unrolled and inlined. Output: one in which a vectorized loop that reduces,
for each lane, over the lanes up to it is a statement of all lanes at once: an Update that is marked
as a scan. `ts_scan.h` does it by log-step shifts.

What is a scan of lanes, in a vectorized loop over `lane`:

    [store the identity in t[.. + lane]]
    [if lane < count:]
        for k in range(0, lane + 1):
            t[.. + lane] = combine(t[.. + lane], value(k))

where `value` does not depend on the lane, is read from other buffers than t, and the guard, if
there is one, keeps the first lanes, so that all that the last of them takes is of lanes that run.
A scan backwards is over `range(lane, lanes)`, and its guard keeps the last lanes.
"""

from collections.abc import Mapping
from dataclasses import replace

from ....ir import nodes as ir
from ....ir.algebra import add, conjunction, conjuncts, index
from ....ir.index.inequalities import inequalities
from ....ir.index.linear import linear
from ....ir.types import DType
from ....ir.walk import loads, map_nested, seq, substitute, targets, variables
from ...c.expr import COMBINE, suffix
from ..updates import active_or_identity, store
from ..vectors.expr import Vectors
from ..vectors.forms import WORDS, moves_alone
from ..vectors.masks import All, Bits
from ..vectors.prelude import Parts
from .unroll import has_vector_form, in_lanes

SCAN = "scan"  # annotates a block; the value is the variable of the loop that it stands for
BACK = "scan back"  # the same, of the lanes from each one on
ANEW = "scan anew"  # ... and of the block that stores the identity before; without: added to


def scans(stmt: ir.Stmt, dtypes: Mapping[str, DType]) -> ir.Stmt:
    """The tree with the scans of lanes marked. dtypes: of all buffers."""
    match stmt:
        case ir.Loop(var, _, _, ir.LoopKind.VECTORIZED):
            body = _marked(stmt, dtypes)
            return replace(stmt, body=body) if in_lanes(body, var) else stmt
        case _:
            return map_nested(stmt, lambda s: scans(s, dtypes))


def _marked(lanes: ir.Loop, dtypes: Mapping[str, DType]) -> ir.Stmt:
    body = lanes.body
    statements = list(body.body) if isinstance(body, ir.Seq) else [body]
    result: list[ir.Stmt] = []
    for s in statements:
        found = _scan(s, lanes, dtypes)
        if found is None:
            result.append(s)
            continue
        start = result.pop() if result and _starts(result[-1], found) else None
        note = ((ANEW, start.name),) if isinstance(start, ir.Block) else ()
        result.append(replace(found, annotations=(*found.annotations, *note)))
    return seq(tuple(result))


def _scan(stmt: ir.Stmt, lanes: ir.Loop, dtypes: Mapping[str, DType]) -> ir.Block | None:
    """The scan of lanes that a statement of a vectorized loop is."""
    lane = lanes.var
    match stmt:
        case ir.If(condition, ir.Loop() as loop):
            inner = _scan(loop, lanes, dtypes)
            if inner is None:
                return None
            block = replace(inner, predicate=conjunction(condition, inner.predicate))
        case ir.Loop(k, lower, upper, ir.LoopKind.SERIAL, ir.Block() as inside):
            way = _way(lower, upper, lanes)
            if way is None or not _runs_over(inside, k, lane):
                return None
            block = substitute(inside, {k: ir.Var(lane)})
            block = replace(block, annotations=(*block.annotations, (way, k)))
        case _:
            return None
    back = _is_back(block)
    whole = all(_keeps_one_end(p, lane, last=back) for p in conjuncts(block.predicate))
    words = all(dtypes[t.buffer] in WORDS for t in targets(block.body))
    return block if whole and words and has_vector_form(block, lane, dtypes) else None


def _way(lower: ir.Expr, upper: ir.Expr, lanes: ir.Loop) -> str | None:
    """Which scan a loop over so many lanes may be."""
    ends, lane = (linear(lower), linear(upper)), linear(ir.Var(lanes.var))
    if ends == (linear(index(0)), lane + 1):
        return SCAN
    return BACK if ends == (lane, linear(lanes.upper)) else None


def _runs_over(block: ir.Block, k: str, lane: str) -> bool:
    match block.body:
        case ir.Update(combiner, (target,), (value,)) if combiner in COMBINE:
            return (
                k not in variables(target) | variables(block.predicate)
                and lane in variables(target)
                and lane not in variables(value)
                and k in variables(value)
                and all(load.buffer != target.buffer for load in loads(value))
            )
        case _:
            return False


def _keeps_one_end(guard: ir.Expr, lane: str, *, last: bool) -> bool:
    """Whether a guard leaves out no lane before one that it keeps; last: none after."""
    if lane not in variables(guard):
        return True
    forms = inequalities(guard)
    return forms is not None and all(
        moves_alone(form, lane) and (form.coefficient(lane) > 0) is last for form in forms
    )


def _starts(stmt: ir.Stmt, scan: ir.Block) -> bool:
    """Whether a statement stores the identity where the scan goes, in the same lanes."""
    match stmt:
        case ir.Block(body=ir.Init(combiner, places)):
            same = isinstance(scan.body, ir.Update) and scan.body.combiner == combiner
            guards = set(conjuncts(stmt.predicate)) == set(conjuncts(scan.predicate))
            return same and guards and places == targets(scan.body)
        case _:
            return False


def written_out(stmt: ir.Stmt, lanes: ir.Loop | None = None) -> ir.Stmt:
    """The tree with the scans of lanes as the loops that they stand for: `lanes` is the vectorized
    loop around.
    """
    match stmt:
        case ir.Block() if marked(stmt):
            assert lanes is not None
            return _written_out(stmt, lanes)
        case ir.Loop(_, _, _, ir.LoopKind.VECTORIZED):
            return replace(stmt, body=written_out(stmt.body, stmt))
        case _:
            return map_nested(stmt, lambda s: written_out(s, lanes))


def _written_out(block: ir.Block, lanes: ir.Loop) -> ir.Stmt:
    assert isinstance(block.body, ir.Update)
    lane, back = ir.Var(lanes.var), _is_back(block)
    notes = dict(block.annotations)
    k, start = str(notes.pop(BACK if back else SCAN)), notes.pop(ANEW, None)
    (value,) = block.body.values
    whole = replace(block, annotations=tuple(notes.items()))
    each = substitute(value, {lane.name: ir.Var(k)})
    term = replace(whole, body=replace(block.body, values=(each,)))
    lower, upper = (lane, lanes.upper) if back else (index(0), add(lane, 1))
    loop = ir.Loop(k, lower, upper, ir.LoopKind.SERIAL, term)
    if start is None:
        return loop
    identity = ir.Init(block.body.combiner, block.body.targets)
    return seq((replace(whole, name=str(start), body=identity, initialises=False), loop))


def marked(block: ir.Block) -> bool:
    return any(key in (SCAN, BACK) for key, _ in block.annotations)


def _is_back(block: ir.Block) -> bool:
    return any(key == BACK for key, _ in block.annotations)


def vector(block: ir.Block, dtype: DType, code: Vectors) -> list[str]:
    """A marked block, all active lanes at once. dtype: the target's type."""
    back = _is_back(block)
    assert back or not isinstance(code.mask, Bits), "the guards keep the first lanes"
    match block.body:
        case ir.Update(ir.Combiner() as combiner, (target,), (value,)):
            parts = _running(combiner, _terms(combiner, value, code, back), dtype, code, back=back)
            if all(key != ANEW for key, _ in block.annotations):
                old = code.load(target.buffer, target.indices, dtype)
                form = f"ts_{COMBINE[combiner]}_{suffix(dtype)}"
                parts = tuple(f"{form}({a}, {b})" for a, b in zip(old, parts, strict=True))
            return store(target, dtype, parts, code)
        case _:
            raise AssertionError(f"{block.name} is no scan")


def _terms(combiner: ir.Combiner, value: ir.Expr, code: Vectors, back: bool) -> Parts:
    """The lanes' terms; back: with the identity past the last lane, where it starts, and where a
    guard leaves lanes out, as what they would load may be before the array.
    """
    if not back:
        return code.parts(value)
    mask = code.mask if isinstance(code.mask, Bits) else All()
    return active_or_identity(combiner, value, 0, replace(code, mask=mask))


def _running(
    combiner: ir.Combiner, values: Parts, dtype: DType, code: Vectors, *, back: bool
) -> Parts:
    """The native vectors of the running reductions, each part on top of those before; back: on top
    of those after.
    """
    s, form = suffix(dtype), COMBINE[combiner]
    way, end = ("back_", "start") if back else ("", "last")
    scanned = [f"ts_scan_{way}{form}_{s}({value})" for value in values]
    if len(scanned) == 1:
        return tuple(scanned)
    names: list[str] = []
    for text in reversed(scanned) if back else scanned:
        if names:
            text = f"ts_{form}_{s}(ts_{end}_{s}({names[-1]}), {text})"
        names.append(code.before.name("scan"))
        code.before.lines.append(f"const ts_{s} {names[-1]} = {text};")
    return tuple(reversed(names) if back else names)
