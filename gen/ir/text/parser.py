"""Reads what `ir.text.printer` prints: the inverse of `to_text`.

Input: a script, as described there. Output: the Kernel, whose nodes' spans point into the script.
What is read is well-formed but not verified: `ir.rules.verify` does that. The script is read with
`ast` and never evaluated.
"""

import ast
from dataclasses import replace

from ...errors import Span
from .. import nodes as ir
from ..algebra import TRUE, index
from ..types import INDEX, DType
from .parse_expr import DTYPES, Names, ScriptError, dotted, expression, items, literal_number, place
from .parse_transfer import transfer
from .printer import INTENTS, LOOP_KINDS, own_origin
from .script_names import from_script

__all__ = ["ScriptError", "from_text"]

_LOOP_KINDS = {text: kind for kind, text in LOOP_KINDS.items()}
_INTENTS = {text: intent for intent, text in INTENTS.items()}
_ITER_KINDS = {kind.value: kind for kind in ir.IterKind}
_SCOPES = {scope.value: scope for scope in ir.Scope}


def from_text(text: str, path: str = "<script>") -> ir.Kernel:
    """The kernel that the script prints. Raises ScriptError, located in `path`."""
    lines = tuple(text.splitlines())
    names = Names(path, lines)
    try:
        module = ast.parse(text)
    except SyntaxError as e:
        line = e.lineno or 1
        source = lines[line - 1] if line <= len(lines) else ""
        raise ScriptError(e.msg, Span(path, line, e.offset or 1, 1, source)) from e
    match module.body:
        case [ast.FunctionDef() as function]:
            return _kernel(function, names)
        case _:
            first = lines[0] if lines else ""
            raise ScriptError("a script is one 'def'", Span(path, 1, 1, 1, first))


# ---------------------------------------------------------------- declarations


def _kernel(function: ast.FunctionDef, names: Names) -> ir.Kernel:
    arguments = function.args
    plain = ast.arguments([], arguments.args, None, [], [], None, [])
    if ast.unparse(arguments) != ast.unparse(plain):
        names.refuse(function, "a kernel's arguments have no stars and no defaults")
    declared = [_argument(a, names) for a in arguments.args]
    dims = tuple(d for d in declared if isinstance(d, str))
    parameters = tuple(d for d in declared if isinstance(d, ir.Parameter))
    scalars = tuple(d for d in declared if isinstance(d, ir.Var))
    phases = tuple(d for d in declared if isinstance(d, ir.Phase))
    inner = replace(
        names,
        dtypes={p.buffer.name: p.buffer.dtype for p in parameters},
        scalars={s.name: s.dtype for s in scalars},
    )
    assumptions: list[ir.Expr] = []
    contraction = ir.Contraction.FUSED
    for i, statement in enumerate(function.body):
        match statement:
            case ast.FunctionDef(decorator_list=[ast.Call(ast.Name("external"))]):
                external = _external(statement, inner)
                inner = replace(inner, externals={**inner.externals, external.name: external})
            case ast.FunctionDef():
                defined = _combiner(statement, inner)
                inner = replace(inner, combiners={**inner.combiners, defined.name: defined})
            case ast.Expr(ast.Call(ast.Name("contraction"), [ast.Constant("none")], [])):
                contraction = ir.Contraction.NONE
            case ast.Expr(ast.Call(ast.Name("assume"), [condition], [])):
                assumptions.append(expression(condition, DType.BOOL, inner))
            case _:
                body = _suite(function.body[i:], inner)
                name, at = from_script(function.name), names.span(function)
                assumed = tuple(assumptions)
                return ir.Kernel(
                    name, dims, parameters, scalars, assumed, body, phases, contraction, span=at
                )
    names.refuse(function, f"kernel '{function.name}' has no body")


def _external(function: ast.FunctionDef, names: Names) -> ir.External:
    """A C function that a spec declares."""
    match function:
        case ast.FunctionDef(
            args=ast.arguments(args=arguments),
            decorator_list=[ast.Call(_, [ast.Constant(str(symbol))], keywords)],
            returns=ast.Name(result),
        ) if result in DTYPES:
            parameters = tuple(DTYPES[ast.unparse(a.annotation or a)] for a in arguments)
            given = {k.arg or "": ast.literal_eval(k.value) for k in keywords}
            return ir.External(function.name, symbol, parameters, DTYPES[result], **given)
        case _:
            names.refuse(function, "expected '@external(...)' and a function with types")


def _combiner(function: ast.FunctionDef, names: Names) -> ir.DefinedCombiner:
    """A combiner that a spec defines."""
    match function:
        case ast.FunctionDef(
            decorator_list=[ast.Call(ast.Name("combiner"), [], keywords)],
            body=statements,
        ) if len(statements) == len(keywords):
            parts = tuple(k.arg or "" for k in keywords)
            found = (expression(k.value, None, names) for k in keywords)
            identity = tuple(none for none in found if isinstance(none, ir.Const))
            if len(identity) != len(parts):
                names.refuse(function, "a combiner's identity is a constant of each part")
            own = ir.DefinedCombiner(function.name, parts, identity, ())
            known = {v.name: v.dtype for owner in "abc" for v in own.variables(owner)}
            inner = Names(names.path, names.lines, scalars=known)
            results = zip(statements, own.variables("c"), strict=True)
            return replace(own, combined=tuple(_part(s, v, inner) for s, v in results))
        case _:
            names.refuse(function, "a function inside a kernel is a combiner")


def _part(statement: ast.stmt, result: ir.Var, names: Names) -> ir.Expr:
    """What one part of a combiner's result is."""
    match statement:
        case ast.Assign([ast.Attribute() as target], value) if ast.unparse(target) == result.name:
            return expression(value, result.dtype, names)
        case _:
            names.refuse(statement, f"expected '{result.name} = ...'")


def _argument(argument: ast.arg, names: Names) -> str | ir.Parameter | ir.Var | ir.Phase:
    """A dim, an array, a scalar or a phase, by its annotation."""
    name, at = from_script(argument.arg), names.span(argument)
    match argument.annotation:
        case None:
            return name
        case ast.Name(dtype) if dtype in DTYPES:
            return ir.Var(name, DTYPES[dtype], span=at)
        case ast.Subscript(
            ast.Name("Phase"), ast.Tuple([ast.Name(buffer), ast.Constant(int(size))])
        ):
            return ir.Phase(name, from_script(buffer), size, span=at)
        case ast.Subscript(ast.Name(intent), array) if intent in _INTENTS:
            return ir.Parameter(
                _buffer(name, array, ir.Scope.GLOBAL, names), _INTENTS[intent], span=at
            )
        case array:
            return ir.Parameter(_buffer(name, array, ir.Scope.GLOBAL, names), ir.Intent.IN, span=at)


def _temporary(name: str, array: ast.expr, names: Names) -> ir.Buffer:
    """`float32[n, 8] @ heap @ align(0, 32, 8) @ fixed`: a type, and what is said of the memory."""
    match array:
        case ast.BinOp(inner, ast.MatMult(), ast.Name("fixed")):
            return replace(_temporary(name, inner, names), fixed=True)
        case ast.BinOp(inner, ast.MatMult(), ast.Name(place_)) if place_ in _SCOPES:
            return replace(_temporary(name, inner, names), scope=_SCOPES[place_])
        case ast.BinOp(inner, ast.MatMult(), ast.Call(ast.Name("align"), parts, [])):
            numbers = [literal_number(part) for part in parts]
            axis, factor, offset = (n for n in (*numbers, None, None, None)[:3])
            if not (isinstance(axis, int) and isinstance(factor, int) and isinstance(offset, int)):
                names.refuse(array, "`align` takes an axis, a factor and an offset")
            buffer = _temporary(name, inner, names)
            return replace(buffer, aligned=(*buffer.aligned, ir.Alignment(axis, factor, offset)))
        case _:
            return _buffer(name, array, ir.Scope.AUTO, names)


def _buffer(name: str, array: ast.expr, scope: ir.Scope, names: Names) -> ir.Buffer:
    match array:
        case ast.Subscript(ast.Name(dtype), shape) if dtype in DTYPES:
            return ir.Buffer(
                name, DTYPES[dtype], place(shape, names), scope, span=names.span(array)
            )
        case _:
            names.refuse(array, f"expected a type as in 'float32[n]', got '{ast.unparse(array)}'")


# ---------------------------------------------------------------- statements


def _suite(statements: list[ast.stmt], names: Names) -> ir.Stmt:
    match statements:
        case [ast.Pass() as nothing]:
            return ir.Seq((), span=names.span(nothing))
        case [one]:
            return _stmt(one, names)
        case _:
            return _seq(statements, names)


def _seq(statements: list[ast.stmt], names: Names) -> ir.Seq:
    body = [] if isinstance(statements[0], ast.Pass) and len(statements) == 1 else statements
    return ir.Seq(tuple(_stmt(s, names) for s in body), span=names.span(statements[0]))


def _stmt(statement: ast.stmt, names: Names) -> ir.Stmt:
    at = names.span(statement)
    match statement:
        case ast.For(target, ast.Call(kind) as bounds, body, []) if (
            ast.unparse(kind) in _LOOP_KINDS
        ):
            return _loop(target, bounds, body, names, at)
        case ast.Expr(ast.Call(ast.Name("barrier"), [], [])):
            return ir.Barrier(span=at)
        case ast.Expr(ast.Call(ast.Name("leave_unless"), [condition], [])):
            return ir.Leave(expression(condition, DType.BOOL, names), span=at)
        case ast.Expr(ast.Call(ast.Name("send" | "receive" | "wait" as word), [message], given)):
            return transfer(statement, word, dotted(message, names), given, names)
        case ast.If(condition, body, []):
            guard = expression(condition, DType.BOOL, names)
            return ir.If(guard, _suite(body, names), span=at)
        case ast.With([ast.withitem(ast.Call(ast.Name(word)) as call, bound)], body):
            return _with(statement, word, call, bound, body, names)
        case _:
            names.refuse(statement, "expected a statement of the IR: a 'for', 'if' or 'with'")


def _loop(
    target: ast.expr, bounds: ast.Call, body: list[ast.stmt], names: Names, at: Span
) -> ir.Loop:
    match bounds.keywords:
        case []:
            annotations: tuple[tuple[str, int | str], ...] = ()
        case [ast.keyword("annotations", value)]:
            annotations = _annotations(value, names)
        case _:
            names.refuse(bounds, "a loop's bounds take one keyword: 'annotations'")
    var = dotted(target, names)
    lower, upper = _range(bounds, bounds.args, names)
    inner = replace(names, bounds={**names.bounds, var: (lower, upper)})
    kind = _LOOP_KINDS[ast.unparse(bounds.func)]
    return ir.Loop(var, lower, upper, kind, _suite(body, inner), annotations, span=at)


def _range(node: ast.expr, args: list[ast.expr], names: Names) -> tuple[ir.Expr, ir.Expr]:
    match args:
        case [upper]:
            return index(0), expression(upper, INDEX, names)
        case [lower, upper]:
            return expression(lower, INDEX, names), expression(upper, INDEX, names)
        case _:
            names.refuse(node, "expected one bound or two")


def _with(
    statement: ast.stmt,
    word: str,
    call: ast.Call,
    bound: ast.expr | None,
    body: list[ast.stmt],
    names: Names,
) -> ir.Stmt:
    at = names.span(statement)
    match word, call.args, call.keywords, bound:
        case "delinearize", [value, *extents], [], ast.Tuple(parts):
            vars_ = tuple(dotted(p, names) for p in parts)
            sizes = tuple(expression(e, INDEX, names) for e in extents)
            fused = expression(value, INDEX, names)
            if len(vars_) != len(sizes):
                names.refuse(call, f"{len(vars_)} parts take {len(vars_)} extents")
            parts_bounds = {v: (index(0), e) for v, e in zip(vars_, sizes, strict=True)}
            inner = replace(names, bounds={**names.bounds, **parts_bounds})
            return ir.Delinearize(vars_, sizes, fused, _suite(body, inner), span=at)
        case "allocate", [], declarations, None:
            buffers = tuple(
                _temporary(from_script(d.arg or ""), d.value, names) for d in declarations
            )
            inner = replace(names, dtypes={**names.dtypes, **{b.name: b.dtype for b in buffers}})
            return ir.Allocate(buffers, _suite(body, inner), span=at)
        case "seq", [], [], None:
            return _seq(body, names)
        case "block", [ast.Constant(str(name))], keywords, None:
            return _block(name, keywords, body, names, at)
        case _:
            names.refuse(call, f"cannot read '{ast.unparse(call)}' here")


# ---------------------------------------------------------------- blocks


def _block(
    name: str, keywords: list[ast.keyword], body: list[ast.stmt], names: Names, at: Span
) -> ir.Block:
    iters: list[ir.IterVar] = []
    bindings: list[ir.Expr] = []
    block = ir.Block(name, (), (), TRUE, ir.Init(ir.Combiner.SUM, ()))
    origin: ir.Origin | None = None
    own = True
    for keyword in keywords:
        match keyword.arg, keyword.value:
            case str(var), ast.Call(ast.Name(kind), [binding, *domain], []) if kind in _ITER_KINDS:
                bindings.append(expression(binding, INDEX, names))
                lower, upper = _domain(keyword, bindings[-1], domain, names)
                span = names.span(keyword)
                iters.append(
                    ir.IterVar(from_script(var), lower, upper, _ITER_KINDS[kind], span=span)
                )
            case "where", condition:
                block = replace(block, predicate=expression(condition, DType.BOOL, names))
            case "initialises", ast.Constant(bool(initialises)):
                block = replace(block, initialises=initialises)
            case "annotations", annotations:
                block = replace(block, annotations=_annotations(annotations, names))
            case "origin", ast.Constant(None):
                own = False
            case "origin", ast.Subscript(block_name, place_):
                own = False
                origin = ir.Origin(dotted(block_name, names), place(place_, names))
            case _:
                names.refuse(keyword, f"a block takes no '{ast.unparse(keyword)}'")
    return replace(
        block,
        iters=tuple(iters),
        bindings=tuple(bindings),
        origin=own_origin(name, tuple(iters)) if own else origin,
        body=_body(body, names),
        span=at,
    )


def _domain(
    keyword: ast.keyword, binding: ir.Expr, domain: list[ast.expr], names: Names
) -> tuple[ir.Expr, ir.Expr]:
    """An iteration variable's bounds: left out, they are those of the loop that it is bound to."""
    if domain:
        return _range(keyword.value, domain, names)
    if isinstance(binding, ir.Var) and binding.name in names.bounds:
        return names.bounds[binding.name]
    names.refuse(keyword, f"'{keyword.arg}' needs a domain: it is not bound to one loop's variable")


def _annotations(node: ast.expr, names: Names) -> tuple[tuple[str, int | str], ...]:
    match node:
        case ast.Dict(keys, values):
            return tuple(_annotation(k, v, names) for k, v in zip(keys, values, strict=True))
        case _:
            names.refuse(node, "annotations are a dict")


def _annotation(key: ast.expr | None, value: ast.expr, names: Names) -> tuple[str, int | str]:
    number = literal_number(value)
    match key, value:
        case ast.Constant(str(name)), _ if isinstance(number, int):
            return name, number
        case ast.Constant(str(name)), ast.Constant(str(text)):
            return name, text
        case _:
            names.refuse(value, "annotations are strings or integers, named by strings")


def _body(statements: list[ast.stmt], names: Names) -> ir.Store | ir.Init | ir.Update:
    match statements:
        case [ast.Assign([targets], value)]:
            places = tuple(_target(t, names) for t in items(targets))
            return _assignment(statements[0], places, value, names)
        case _:
            names.refuse(statements[0], "a block's body is one assignment")


def _target(node: ast.expr, names: Names) -> ir.Destination:
    match node:
        case ast.Subscript(buffer, indices):
            name = dotted(buffer, names)
            if name not in names.dtypes:
                names.refuse(node, f"no array '{name}' is declared here")
            return ir.Destination(name, place(indices, names), span=names.span(node))
        case _:
            names.refuse(node, f"expected a place as in 'a[i]', got '{ast.unparse(node)}'")


def _assignment(
    statement: ast.stmt, places: tuple[ir.Destination, ...], value: ast.expr, names: Names
) -> ir.Store | ir.Init | ir.Update:
    at = names.span(statement)
    match value:
        case ast.Attribute(ast.Name("identity"), combiner) if combiner in names.combiners:
            return ir.Init(names.combiners[combiner], places, span=at)
        case ast.Call(ast.Attribute(ast.Name("combine"), combiner), [old, new], []) if (
            combiner in names.combiners
        ):
            if tuple(_target(t, names) for t in items(old)) != places:
                names.refuse(old, "an update combines the places that it writes")
            values = items(new)
            if len(values) != len(places):
                names.refuse(new, f"{len(places)} places take {len(places)} values")
            contexts = [names.dtypes[p.buffer] for p in places]
            terms = tuple(expression(v, c, names) for v, c in zip(values, contexts, strict=True))
            return ir.Update(names.combiners[combiner], places, terms, span=at)
        case _:
            if len(places) != 1:
                names.refuse(statement, "a store has one target")
            stored = expression(value, names.dtypes[places[0].buffer], names)
            return ir.Store(places[0], stored, span=at)
