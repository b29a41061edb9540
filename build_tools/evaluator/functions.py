"""Functions: of floats, of complex numbers, casts, and those that a spec declares."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from . import elements
from .elements import BOOL, FLOAT64, Type, common, conversion
from .values import Env, Scope, Typed, binary, select


def called(name: str, given: Sequence[Typed], scope: Scope) -> Typed:
    if scope.is_type(name):
        stored = scope.element(name)
        (cast,) = given
        return Typed(elements.computed(stored), cast.as_(stored))
    match name:
        case "min" | "max":
            return reduce(lambda a, b: binary(name, a, b), given)
        case "select":
            return select(*given)
        case "isnan" | "isinf" | "isfinite":
            (value,) = (v.value for v in given)
            predicate = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}[name]
            return Typed(BOOL, lambda env: bool(predicate(value(env))))
        case "abs" | "real" | "imag" | "conj" | "complex":
            return _of_parts(name, given)
        case _ if name in scope.document.externals:
            return _external(name, given, scope)
    if name in ("floor", "ceil", "round", "trunc") and elements.is_integer(given[0].of):
        return given[0]
    if name == "sign" and elements.is_integer(given[0].of):
        (value,), of = (v.value for v in given), given[0].of
        return Typed(of, lambda env: elements.sign_of_integer(value(env)))
    of = _floating(given)
    values = [v.as_(of) for v in given]
    weak = not isinstance(of, np.dtype)
    wide: type[np.generic] = np.complex128 if of is complex else np.float64
    kind: Callable[[Any], Any] = wide if weak else (lambda v: v)
    match name:
        case _ if name in elements.OF_TWO:
            (a, b), of_two = values, elements.OF_TWO[name]
            return Typed(of, lambda env: of_two(kind(a(env)), kind(b(env))))
        case "fma":
            return Typed(of, lambda env: elements.fused(*(kind(v(env)) for v in values)))
        case _:
            (argument,), function = values, elements.FUNCTIONS[name]
            whole = conversion(float, of) if weak else kind
            return Typed(of, lambda env: whole(function(kind(argument(env)))))


def _floating(given: Sequence[Typed]) -> Type:
    """What a function of floats computes in: that of integers in float64."""
    of = common(*(v.of for v in given))
    if of is int:
        return float
    return FLOAT64 if elements.is_integer(of) or elements.same(of, BOOL) else of


def _of_parts(name: str, given: Sequence[Typed]) -> Typed:
    of = common(*(v.of for v in given))
    if name == "complex":
        of = _floating(given)
        re, im = (v.as_(of) for v in given)
        both = complex if of is float else np.result_type(of, np.complex64)
        make = both.type if isinstance(both, np.dtype) else both
        return Typed(both, lambda env: make(complex(re(env), im(env))))
    (value,) = (v.value for v in given)
    turned = of is complex or (isinstance(of, np.dtype) and of.kind == "c")
    if not turned:
        functions: dict[str, Callable[[Any], Any]] = {
            "abs": elements.absolute(of),
            "imag": lambda v: type(v)(0),
        }
        function = functions.get(name, lambda v: v)
        return Typed(of, lambda env: function(value(env)))
    if name == "conj":
        return Typed(of, lambda env: np.conj(value(env)))
    parts: dict[str, Callable[[Any], Any]] = {"abs": np.abs, "real": np.real, "imag": np.imag}
    part = parts[name]
    kind: Type = np.zeros(0, of).real.dtype if isinstance(of, np.dtype) else float
    return Typed(kind, lambda env: part(value(env)))


def _external(name: str, given: Sequence[Typed], scope: Scope) -> Typed:
    """Its oracle is a formula of NumPy and SciPy."""
    import scipy

    external = scope.document.externals[name]
    types = [scope.element(t) for t in external.arguments.values()]
    values = [v.as_(t) for v, t in zip(given, types, strict=True)]
    result, code = scope.element(external.result), compile(external.oracle, name, "eval")
    names = tuple(external.arguments)

    def called(env: Env) -> Any:
        arguments = {n: v(env) for n, v in zip(names, values, strict=True)}
        return result.type(eval(code, {"np": np, "scipy": scipy}, arguments))

    return Typed(result, called)
