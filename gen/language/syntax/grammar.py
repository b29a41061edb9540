"""The language of `compute:` and of the spec's conditions: Python's syntax, never evaluated.

Input: a YAML scalar's text. Output: the syntax tree of `nodes`, whose spans point into the YAML
file. Invariant: size, nesting and runs of prefix operators are limited on the text before `ast`
sees it, and the depth of what `ast` gives before any function recurses into it.
"""

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NoReturn

from ...errors import Span, SpecError
from ...ir.nodes import BinaryOp, Combiner, UnaryOp
from ...ir.types import DType
from .. import yaml
from ..values import functions
from . import hints, literals, members
from . import nodes as ir
from .depth import MAX_DEPTH, check_depth, too_deep

MAX_TEXT = 20_000
MAX_BRACKETS = 50
MAX_PREFIXES = 8
MAX_POWER = 16

FUNCTIONS = {
    "abs": 1, "sqrt": 1, "rsqrt": 1, "exp": 1, "expm1": 1, "sigmoid": 1, "log": 1, "log1p": 1,
    "pow": 2, "tanh": 1, "erf": 1, "sin": 1, "cos": 1, "floor": 1, "ceil": 1, "isnan": 1, "fma": 3,
    "real": 1, "imag": 1, "conj": 1, "complex": 2, "round": 1, "trunc": 1, "sign": 1, "copysign": 2,
    "isinf": 1, "isfinite": 1, "exp2": 1, "log2": 1, "log10": 1, "sinh": 1, "cosh": 1, "tan": 1,
    "atan": 1, "atan2": 2, "asin": 1, "acos": 1, "asinh": 1, "acosh": 1, "atanh": 1, "hypot": 2,
    "cbrt": 1, "fmod": 2, "erfc": 1, "erfinv": 1, "lgamma": 1,
}  # fmt: skip
CONSTANTS = {"inf": float("inf"), "nan": float("nan"), "pi": 3.141592653589793}
COMBINERS = {combiner.value: combiner for combiner in Combiner}
RESERVED = frozenset((*FUNCTIONS, *CONSTANTS, *COMBINERS, "range", "reversed", "select")).union(
    dtype.value for dtype in DType
)

_BINARY: dict[type[ast.operator], BinaryOp] = {
    ast.Add: BinaryOp.ADD, ast.Sub: BinaryOp.SUB, ast.Mult: BinaryOp.MUL, ast.Div: BinaryOp.DIV,
    ast.FloorDiv: BinaryOp.FLOORDIV, ast.Mod: BinaryOp.MOD, ast.BitAnd: BinaryOp.BITAND,
    ast.BitOr: BinaryOp.BITOR, ast.BitXor: BinaryOp.BITXOR, ast.LShift: BinaryOp.SHL,
    ast.RShift: BinaryOp.SHR,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], BinaryOp] = {
    ast.Eq: BinaryOp.EQ, ast.NotEq: BinaryOp.NE, ast.Lt: BinaryOp.LT, ast.LtE: BinaryOp.LE,
    ast.Gt: BinaryOp.GT, ast.GtE: BinaryOp.GE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Words:
    """What the spec adds to the language. casts: names of types, which are functions too.
    reductions: those that it defines, with how many values each takes. functions: external ones,
    with how many arguments. operands: names with a dot. parameters: a recipe's, which have a `$`
    before their names. members: of scalars that are words, which.
    """

    casts: frozenset[str] = frozenset()
    reductions: Mapping[str, int] = field(default_factory=dict)
    functions: Mapping[str, int] = field(default_factory=dict)
    operands: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def named(self, name: str) -> str:
        """A name as it was written: Python reads an underscore, with which none begins, for `$`."""
        return f"${name[1:]}" if name[:1] == "_" and name[1:] in self.parameters else name


NO_WORDS = Words()

PARAMETER = re.compile(r"(?<![\w$])\$([A-Za-z]\w*)")


@dataclass(frozen=True, slots=True)
class Positions:
    """Turns positions in a scalar's text into spans of the file."""

    scalar: yaml.Scalar
    positions: tuple[tuple[int, int], ...]
    lines: tuple[str, ...]
    starts: tuple[int, ...]  # the offset in the text of each line's start
    words: Words

    def span(self, node: ast.expr | ast.stmt | ast.comprehension) -> Span:
        if isinstance(node, ast.comprehension):
            return self.span(node.target)
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        return self.at(start, end)

    def at(self, start: int, end: int) -> Span:
        """The place of the characters from `start` to `end`, as far as they share a line."""
        last = len(self.positions) - 1
        line, column = self.positions[min(start, last)]
        end_line, end_column = self.positions[min(max(end - 1, start), last)]
        length = end_column - column + 1 if end_line == line else 1
        return self.scalar.source.span(line, column, max(1, length))

    def _offset(self, line: int, column_in_bytes: int) -> int:
        text = self.lines[line - 1].encode()[:column_in_bytes]
        return self.starts[line - 1] + len(text.decode(errors="ignore"))


def statements(scalar: yaml.Scalar, words: Words = NO_WORDS) -> tuple[ir.Statement, ...]:
    """The statements of a body. Raises SpecError."""
    place, module = parse(scalar, "exec", words)
    assert isinstance(module, ast.Module)
    return tuple(_statement(s, place) for s in module.body)


def expression(scalar: yaml.Scalar, words: Words = NO_WORDS) -> ir.Expr:
    """One expression. Raises SpecError."""
    place, tree = parse(scalar, "eval", words)
    assert isinstance(tree, ast.Expression)
    return _whole(tree.body, place)


def parse(scalar: yaml.Scalar, mode: str, words: Words = NO_WORDS) -> tuple[Positions, ast.AST]:
    """The text as Python reads it (mode "exec" or "eval"), within the limits above."""
    text = scalar.text if mode == "exec" else scalar.text.replace("\n", " ").strip()
    lines = tuple(text.split("\n"))
    starts = [0 if mode == "exec" else len(scalar.text) - len(scalar.text.lstrip())]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    place = Positions(scalar, scalar.positions(), lines, tuple(starts), words)
    _check_text(text, place)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of what is refused, or is plain
            tree = ast.parse(PARAMETER.sub(r"_\1", text) if words.parameters else text, mode=mode)
    except SyntaxError as error:
        row = min(error.lineno or 1, len(lines)) - 1
        start = place.starts[row] + max(0, (error.offset or 1) - 1)
        raise SpecError(
            f"not an expression or statement: {error.msg}", place.at(start, start + 1)
        ) from None
    except (RecursionError, MemoryError, ValueError):
        raise SpecError(f"the expression nests deeper than {MAX_DEPTH}", scalar.span) from None
    _check_depth(tree, place)
    members.number(tree, words.members, place.span)
    return place, tree


def _check_text(text: str, place: Positions) -> None:
    if len(text) > MAX_TEXT:
        raise SpecError(f"the text is longer than {MAX_TEXT} characters", place.scalar.span)
    prefixes = re.search(rf"(?:(?:[-+~]|\bnot\b)\s*){{{MAX_PREFIXES + 1}}}", text)
    if prefixes:
        where = place.at(prefixes.start(), prefixes.start() + 1)
        raise SpecError(f"more than {MAX_PREFIXES} prefix operators in a row", where)
    depth = 0
    for offset, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth > MAX_BRACKETS:
            where = place.at(offset, offset + 1)
            raise SpecError(f"brackets nest deeper than {MAX_BRACKETS}", where)


def _check_depth(tree: ast.AST, place: Positions) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    for node in level:
        raise too_deep(place.span(node) if isinstance(node, ast.expr) else place.scalar.span)


def _refuse(
    node: ast.expr | ast.stmt, place: Positions, what: str, hint: str | None = None
) -> NoReturn:
    raise SpecError(what, place.span(node), hint)


# ---------------------------------------------------------------- statements


def _statement(node: ast.stmt, place: Positions) -> ir.Statement:
    span = place.span(node)
    match node:
        case ast.Assign([ast.Tuple([first, *others])], value):
            return _several(first, others, value, place, span)
        case ast.Assign([target], value):
            return ir.Assign(_target(target, place), None, _whole(value, place), span=span)
        case ast.AugAssign(target, op, value) if type(op) in _BINARY:
            return ir.Assign(
                _target(target, place), _BINARY[type(op)], _whole(value, place), span=span
            )
        case ast.For(target, iterable, body, []):
            over = _range(target, iterable, place)
            return ir.For(over, tuple(_statement(s, place) for s in body), span=over.span)
        case ast.If(test, body, []):
            condition = _whole(test, place)
            return ir.If(condition, tuple(_statement(s, place) for s in body), span=condition.span)
        case ast.While(test, body, []):
            return _while(test, body, place)
        case (
            ast.If(orelse=[first, *_]) | ast.For(orelse=[first, *_]) | ast.While(orelse=[first, *_])
        ):
            _refuse(
                first,
                place,
                "'else' is not part of the language",
                "write a second 'if' with the opposite condition",
            )
        case ast.Break() | ast.Continue():
            word, hint = hints.jump(node)
            _refuse(node, place, f"'{word}' is not part of the language", hint)
        case _:
            _refuse(
                node,
                place,
                "this is not a statement of the language",
                "a statement is 'a[i] = ...', 'a[i] += ...', 'for i in range(...):' or 'if ...:'",
            )


def _while(test: ast.expr, body: list[ast.stmt], place: Positions) -> ir.While:
    match test:
        case ast.BoolOp(ast.And(), [ast.Compare(target, [ast.In()], [iterable]), first, *rest]):
            over = _range(target, iterable, place)
            condition = ast.BoolOp(ast.And(), [first, *rest]) if rest else first
            holds = _whole(ast.copy_location(condition, first), place)
            inner = tuple(_statement(s, place) for s in body)
            return ir.While(over, holds, inner, span=over.span)
        case ast.Compare(_, [ast.In()], [_]):
            hint = "write 'for', or 'and' with the condition"
            _refuse(test, place, "this 'while' has no condition under which it ends", hint)
        case _:
            hint = "write 'while t in range(limit) and ...:', the bound first"
            _refuse(test, place, "a 'while' says how many iterations it has at most", hint)


def _several(
    first: ast.expr, others: list[ast.expr], value: ast.expr, place: Positions, span: Span
) -> ir.Assign:
    """`a[i], b[i] = reduction(...)`."""
    targets = tuple(_target(other, place) for other in others)
    return ir.Assign(_target(first, place), None, _whole(value, place), others=targets, span=span)


def _target(node: ast.expr, place: Positions) -> ir.Element:
    match node:
        case ast.Name(name):
            return ir.Element(name, (), span=place.span(node))
        case ast.Subscript(ast.Name(name), index):
            return ir.Element(name, _indices(index, place), span=place.span(node))
        case _:
            _refuse(node, place, "the left side must be an element of an array, such as a[i, j]")


def _indices(node: ast.expr, place: Positions) -> tuple[ir.Expr, ...]:
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    for item in items:
        if isinstance(item, ast.Slice):
            _refuse(item, place, "slices are not part of the language", "use an index")
    return tuple(_whole(item, place) for item in items)


def _range(target: ast.expr, iterable: ast.expr, place: Positions) -> ir.Range:
    if not isinstance(target, ast.Name):
        _refuse(target, place, "the index of a 'for' must be a name")
    span = place.span(target)
    zero = ir.Literal(0, span=place.span(iterable))
    match iterable:
        case ast.Name():
            return ir.Range(target.id, zero, _whole(iterable, place), whole=True, span=span)
        case ast.Call(ast.Name("range"), [upper], []):
            return ir.Range(target.id, zero, _whole(upper, place), span=span)
        case ast.Call(ast.Name("range"), [lower, upper], []):
            return ir.Range(target.id, _whole(lower, place), _whole(upper, place), span=span)
        case ast.Call(ast.Name("reversed"), [ast.Call(ast.Name("range")) as inner], []):
            return replace(_range(target, inner, place), reverse=True)
        case ast.Call(ast.Name("range"), [_, _, step], []):
            hint = "use 2*i as the index, say; reversed(range(lower, upper)) runs downwards"
            _refuse(step, place, "a range has no step", hint)
        case _:
            _refuse(iterable, place, "a 'for' runs over a dim, a range or a range reversed")


# ---------------------------------------------------------------- expressions


def _whole(node: ast.expr, place: Positions) -> ir.Expr:
    return check_depth(_expr(node, place))


def _expr(node: ast.expr, place: Positions) -> ir.Expr:
    span = place.span(node)
    match node:
        case ast.Constant(value):
            return literals.number(value, span)
        case ast.Name(name):
            return ir.Name(place.words.named(name), span=span)
        case ast.Subscript(ast.Name(name), index):
            return ir.Element(name, _indices(index, place), span=span)
        case ast.Attribute(ast.Name(owner), part) if f"{owner}.{part}" in place.words.operands:
            return ir.Name(f"{owner}.{part}", span=span)
        case ast.Subscript(ast.Call(ast.Name("real"), [ast.Name(name)], []), index):
            return ir.Element(f"real({name})", _indices(index, place), span=span)  # of a type
        case ast.BinOp(base, ast.Pow(), exponent):
            return _power(base, exponent, place, span)
        case ast.BinOp(lhs, op, rhs) if type(op) in _BINARY:
            return ir.Binary(_BINARY[type(op)], _expr(lhs, place), _expr(rhs, place), span=span)
        case ast.UnaryOp(op, operand):
            return _unary(op, _expr(operand, place), span)
        case ast.BoolOp(op, values):
            logical = BinaryOp.AND if isinstance(op, ast.And) else BinaryOp.OR
            return _join(logical, tuple(_expr(v, place) for v in values), span)
        case ast.Compare(left, ops, comparators):
            return _comparison(left, ops, comparators, place, span)
        case ast.IfExp(test, then, otherwise):
            exprs = (_expr(e, place) for e in (test, then, otherwise))
            return ir.Conditional(*exprs, span=span)
        case ast.Call(ast.Name(name), args, []):
            return _call(name, args, place, span)
        case _:
            hint = hints.written(node, {*COMBINERS, *place.words.reductions}, CONSTANTS)
            _refuse(node, place, "this is not an expression of the language", hint)


def _power(base: ast.expr, exponent: ast.expr, place: Positions, span: Span) -> ir.Expr:
    of = _expr(base, place)
    match of, exponent:
        case _, ast.Constant(bool()):
            return ir.Apply("pow", (of, _expr(exponent, place)), span=span)
        case ir.Literal(int(number)), ast.Constant(int(times)) if not isinstance(number, bool):
            return literals.power(number, times, span)
        case _, ast.Constant(int(times)) if 1 <= times <= MAX_POWER:
            return ir.Power(of, times, span=span)
        case _, ast.Constant(0.5):
            _refuse(exponent, place, "this is a square root", "write sqrt(...), or pow(..., 0.5)")
        case _:
            return ir.Apply("pow", (of, _expr(exponent, place)), span=span)


def _unary(op: ast.unaryop, operand: ir.Expr, span: Span) -> ir.Expr:
    match op, operand:
        case ast.USub(), ir.Literal(value) if not isinstance(value, bool):
            return ir.Literal(-value, span=span)
        case ast.USub(), _:
            return ir.Unary(UnaryOp.NEG, operand, span=span)
        case ast.Not(), _:
            return ir.Unary(UnaryOp.NOT, operand, span=span)
        case ast.Invert(), _:
            return ir.Unary(UnaryOp.INVERT, operand, span=span)
        case _:
            return operand


def _join(op: BinaryOp, values: tuple[ir.Expr, ...], span: Span) -> ir.Expr:
    return reduce(lambda a, b: ir.Binary(op, a, b, span=span), values)


def _comparison(
    left: ast.expr, ops: list[ast.cmpop], rest: list[ast.expr], place: Positions, span: Span
) -> ir.Expr:
    if any(type(op) not in _COMPARE for op in ops):
        raise SpecError("'is' and 'in' are not part of the language", span)
    values = [_expr(v, place) for v in (left, *rest)]
    tests = tuple(
        ir.Binary(_COMPARE[type(op)], a, b, span=span)
        for op, a, b in zip(ops, values, values[1:], strict=False)
    )
    return _join(BinaryOp.AND, tests, span)


def _call(name: str, args: list[ast.expr], place: Positions, span: Span) -> ir.Expr:
    own = place.words.reductions
    if len(args) == 1 and isinstance(args[0], ast.GeneratorExp):
        if name in COMBINERS:
            return _fold(COMBINERS[name], _expr(args[0].elt, place), args[0], place, span)
        if name in own:
            return _own_fold(name, args[0], place, span)
    values = tuple(_expr(arg, place) for arg in args)
    if name in ("min", "max") and len(values) >= 2:
        return _join(BinaryOp.MIN if name == "min" else BinaryOp.MAX, values, span)
    if name in COMBINERS or name in own:
        raise SpecError(f"'{name}' needs a reduction", span, f"write {name}(x[i] for i in n)")
    if name == "select" and len(values) == 3:
        return ir.Conditional(*values, span=span)
    words = place.words
    known = {**FUNCTIONS, "select": 3, **dict.fromkeys(words.casts, 1), **words.functions}
    if name not in known:
        hint = functions.hint(name, {*known, *COMBINERS, *own})
        raise SpecError(f"unknown function '{name[:64]}'", span, hint)
    if len(values) != known[name]:
        needs = f"'{name}' takes {known[name]} argument{'s' * (known[name] > 1)}, not {len(values)}"
        raise SpecError(needs, span)
    return ir.Apply(name, values, span=span)


def _own_fold(name: str, node: ast.GeneratorExp, place: Positions, span: Span) -> ir.Fold:
    """A reduction that the spec defines, over as many values as it says."""
    takes = place.words.reductions[name]
    values = node.elt.elts if isinstance(node.elt, ast.Tuple) else [node.elt]
    if len(values) != takes:
        counts = f"takes {takes} value{'s' * (takes > 1)}, not {len(values)}"
        raise SpecError(f"'{name}' {counts}", place.span(node.elt))
    group = ir.Group(tuple(_expr(v, place) for v in values), span=place.span(node.elt))
    return _fold(name, group if takes > 1 else group.values[0], node, place, span)


def _fold(
    combiner: Combiner | str, value: ir.Expr, node: ast.GeneratorExp, place: Positions, span: Span
) -> ir.Fold:
    over = tuple(_range(g.target, g.iter, place) for g in node.generators)
    if any(r.reverse for r in over):
        raise SpecError("a reduction has no order", span, "write range(lower, upper)")
    tests = tuple(_expr(test, place) for g in node.generators for test in g.ifs)
    condition = _join(BinaryOp.AND, tests, tests[0].span) if tests else None
    return ir.Fold(combiner, value, over, condition, span=span)
