"""How much work an iteration of a parallel loop is, so that chunks are worth a thread.

Input: a loop. Output: C text of the least number of iterations a chunk, from a count of operations
that is roughly right: trip counts are exact, an operation counts as one whatever its type.
"""

from functools import reduce

from ...ir import nodes as ir
from ...ir.algebra import add, index, maximum, mul, sub
from ...ir.index.linear import constant, tidy
from ...ir.walk import loads, nested, substitute, walk
from ..c.expr import Scalars

CHUNK = 40_000  # operations; some 10 microseconds
UNKNOWN = 16  # iterations of a loop whose bounds are read from an array

_DEAR = frozenset(
    {
        ir.Function.EXP,
        ir.Function.EXPM1,
        ir.Function.SIGMOID,
        ir.Function.LOG,
        ir.Function.LOG1P,
        ir.Function.POW,
        ir.Function.TANH,
        ir.Function.ERF,
        ir.Function.SIN,
        ir.Function.COS,
        ir.Function.EXP2,
        ir.Function.LOG2,
        ir.Function.LOG10,
        ir.Function.SINH,
        ir.Function.COSH,
        ir.Function.TAN,
        ir.Function.ATAN,
        ir.Function.ATAN2,
        ir.Function.ASIN,
        ir.Function.ACOS,
        ir.Function.ASINH,
        ir.Function.ACOSH,
        ir.Function.ATANH,
        ir.Function.HYPOT,
        ir.Function.CBRT,
        ir.Function.FMOD,
        ir.Function.ERFC,
        ir.Function.ERFINV,
        ir.Function.LGAMMA,
    }
)


def grain(loop: ir.Loop, scalars: Scalars) -> str:
    """In C, the iterations that are a chunk of work, at least one. Where an iteration runs one of
    several parts, as at an edge, the dearest counts.
    """
    apart = isinstance(loop.body, ir.Seq) and all(isinstance(s, ir.If) for s in loop.body.body)
    parts = nested(loop.body) if apart else (loop.body,)
    work = scalars.index(substitute(reduce(maximum, map(_work, parts)), {loop.var: loop.lower}))
    if work.isdigit():
        return str(max(1, CHUNK // max(1, int(work))))
    return f"1 + {CHUNK} / ts_max_i64_s(1, {work})"


def _work(stmt: ir.Stmt) -> ir.Expr:
    match stmt:
        case ir.Block(body=body):
            return index(1 + sum(_operations(node) for node in walk(body)))
        case ir.Loop(var, lower, upper, kind, body):
            inner = substitute(_work(body), {var: lower})
            if kind is ir.LoopKind.VECTORIZED:
                return inner
            trips = index(UNKNOWN) if loads(lower) + loads(upper) else tidy(sub(upper, lower))
            if constant(trips) is None:
                trips = maximum(trips, 0)
            return mul(trips, inner)
        case ir.Delinearize(vars_, _, _, body):
            return substitute(_work(body), dict.fromkeys(vars_, index(0)))
        case _:
            total: ir.Expr = index(0)
            for s in nested(stmt):
                total = add(total, _work(s))
            return total


def _operations(node: object) -> int:
    match node:
        case ir.Call(function, _):
            return 20 if function in _DEAR or isinstance(function, ir.External) else 1
        case ir.Binary() | ir.Unary() | ir.Load() | ir.Select():
            return 1
        case _:
            return 0
