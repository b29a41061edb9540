"""A kernel's plain schedule as a user of Numba writes it: loops in Python, the outer ones `prange`.

Input: a plain kernel. Output: the source of a function of its sizes, scalars and arrays. The loops
that run on all threads are the outermost ones that the prover takes, and sums are kept in a local
variable. `columns` writes the loop along which the result lies side by side inside the sum's where
an array lies along it, too, as one does for products of matrices.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never, final

from gen.ir import nodes as ir
from gen.ir.types import DType
from gen.ir.walk import blocks, loads, substitute, variables
from gen.lower.variants import Plain
from gen.schedule.base import StepContext
from gen.schedule.edit.tree import reduction_loops
from gen.schedule.rules.parts.draft import Draft
from gen.schedule.rules.parts.nest import nest_of


class NoLoops(Exception):
    """What has no plain form for Numba here: tuples, functions that a spec defines, small types;
    and what runs as far as data says: a user's loops are shorter than the plain schedule's there.
    """


FUNCTIONS = {
    ir.Function.ABS: "abs({})",
    ir.Function.SQRT: "math.sqrt({})",
    ir.Function.RSQRT: "1 / math.sqrt({})",
    ir.Function.EXP: "math.exp({})",
    ir.Function.EXPM1: "math.expm1({})",
    ir.Function.SIGMOID: "1 / (1 + math.exp(-({})))",
    ir.Function.LOG: "math.log({})",
    ir.Function.LOG1P: "math.log1p({})",
    ir.Function.POW: "({}) ** ({})",
    ir.Function.TANH: "math.tanh({})",
    ir.Function.ERF: "math.erf({})",
    ir.Function.SIN: "math.sin({})",
    ir.Function.COS: "math.cos({})",
    ir.Function.FLOOR: "np.floor({})",
    ir.Function.CEIL: "np.ceil({})",
    ir.Function.ISNAN: "math.isnan({})",
    ir.Function.FMA: "({}) * ({}) + ({})",
}

COMBINED = {
    ir.Combiner.SUM: "{} + {}",
    ir.Combiner.PROD: "{} * {}",
    ir.Combiner.MIN: "min({}, {})",
    ir.Combiner.MAX: "max({}, {})",
}

TYPES = {d.value for d in DType} - {"float16", "bfloat16", "bool"}


@final
@dataclass(frozen=True, slots=True)
class _Code:
    """parallel: loops on all threads. columns: as above. dtypes: of the buffers."""

    parallel: frozenset[str]
    columns: bool
    dtypes: dict[str, DType]


def to_numba(plain: Plain, *, columns: bool) -> str:
    """The source of `kernel(sizes..., scalars..., arrays...)`, in the order of the plain kernel.

    Raises NoLoops.
    """
    kernel = plain.under(None)
    if any(nest_of(kernel, block.name).compared for block in blocks(kernel.body)):
        raise NoLoops("that data says what it runs over")
    buffers = [p.buffer for p in kernel.parameters]
    temporaries = kernel.body.buffers if isinstance(kernel.body, ir.Allocate) else ()
    names = [*kernel.dims, *(s.name for s in kernel.scalars), *(b.name for b in buffers)]
    dtypes = {b.name: b.dtype for b in (*buffers, *temporaries)}
    code = _Code(_parallel(plain), columns, dtypes)
    lines = [f"def kernel({', '.join(map(_name, names))}):"]
    for buffer in (b for b in temporaries if b.shape):
        shape = "".join(f"{_expr(extent)}, " for extent in buffer.shape)
        lines.append(f"    {_name(buffer.name)} = np.empty(({shape}), {_type(buffer.dtype)})")
    body = kernel.body.body if isinstance(kernel.body, ir.Allocate) else kernel.body
    text = "\n".join([*lines, *("    " + line for line in _lines(body, code))]) + "\n"
    for buffer in (b for b in temporaries if not b.shape):  # a variable, which threads do not share
        text = text.replace(f"{_name(buffer.name)}[()]", _name(buffer.name))
    return text


def _parallel(plain: Plain) -> frozenset[str]:
    """The outermost loops of which the iterations are independent."""
    kernel, bench = plain.under(None), plain.bench
    draft = Draft(bench.start(kernel), StepContext(kernel, None, bench), {})
    found: set[str] = set()
    for name in draft.blocks:
        for loop in nest_of(kernel, name).loops:
            if loop.var in found:
                break
            after = draft.if_sound("parallel", loop=loop.var)
            if after is not draft:
                draft = after
                found.add(loop.var)
                break
    return frozenset(found)


def _lines(stmt: ir.Stmt, code: _Code) -> Iterator[str]:
    match stmt:
        case ir.Seq(body):
            for part in body:
                yield from _lines(part, code)
        case ir.Loop():
            inside = blocks(stmt)
            if len(inside) == 1 and inside[0].initialises:
                yield from _reduction(stmt, inside[0], code)
            else:
                yield _for(stmt, code)
                yield from ("    " + line for line in _lines(stmt.body, code))
        case ir.Block():
            yield from _block(stmt, code)
        case _:
            raise NoLoops(type(stmt).__name__)


def _reduction(loop: ir.Loop, block: ir.Block, code: _Code) -> Iterator[str]:
    """A nest of one block that initialises itself."""
    if loop.var in reduction_loops(block):
        yield from _summed(loop, block, code)
    elif code.columns and _innermost(loop, block) and _beside(loop, block):
        yield from _by_columns(loop, block, code)
    else:
        yield _for(loop, code)
        yield from ("    " + line for line in _lines(loop.body, code))


def _innermost(loop: ir.Loop, block: ir.Block) -> bool:
    """Whether only loops of the reduction are inside, and none of their bounds uses the loop."""
    inner: ir.Stmt = loop.body
    if not isinstance(inner, ir.Loop):
        return False
    while isinstance(inner, ir.Loop):
        bounds = variables(inner.lower) | variables(inner.upper)
        if inner.var not in reduction_loops(block) or loop.var in bounds:
            return False
        inner = inner.body
    return True


def _beside(loop: ir.Loop, block: ir.Block) -> bool:
    """Whether an array that it reads lies along the loop, and none across it."""
    assert isinstance(block.body, ir.Update)
    moved = [_moved(load, loop.var) for load in loads(_bound(block, block.body.values[0]))]
    return True in moved and False not in moved


def _moved(load: ir.Load, var: str) -> bool | None:
    """Whether the loop moves the last index alone; None: it moves none."""
    if not any(var in variables(index) for index in load.indices):
        return None
    return not any(var in variables(index) for index in load.indices[:-1])


def _by_columns(loop: ir.Loop, block: ir.Block, code: _Code) -> Iterator[str]:
    (target, old), value = _target(block), _value(block)
    yield _for(loop, code, serial=True)
    yield f"    {target} = {_identity(old, code.dtypes[_buffer(block)])}"
    outer: list[ir.Loop] = []
    inner: ir.Stmt = loop.body
    while isinstance(inner, ir.Loop):
        outer.append(inner)
        inner = inner.body
    indent = ""
    for reduction in outer:
        yield indent + _for(reduction, code, serial=True)
        indent += "    "
    yield indent + _for(loop, code, serial=True)
    condition, indent = _expr(block.predicate), indent + "    "
    if condition != "True":
        yield f"{indent}if {condition}:"
        indent += "    "
    yield f"{indent}{target} = {COMBINED[old].format(target, value)}"


def _summed(loop: ir.Loop, block: ir.Block, code: _Code) -> Iterator[str]:
    (target, combiner), value = _target(block), _value(block)
    total = f"{_name(block.name)}_total"
    yield f"{total} = {_identity(combiner, code.dtypes[_buffer(block)])}"
    indent = ""
    inner: ir.Stmt = loop
    while isinstance(inner, ir.Loop):
        yield indent + _for(inner, code, serial=True)
        indent, inner = indent + "    ", inner.body
    condition = _expr(block.predicate)
    if condition != "True":
        yield f"{indent}if {condition}:"
        indent += "    "
    yield f"{indent}{total} = {COMBINED[combiner].format(total, value)}"
    yield f"{target} = {total}"


def _block(block: ir.Block, code: _Code) -> Iterator[str]:
    condition, indent = _expr(block.predicate), ""
    if condition != "True":
        yield f"if {condition}:"
        indent = "    "
    match block.body:
        case ir.Store(target, value):
            yield f"{indent}{_element(block, target)} = {_expr(_bound(block, value))}"
        case ir.Update():
            target_, combiner = _target(block)
            yield f"{indent}{target_} = {COMBINED[combiner].format(target_, _value(block))}"
        case ir.Init():
            raise NoLoops("init")
        case _:
            assert_never(block.body)


def _target(block: ir.Block) -> tuple[str, ir.Combiner]:
    match block.body:
        case ir.Update(combiner, (target,), _) if combiner in COMBINED:
            assert isinstance(combiner, ir.Combiner)
            return _element(block, target), combiner
        case _:
            raise NoLoops(f"the reduction of '{block.name}'")


def _buffer(block: ir.Block) -> str:
    assert isinstance(block.body, ir.Update)
    return block.body.targets[0].buffer


def _value(block: ir.Block) -> str:
    assert isinstance(block.body, ir.Update)
    return _expr(_bound(block, block.body.values[0]))


def _element(block: ir.Block, target: ir.Destination) -> str:
    indices = ", ".join(_expr(_bound(block, index)) for index in target.indices)
    return f"{_name(target.buffer)}[{indices or '()'}]"


def _bound(block: ir.Block, expr: ir.Expr) -> ir.Expr:
    names = (it.name for it in block.iters)
    return substitute(expr, dict(zip(names, block.bindings, strict=True)))


def _for(loop: ir.Loop, code: _Code, *, serial: bool = False) -> str:
    over = "prange" if loop.var in code.parallel and not serial else "range"
    return f"for {_name(loop.var)} in {over}({_expr(loop.lower)}, {_expr(loop.upper)}):"


def _name(name: str) -> str:
    return f"v_{name.replace('.', '_')}"


def _type(dtype: DType) -> str:
    if dtype.value not in TYPES:
        raise NoLoops(f"the type {dtype.value}")
    return f"np.{dtype.value}"


def _identity(combiner: ir.Combiner, dtype: DType) -> str:
    """What nothing combines to, of those in COMBINED."""
    limits, type_ = f"np.iinfo({_type(dtype)})", _type(dtype)
    match combiner:
        case ir.Combiner.SUM | ir.Combiner.PROD:
            return f"{type_}({int(combiner is ir.Combiner.PROD)})"
        case ir.Combiner.MIN:
            return f"{type_}({limits}.max)" if dtype.is_integer else f"{type_}(np.inf)"
        case _:
            return f"{type_}({limits}.min)" if dtype.is_integer else f"{type_}(-np.inf)"


def _expr(e: ir.Expr) -> str:
    match e:
        case ir.Var(name):
            return _name(name)
        case ir.Const(bool(value)):
            return str(value)
        case ir.Const(value, dtype):
            return str(value) if dtype is DType.INT64 else f"{_type(dtype)}({value!r})"
        case ir.Unary(op, operand):
            return f"({op.value} {_expr(operand)})"
        case ir.Binary(ir.BinaryOp.MIN | ir.BinaryOp.MAX as op, lhs, rhs):
            return f"{op.value}({_expr(lhs)}, {_expr(rhs)})"
        case ir.Binary(op, lhs, rhs):
            return f"({_expr(lhs)} {op.value} {_expr(rhs)})"
        case ir.Select(condition, then, otherwise):
            return f"({_expr(then)} if {_expr(condition)} else {_expr(otherwise)})"
        case ir.Cast(dtype, operand):
            return f"{_type(dtype)}({_expr(operand)})"
        case ir.Call(ir.Function() as function, args) if function in FUNCTIONS:
            return f"({FUNCTIONS[function].format(*map(_expr, args))})"
        case ir.Call(function, _):
            raise NoLoops(f"the function {function.value}")
        case ir.Load(buffer, indices):
            return f"{_name(buffer)}[{', '.join(map(_expr, indices)) or '()'}]"
        case _:
            assert_never(e)
