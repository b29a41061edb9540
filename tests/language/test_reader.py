"""What `load` refuses, and where its errors point."""

from pathlib import Path

import pytest

from gen.errors import SpecError
from gen.ir.nodes import Intent
from gen.ir.types import DType
from gen.language import KernelSpec, choices, least_sizes, load, loads
from gen.targets.registry import TARGETS

SPECS = Path(__file__).parent / "specs"

TEXT = """\
tilesmith: 1
kernel: scale
doc: A scaled copy.
signature: (n)->(n)
dtypes: {T: [float32, float64]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m, n]", intent: out}
scalars:
  factor: {type: T, default: 2.0}
compute: |
  t[i, j] = factor * x[i, j]
  y[i, j] = t[i, j]
oracle: factor * x
accuracy: ulp(y[i, j]) + eps * abs(x[i, j]) + 0 * t[i, j]
"""


def edited(old: str, new: str) -> str:
    assert TEXT.count(old) == 1, old
    return TEXT.replace(old, new)


def refused(text: str) -> SpecError:
    with pytest.raises(SpecError) as info:
        loads(text, "scale.yaml")
    return info.value


def test_a_spec_is_read() -> None:
    spec = loads(TEXT, "scale.yaml")
    assert isinstance(spec, KernelSpec)
    assert spec.name == "scale" and spec.dims == ("m", "n") and spec.loop_dim == "m"
    assert [(a.name, a.element, a.shape, a.intent) for a in spec.arguments] == [
        ("x", "T", ("m", "n"), Intent.IN),
        ("y", "T", ("m", "n"), Intent.OUT),
    ]
    assert spec.dtypes[0].choices == (DType.FLOAT32, DType.FLOAT64)
    assert str(spec.signature) == "(n)->(n)"
    assert spec.scalars[0].default == 2.0


def test_a_type_that_follows_another() -> None:
    """Its choices go with those of the other; what is not said is alike."""
    free = edited("float64]}", "float64], U: [int8, int16], S: {of: T, float32: float64}}")
    spec = loads(free, "scale.yaml")
    both = {(c["T"], c["S"]) for c in choices(spec)}
    assert both == {(DType.FLOAT32, DType.FLOAT64), (DType.FLOAT64, DType.FLOAT64)}
    assert len(choices(spec)) == 4


@pytest.mark.parametrize("path", sorted(SPECS.glob("*.yaml")), ids=lambda p: p.stem)
def test_every_spec_of_the_tests_is_read(path: Path) -> None:
    assert load(path).program.body


def test_a_recipe_is_read() -> None:
    recipe = load(SPECS / "softmax.yaml").recipes[0]
    assert recipe.target == "cpu"
    assert recipe.params[0].values == (("v4", 4), ("v3", 4), ("v2", 2), ("neon", 4))
    fast, plain = recipe.variants
    assert fast.when is not None and plain.when is None and plain.steps == ()
    assert [s.primitive for s in fast.steps][:2] == ["compute_at", "compute_at"]
    assert fast.steps[0].span.line == 23


def test_an_error_shows_the_line_a_caret_and_a_hint() -> None:
    error = refused(edited("intent: out", "intnt: out"))
    assert str(error) == (
        "scale.yaml:8:24: error: unknown key 'intnt' in argument 'y'\n"
        '      y: {type: "T[m, n]", intnt: out}\n'
        "                           ^^^^^\n"
        "  hint: did you mean 'intent'?"
    )


# What is edited, what it becomes, the message, and its line and column.
ERRORS = [
    ("tilesmith: 1", "tilesmith: 2", "'tilesmith' must be 1, not 2", 1, 1),
    ("tilesmith: 1\n", "", "the spec needs the key 'tilesmith'", 1, 1),
    ("doc: A", "dok: A", "unknown key 'dok' in the spec", 3, 1),
    ("kernel: scale", "kernel: 9lives", "'9lives' is not a name", 2, 9),
    ("kernel: scale", "kernel: a__b", "'a__b' is not a name", 2, 9),
    ("kernel: scale", "kernel: while", "'while' is a word of Python or C", 2, 9),
    ("float32, float64", "float32, flaot64",
     "a dtype must be one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64,"
     " float16, bfloat16, float32, float64, complex64, complex128, not 'flaot64'", 5, 23),
    ("[float32, float64]", "[float32, float32]", "a dtype is given twice for 'T'", 5, 13),
    ("[float32, float64]", "[]", "'T' must be a list of dtypes", 5, 13),
    ("float64]}", "float64], S: {float32: float64}}",
     "'S' must be a list of dtypes, or follow one", 5, 36),
    ("float64]}", "float64], S: {of: U}}", "'S' must be of a list of dtypes before it", 5, 41),
    ("float64]}", "float64], S: {of: T, int8: int64}}", "'int8' is not a choice of 'T'", 5, 44),
    ("float64]}", "float64], S: {of: T, float32: float65}}", "a dtype must be one of bool, int8,"
     " int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,"
     " complex64, complex128, not 'float65'", 5, 53),
    ("{T: [", "{abs: [", "'abs' is a word of the language", 5, 10),
    ('x: {type: "T[m, n]"}', 'x: {type: "T"}', "'T' is not the type of an array", 7, 13),
    ('x: {type: "T[m, n]"}', 'x: {type: "U[m, n]"}', "unknown type 'U'", 7, 13),
    ('x: {type: "T[m, n]"}', 'x: {type: "T[m, n+1]"}',
     "the signature gives 'x' the core axes (n), its shape is (m, n + 1)", 7, 3),
    ("intent: out", "intent: both", "'intent' of argument 'y' must be one of in, out, inout,"
     " not 'both'", 8, 32),
    ("  factor:", "  x:", "'x' is an argument already", 10, 3),
    ("  factor:", "  exp:", "'exp' is a word of the language already", 10, 3),
    ("default: 2.0", "default: true_", "the default of 'factor' must be a number", 10, 30),
    ("default: 2.0", "default: inf", "the default of 'factor' must be a number", 10, 30),
    ("default: 2.0", "default: -1e400", "the number is too large", 10, 30),
    ("type: T, default: 2.0", "type: int64, default: 2.5",
     "the default of 'factor' must be an integer", 10, 34),
    ("type: T, default: 2.0", "type: int64, default: 9223372036854775808",
     "the default of 'factor' must fit int64", 10, 34),
    ("type: T, default: 2.0", "type: uint8, default: -1", "the default of 'factor' must fit uint8",
     10, 34),
    ("default: 2.0", "default: true", "the default of 'factor' must be a number", 10, 30),
    ("type: T, default: 2.0", "type: bool, default: 1", "the default of 'factor' must be a bool",
     10, 33),
    ("(n)->(n)", "n->n", "'n->n' is not a signature", 4, 12),
    ("(n)->(n)", "(n),(n)->(n)", "the signature has 2 inputs, the arguments 1", 4, 12),
    ("(n)->(n)", "(k)->(n)", "the signature gives 'x' the core axes (k), its shape is (m, n)",
     7, 3),
    ("(n)->(n)", "(m,n)->(n)", "the leading axes must be one dim of its own, not m", 4, 12),
    ("oracle: factor", "oracle: faktor", "unknown name 'faktor'", 14, 9),
    ("oracle: factor * x", "oracle: np.load(x)",
     "'np.load' is not a function that a formula may call", 14, 9),
    ("oracle: factor * x", "oracle: {z: x}", "'z' is not an output", 14, 10),
    ("ulp(", "upl(", "'upl' is not a function that a formula may call", 15, 11),
    ("abs(x[i, j])", "abs(x[i, k])", "unknown name 'k'", 15, 41),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message", "line", "column"), ERRORS)
def test_errors(old: str, new: str, message: str, line: int, column: int) -> None:
    error = refused(edited(old, new))
    assert error.message == message
    assert error.span is not None
    assert (error.span.line, error.span.column) == (line, column)


BODY = [
    ("y[i, j] = t[i, j]", "t[i, j] = t[i, j] + 1", "the output 'y' is never written", 8, 3),
    ("t[i, j] = factor * x[i, j]", "t[i, j] = factor", "cannot tell what index 'i' runs over",
     12, 5),
    ("factor * x[i, j]", "2 * x[i, j]", "the scalar 'factor' is not used", 10, 3),
    ("factor * x[i, j]", "factor * u[i, j]", "unknown array 'u'", 12, 22),
    ("factor * x[i, j]", "factor * y[i, j]", "'y' is read before it is defined", 12, 22),
    ("factor * x[i, j]", "factr * x[i, j]", "unknown name 'factr'", 12, 13),
    ("factor * x[i, j]", "x[i, j] * factor + x[i, j + k]", "unknown name 'k'", 12, 41),
    ("factor * x[i, j]", "factor * x[i]", "'x' has 2 axes and is given 1 index", 12, 22),
    ("factor * x[i, j]", "factor * x[j, i]",
     "index 'i' runs over m but axis 0 of 't' has size n", 13, 15),
    ("  y[i, j] = t[i, j]", "  y[i, j] = t[i, j] + x[j, i]",
     "index 'i' runs over m but axis 1 of 'x' has size n", 13, 28),
    ("= t[i, j]", "= sum(t[i, k] for k in m)",
     "index 'k' runs over m but axis 1 of 't' has size n", 13, 22),
    ("y[i, j] = t", "y[i, 0] = t", "unknown name 'j'", 13, 18),
    ("y[i, j] = t[i, j]", "y[i, j] = t[i, j]\n  y[i, j] = y[i, j - 1]",
     "'y' is read at another point than the one defined, and index 'i' has no order", 14, 13),
    ("y[i, j] = t[i, j]", "y[i, j] += t[i, j]", "'y' is updated before it is defined", 13, 3),
    ("y[i, j] = t[i, j]", "x[i, j] = t[i, j]", "'x' is an input and cannot be written", 13, 3),
    ("y[i, j] = t[i, j]", "n[i, j] = t[i, j]", "'n' is not an array", 13, 3),
    ("  y[i, j] = t[i, j]", "  for m in range(3): y[m, j] = t[m, j]",
     "'m' already has a meaning here", 13, 7),
    ("  y[i, j] = t[i, j]", "  for i in range(x[0, 0]): y[i, j] += t[i, j]",
     "'y' is updated before it is defined", 13, 28),
    ("  y[i, j] = t[i, j]", "  y[i, j] = 0\n  for i in range(x[0, 0]): y[i, j] += t[i, j]",
     "an index must be an integer, not float32", 14, 18),
    ("  y[i, j] = t[i, j]", "  y[i, j] = 0\n  for i in range(factor): y[i, j] += t[i, j]",
     "an index must be an integer, not float32", 14, 18),
    ("  y[i, j] = t[i, j]", "  y[i, j] = 0\n  for k in range(x[0, 0]): y[i, j] += t[i, j]",
     "cannot tell how large index 'k' may become", 14, 7),
    ("  y[i, j] = t[i, j]", "  if t[i, j] > 0: y[i, j] = t[i, j]",
     "'y' keeps what it held where the condition does not hold, and holds nothing yet", 13, 19),
    ("  y[i, j] = t[i, j]", "  y[i, int32(t[i, j])] = t[i, j]",
     "'y' is assigned at a position that is read from an array", 13, 8),
    ("y[i, j] = t[i, j]", "y[i, factor] = t[i, j]",
     "'factor' is a scalar that is no integer, not an index", 13, 8),
    ("  y[i, j] = t[i, j]",
     "  y[i, j] = 0\n  for i in m:\n    for j in n:\n"
     "      y[i, int32(y[i, j])] += t[i, j]", "the position depends on 'y' itself", 16, 12),
    ("  y[i, j] = t[i, j]",
     "  y[i, j] = 0\n  for i in m:\n    if y[i, 0] > 0:\n      for j in n:\n"
     "        y[i, j] += t[i, j]", "'y' decides whether this runs, and is changed by it", 17, 9),
    ("  y[i, j] = t[i, j]", "  y[i, j] = 0\n  y[i, j] += t[i, j]\n  if t[0, 0]: y[i, j] += 1",
     "a condition must be a bool", 15, 6),
    ("t[i, j] = factor", "t[i * i, j] = factor",
     "cannot tell the size of axis 0 of 't' from this index", 12, 5),
    ("= t[i, j]", "= t[i, j] if x[i, j] else 0", "a condition must be a bool, not float32", 13, 24),
    ("= t[i, j]", "= t[i, 0.5 * j]", "an index must be an integer, not float64", 13, 18),
    ("= t[i, j]", "= t[i, j] // 2", "'//' needs integers, not float32", 13, 13),
    ("= t[i, j]", "= not t[i, j]", "'not' needs a bool, not float32", 13, 13),
    ("= t[i, j]", "= t[i, j] and True", "'and' needs bools, not float32", 13, 13),
    ("= t[i, j]", "= t[i, j] & 1", "'&' needs integers or bools, not float32", 13, 13),
    ("= t[i, j]", "= t[i, j] + (t[i, j] > 0) * (t[i, j] > 1)", "'*' needs numbers, not bool",
     13, 23),
    ("= t[i, j]", "= any(t[i, k] for k in n)", "'any' needs bools, not float32", 13, 17),
    ("= t[i, j]", "= sum(t[i, k] > 0 for k in n)", "'sum' needs numbers, not bool", 13, 17),
    ("= t[i, j]", "= argmax(t[i, k] for k in n for l in n)", "argmax runs over one index", 13, 13),
    ("= t[i, j]", "= float64(t[i, j])", "the value is float64 but 'y' is float32", 13, 3),
    ("= t[i, j]", "= t[i, j] + int8(300)", "300 does not fit in int8", 13, 23),
    ("= t[i, j]", "= t[i, j] + int64(1e300)", "1e+300 does not fit in int64", 13, 23),
    ("= t[i, j]", "= t[i, j] + 1 // 0", "division by zero", 13, 23),
    ("t[i, j] = factor * x[i, j]",
     "for i in range(m + 9223372036854775807 + 1 - 1 - 9223372036854775807 * 1 * 2):\n"
     "    for j in n: t[i, j] = factor * x[i, j]",
     "18446744073709551614 does not fit in int64", 12, 52),
    ("t[i, j] = factor * x[i, j]",
     "for i in m:\n    for j in range(1, n): t[i, j] = factor * t[i, j - 1] + x[i, j]",
     "the element type of 't' depends on its own values", 13, 46),
    ("t[i, j] = factor * x[i, j]",
     "for i in m:\n    t[i, j] = factor * x[i, j] * u[i]\n    u[i] = x[i, 0]",
     "'u' is read before it is defined", 13, 34),
    ("t[i, j] = factor", "c = 0\n  t[i, j] = c + factor",
     "'c' is defined by numbers alone, which have no element type", 12, 3),
    ("y[i, j] = t[i, j]", "y[i, j] = t[i, j]\n  u[i, j] = x[i, j]",
     "the temporary 'u' is never read", 14, 3),
    ("= t[i, j]", "= sum(t[i, k] for k in n if t[i, k])", "a condition must be a bool", 13, 39),
    ("= t[i, j]", "= sum(t[i, k] for k in n if k)",
     "this is not a condition over dims and indices", 13, 39),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message", "line", "column"), BODY)
def test_errors_in_the_body(old: str, new: str, message: str, line: int, column: int) -> None:
    test_errors(old, new, message, line, column)


TEMPORARIES = [
    ("t: U", "unknown type 'U'", 11, 18),
    ("t: [T]", "'t' must be a type", 11, 18),
    ("t: T + 1", "'t' must be a type", 11, 18),
    ('t: "U[m, n]"', "unknown type 'U'", 11, 18),
    ('t: "T[m, k]"', "'k' is not a dim", 11, 24),
    ('t: "T[m, factor]"', "the scalar 'factor' is T: sizes are of int64", 11, 24),
    ('t: "T[m, m * n]"', "a product of sizes needs a number", 11, 24),
    ('t: "T[m, n // m]"', "sizes are divided by positive numbers alone", 11, 24),
    ('t: "T[m, n / 2]"', "this is not an integer expression over dims and indices", 11, 24),
    ('t: "T[m]"', "'t' has 1 axis and is given 2 indices", 13, 3),
    ('t: "T[]"', "'t' has 0 axes and is given 2 indices", 13, 3),
    ('t: "T[n, m]"', "index 'i' runs over n but axis 0 of 'x' has size m", 13, 24),
    ('u: "T[m, n]"', "the temporary 'u' is never defined", 11, 15),
    ('x: "T[m, n]"', "'x' is an argument already", 11, 15),
]


@pytest.mark.parametrize(("temporary", "message", "line", "column"), TEMPORARIES)
def test_errors_in_temporaries(temporary: str, message: str, line: int, column: int) -> None:
    test_errors("compute: |", f"temporaries: {{{temporary}}}\ncompute: |", message, line, column)


def test_a_shape_that_cannot_be_told_hints_at_temporaries() -> None:
    error = refused(edited("t[i, j] = factor", "t[i * i, j] = factor"))
    assert error.hint == "give its shape under 'temporaries'"


@pytest.mark.parametrize("name", ["eps", "ulp"])
def test_a_name_that_accuracy_has_itself(name: str) -> None:
    error = refused(TEXT.replace("factor", name))
    message = f"'{name}' has a meaning of its own in 'accuracy'"
    assert (error.message, error.hint) == (message, "choose another name")
    assert error.span is not None and error.span.line == 10
    loads("".join(edited("ulp(y[i, j])", "").partition("accuracy")[0]).replace("factor", name), "k")


def test_an_unused_argument() -> None:
    text = edited("(n)->(n)", "(n),(n)->(n)").replace("  y: {", '  w: {type: "T[n]"}\n  y: {')
    assert refused(text).message == "the argument 'w' is not used"


BY_A_SCALAR = """\
tilesmith: 1
kernel: rings
doc: One more.
signature: (n)->(n)
dtypes: {T: [int64]}
arguments: {x: {type: "T[n]"}, y: {type: "T[n]", intent: out}}
scalars: {k: {type: int64, default: 3}}
constraints: [k >= 1]
compute: y[i] = x[i] + 1
recipes:
  - target: cpu
    params: {part: k}
    variants:
      - steps: [{split: {loop: y.i, factors: [null, k]}}]
"""


def test_a_scalar_that_a_recipe_alone_takes_is_used() -> None:
    loads(BY_A_SCALAR, "rings.yaml")
    loads(BY_A_SCALAR.replace("null, k", "null, $part"), "rings.yaml")
    nowhere = BY_A_SCALAR.replace("null, k", "null, 4").replace("part: k", "part: 4")
    assert refused(nowhere).message == "the scalar 'k' is not used"
    sized = BY_A_SCALAR.replace("compute", "sizes: {p: n // k}\ncompute").replace("l, k", "l, p")
    loads(sized, "rings.yaml")
    assert refused(sized.replace("l, p", "l, k")).message == "the size 'p' is not used"
    # an index of that name is no use of the scalar
    named = nowhere.replace("k: {", "i_0: {").replace("k >", "i_0 >").replace("y.i,", "y.i_0,")
    assert refused(named).message == "the scalar 'i_0' is not used"


@pytest.mark.parametrize("op", ["//", "%", "&", "<<"])
def test_integers_that_no_type_holds(op: str) -> None:
    text = edited("y: {", 'u: {type: "uint64[n]"}\n  y: {').replace("(n)->", "(n),(n)->")
    text = text.replace("factor: {type: T, default: 2.0}", "factor: {type: int64, default: 2}")
    error = refused(text.replace("factor * x[i, j]\n", f"x[i, j] * (u[j] {op} factor)\n"))
    assert error.message == f"'{op}' needs one type of integers: none holds uint64 and int64"
    assert error.hint == "cast one side: int64(...) or uint64(...)"


RECIPE = """\
recipes:
  - target: cpu
    variants:
      - when: n <= 16
        steps:
          - split: {loop: y.j, factors: [8]}
      - steps: []
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("when: n <= 16", "when: k <= 9", "'k' is not a dim, an index or an integer"
         " parameter here"),
        ("when: n <= 16", "when: n", "this is not a condition over dims and indices"),
        ("      - steps: []\n", "", "the last variant must have no 'when'"),
        ("when: n <= 16\n        steps", "steps", "only the last variant has no 'when'"),
        ("    variants:", "    params: {}\n    variants: []\n  - target: cuda\n    variants:",
         "the recipe has no variants"),
        ("    variants", "    params: {acc: [1]}\n    variants",
         "a parameter's value must be an integer or a word"),
        ("      - steps: []\n", "      - steps: []\n  - target: cpu\n    variants: [steps: []]\n",
         "the target 'cpu' has a recipe already"),
    ],
)  # fmt: skip
def test_errors_in_a_recipe(old: str, new: str, message: str) -> None:
    assert RECIPE.count(old) == 1
    assert refused(TEXT + RECIPE.replace(old, new)).message == message


def refused_target(text: str) -> SpecError:
    """The error of the registry, which knows the targets."""
    with pytest.raises(SpecError) as error:
        TARGETS.check(loads(text, "scale.yaml").recipes)
    return error.value


KNOWN = (
    "cpu, cpu.v2, cpu.v3, cpu.v4, cpu.neon, cuda, cuda.sm_75, cuda.sm_80, cuda.sm_86, cuda.sm_89,"
    " cuda.sm_90, cuda.sm_100, cuda.sm_120"
)


@pytest.mark.parametrize(
    ("target", "message", "hint"),
    [
        ("cpu.v9", f"unknown target 'cpu.v9': there are {KNOWN}", "did you mean 'cpu.v4'?"),
        ("wasm", f"unknown target 'wasm': there are {KNOWN}", None),
        ("cuda.sm_91", f"unknown target 'cuda.sm_91': there are {KNOWN}",
         "did you mean 'cuda.sm_90'?"),
    ],
)  # fmt: skip
def test_a_recipe_for_no_target_is_refused_at_its_name(
    target: str, message: str, hint: str | None
) -> None:
    text = TEXT + RECIPE.replace("target: cpu", f"target: {target}")
    error = refused_target(text)
    assert (error.message, error.hint) == (message, hint)
    assert error.span is not None
    assert text.splitlines()[error.span.line - 1][error.span.column - 1 :] == target


def test_recipes_are_for_a_target_or_for_one_of_its_levels() -> None:
    for target in TARGETS.of_recipes:
        text = TEXT + RECIPE.replace("target: cpu", f"target: {target}")
        TARGETS.check(loads(text, "scale.yaml").recipes)


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        ("ln(x[i, j])", "unknown function 'ln'", "did you mean 'log'?"),
        ("where(x[i, j])", "unknown function 'where'", "did you mean 'select'?"),
        ("EXP(x[i, j])", "unknown function 'EXP'", "did you mean 'exp'?"),
        ("arctan2(x[i, j], 1)", "unknown function 'arctan2'", "did you mean 'atan2'?"),
        ("gammaln(x[i, j])", "unknown function 'gammaln'", "did you mean 'lgamma'?"),
        ("rint(x[i, j])", "unknown function 'rint'", "did you mean 'round'?"),
        ("np.arcsinh(x[i, j])", "this is not an expression of the language",
         "functions have no module: asinh(...)"),
        ("x[i, j] * sum(x[i, k] for k in N)",
         "'N' is not a dim, an index or an integer parameter here", "did you mean 'n'?"),
        ("np.sqrt(x[i, j])", "this is not an expression of the language",
         "functions have no module: sqrt(...)"),
        ("np.maximum(x[i, j], 0)", "this is not an expression of the language",
         "functions have no module: max(...)"),
        ("np.max(x[i, j], 0)", "this is not an expression of the language",
         "functions have no module: max(...)"),
        ("x[i, j] * np.pi", "this is not an expression of the language",
         "names have no module: pi"),
        ("exp(x=x[i, j])", "this is not an expression of the language",
         "arguments of functions have no names"),
        ("sum(x * x, axis=-1)", "this is not an expression of the language",
         "a reduction is sum(x[i, j] for j in n)"),
        ("np.sum(x, -1)", "this is not an expression of the language",
         "a reduction is sum(x[i, j] for j in n)"),
        ("x.max()", "this is not an expression of the language",
         "a reduction is max(x[i, j] for j in n)"),
        ("t[i, j - 1] + x[i, j]", "'t' is read before it is defined",
         "define the first of 't', then write the order out: 'for j in range(...):' around the"
         " statement"),
        ("t[i, j] + x[i, j]", "'t' is read before it is defined", None),
        ("x[i, j] * x[i, factr]", "unknown name 'factr'", "did you mean 'factor'?"),
        ("x[i, j] * x[k, j]", "unknown name 'k'",
         "an index must be on the left, in a 'for' or in a reduction"),
    ],
)  # fmt: skip
def test_what_a_name_may_mean(value: str, message: str, hint: str | None) -> None:
    error = refused(edited("factor * x[i, j]\n  y", f"{value}\n  y"))
    assert (error.message, error.hint) == (message, hint)


def test_an_array_that_should_have_an_index() -> None:
    body = edited("t[i, j] = factor * x[i, j]", "t = sum(factor * x[i, j] for j in n)")
    error = refused(body)
    assert (error.message, error.hint) == ("unknown name 'i'", "give 't' its index: t[i]")


def test_a_misspelt_level_of_a_parameter() -> None:
    levels = "    params: {acc: {v3: 8, noen: 4}}\n    variants"
    error = refused_target(TEXT + RECIPE.replace("    variants", levels))
    assert error.message == "unknown level 'noen': there are v2, v3, v4, neon"
    assert error.hint == "did you mean 'neon'?"


def test_constraints_are_over_dims() -> None:
    spec = loads(TEXT + "constraints: [n >= 3, n > 3, n >= 2]\n", "scale.yaml")
    assert least_sizes(spec) == {"n": 4}
    error = refused(TEXT + "constraints: [i >= 3]\n")
    assert error.message == "'i' is not a dim, an index or an integer parameter here"


def test_several_outputs_need_a_map_of_formulas() -> None:
    text = (SPECS / "jacobi_2d.yaml").read_text()
    assert refused(text + "oracle: a\n").message == "there are several outputs"
    assert len(loads(text + "oracle: {a: a, b: b}\n", "j.yaml").oracle) == 2


def test_a_temporary_of_a_later_statement_may_be_read_where_its_shape_is_stated() -> None:
    """What it held after the iteration before; the prover sees to it that there was one."""
    body = "for i in m:\n    t[i, j] = factor * x[i, j] * u[i]\n    u[i] = x[i, 0]"
    text = edited("t[i, j] = factor * x[i, j]", body)
    assert "give its shape under 'temporaries'" in str(refused(text))
    loads(text.replace("compute:", 'temporaries: {u: "T[m]"}\ncompute:'), "scale.yaml")
