"""What formulas may call, and ways out of them that are closed."""

import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from gen.errors import SpecError
from gen.language import loads, yaml
from gen.language.formulas import calls, oracle
from gen.language.formulas.formula import evaluate

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
LISTED = [name for name in calls.SIGNATURES if "." in name]


def spec(formula: str, accuracy: str = "eps") -> str:
    return (
        "tilesmith: 1\nkernel: k\ndoc: d\nsignature: (n)->(n)\ndtypes: {T: [float32, int32]}\n"
        'arguments: {x: {type: "T[n]"}, y: {type: "T[n]", intent: out}}\n'
        f"compute: y[i] = x[i]\noracle: |\n  {formula}\naccuracy: |\n  {accuracy}\n"
    )


def error(formula: str) -> SpecError:
    """What reading the formula raises, or running it on three numbers."""
    with pytest.raises(SpecError) as info:
        x = np.ones(3, np.float32)
        oracle.evaluate(loads(spec(formula), "k.yaml"), {"x": x})
    assert info.value.span is not None and info.value.span.line == 9
    return info.value


CLOSED = [
    # what runs code, reads or writes files, or touches memory that is no array's
    "scipy.special.test()", "scipy.ndimage.test()", "scipy.linalg.test()", "np.test()",
    "np.lib.stride_tricks.as_strided(x, (10**9,))", "np.lib.stride_tricks.np.load('f')",
    "np.load('f')", "np.save('f', x)", "np.savetxt('f', x)", "np.fromfile('f')", "np.memmap('f')",
    "np.genfromtxt('f')", "np.loadtxt('f')", "np.DataSource('f')", "np.fromregex('f', 'x', 'i4')",
    "np.lib.npyio.load('f')", "np.ctypeslib.load_library('c', '/')", "np.f2py.compile('x')",
    "scipy.io.loadmat('f')", "scipy.LowLevelCallable(x)", "scipy.special.os.system('ls')",
    "scipy.stats.os.system('ls')", "scipy.linalg.blas.dgemm(1, x, x)", "np.getbufsize()",
    "np.frompyfunc(x, 1, 1)", "np.vectorize(x)", "np.fromfunction(x, (3,))",
    "np.piecewise(x, [], [])", "np.apply_along_axis(x, 0, x)",
    "scipy.ndimage.generic_filter(x, x, 3)", "np.frombuffer(x)",
    "scipy.ndimage.geometric_transform(x, x)", "scipy.linalg.funm(x, x)", "np.random.rand(3)",
    "skimage.transform.warp(x, x)", "scipy.linalg.interpolative.svd(x, 3)", "np.sum.at(x)",
    "np.add.at(x, 0, 1)", "np.add.reduce(x)", "np.add.accumulate(x, 0, None, x)", "np.put(x, 0, 1)",
    "np.copyto(x, 0)", "np.place(x, x, x)", "np.fill_diagonal(x, 0)", "np.seterr('raise')",
    "np.set_printoptions()", "np.info(x)", "np.nditer(x)", "np.empty(3)", "np.empty_like(x)",
    # attributes, and syntax beyond expressions of numbers
    "x.__class__", "x.tofile('f')", "x.dump('f')", "x.ctypes", "x.data", "x.base", "x.flat",
    "x.dtype", "x.setflags(1)", "x.sort()", "x.T.tofile('f')", "np.__dict__", "np.sum.__globals__",
    "np.sum", "np.core", "np.pi.hex()", "(1).__class__", "().__class__.__bases__[0]",
    "[].append(1)", "''.format(x)", "f'{x}'", "f'{x.__class__}'", "'a' + 'b'", "'%s' % x", "'a'",
    "b'a'", "...", "lambda: x", "(lambda: x)()", "(z := x)", "[z for z in x]", "{z for z in x}",
    "(z for z in x)", "{}", "{1: x}", "{1}", "x if x else x", "x and x", "not x", "x is x",
    "x in x", "0 < x < 1", "await x", "(yield x)", "*x", "[*x]", "np.sum(*x)", "np.sum(**x)",
    "x << 1", "globals()", "eval('x')", "__import__('os')", "getattr(x, 'T')", "type(x)",
    "open('f')", "print(x)", "x()", "x[0]()", "np.sum(x)(x)", "'f'.join(x)", "x['f']",
    "np.array('f')", "np.array(['f'])", "__builtins__", "_",
    # arguments
    "np.sin(x, x)", "np.sin(x, out=x)", "np.add(x, x, x)", "np.clip(x, 0, 1, x)", "abs(x, x)",
    "np.sum(x, -1, None, x)", "np.cumsum(x, 0, None, x)", "np.take(x, [0], 0, x)", "abs(x, out=x)",
    "np.sin(x, where=x)", "np.sin(x, dtype=x)", "np.sin(x, signature='d->d')",
    "np.sin(x, extobj=x)", "np.sum(x, dtype='O')", "np.sum(x, dtype=x)", "np.zeros(3, 'O')",
    "np.zeros(3, dtype='O')", "np.array(x, dtype='U')", "np.array(x, dtype='M8[s]')",
    "np.array(x, like=x)", "np.full(3, 'a')", "np.array(x, copy=x)", "np.array(x, subok=True)",
    "np.asarray(x, 'f')", "np.median(x, 0, x)", "np.median(x, overwrite_input=True)",
    "np.nan_to_num(x, False)", "np.nan_to_num(x, copy=False)",
    "scipy.linalg.inv(x, overwrite_a=True)", "scipy.linalg.inv(x, True)",
    "np.pad(x, 1, x.T.tofile)", "scipy.linalg.solve(x, x, False, True)",
    "scipy.ndimage.correlate(x, x, x)", "np.pad(x, 1, np.sum)",
    "scipy.ndimage.gaussian_filter(x, 1, output=x)", "scipy.ndimage.gaussian_filter(x, 1, 0, x)",
    "np.lib.stride_tricks.sliding_window_view(x, 2, writeable=True)",
    "scipy.fft.fft(x, workers=99)", "np.einsum('i->i', x, out=x)", "np.savez('f', x)",
    "np.array_repr(x)", "np.histogram(x, 'auto')", "scipy.stats.zscore(x, nan_policy='raise')",
    "np.choose(x, x, x)", "scipy.signal.freqz(x, plot=abs)",
    # numbers without bound
    "2 ** 65", "9 ** 64", "(2 ** 64) ** 64", "-(2 ** 63) ** 3", "2 ** 63 * 4", "[1] * 10 ** 9",
    "(1,) * 10 ** 9", "18446744073709551616", "[x] + [x]", "np.ones(10 ** 15)",
    "np.ones((10 ** 6,) * 3)",
    # what gives no numbers, or not those of the output
    "np.array([1, None, 2])", "np.array([[1], [1, 2]])", "None", "(x, x)", "np.ones(4)",
    "np.divmod(x, x)", "np.ones(3)[5]", "np.reshape(x, (2, 2))", "np.linalg.inv(x)", "1 / 0",
    "x[x]",
]  # fmt: skip


@pytest.mark.parametrize("formula", CLOSED)
def test_closed(formula: str) -> None:
    assert error(formula).message


@pytest.mark.parametrize(
    ("formula", "message", "hint", "column", "length"),
    [
        ("scipy.special.expt(x)", "'scipy.special.expt' is not a function that a formula may call",
         "did you mean 'scipy.special.expit'?", 3, 18),
        ("np.erf(x)", "'np.erf' is not a function that a formula may call",
         "did you mean 'scipy.special.erf'?", 3, 6),
        ("x + np.qqqqqqq(x)", "'np.qqqqqqq' is not a function that a formula may call",
         "the page of the language lists what there is", 7, 10),
        ("exp(x)", "'exp' is not a function that a formula may call",
         "did you mean 'np.exp'?", 3, 3),
        ("np.sin(x, x)", "'np.sin' takes 1 argument by position in a formula", "it takes x", 13, 1),
        ("np.sum(x, out=x)", "'np.sum' has no argument 'out' in a formula",
         "it takes a, axis, keepdims, initial, where, dtype", 17, 1),
        ("np.zeros(3, dtype='O')", "'dtype' must be the name of an element type",
         'such as dtype="float64"', 21, 3),
        ("np.pad(x, 'edge')", "a formula cannot have a text as its value", None, 13, 6),
        ("np.sum(x, axis=7)", "this fails: axis 7 is out of bounds for array of dimension 1",
         None, 3, 17),
        ("1 + np.ones(4)", "this has the shape (4,), and 'y' has (3,)", None, 3, 14),
        ("np.divmod(x, 2)", "this gives several values, or none", None, 3, 15),
        ("2 ** 60 * 2 ** 5", "the integer does not fit in 64 bits", None, 3, 16),
    ],
)  # fmt: skip
def test_messages(formula: str, message: str, hint: str | None, column: int, length: int) -> None:
    found = error(formula)
    assert (found.message, found.hint) == (message, hint)
    assert found.span and (found.span.column, found.span.length) == (column, length)


@pytest.mark.parametrize(
    "formula",
    ["np.pad(x, 1, 'edge')[1:-1]", "np.einsum('i,i->i', x, x)", "np.convolve(x, [1], 'same')",
     "np.array(x, dtype='float64')", "np.linalg.norm(x, ord=2) + x", "x[::-1].T.real",
     "np.pad(x, [(0, 0)], mode='wrap')", "numpy.sum(x, axis=-1, keepdims=True)"],
)  # fmt: skip
def test_open(formula: str) -> None:
    read = loads(spec(formula), "k.yaml")
    assert oracle.evaluate(read, {"x": np.ones(3, np.float32)})["y"].shape == (3,)


def test_what_functions_of_fortran_raise_is_an_error_there() -> None:
    """It is of no class of Python's."""
    blas = pytest.importorskip("scipy.linalg.blas")
    text = yaml.parse("abs(x)", "k.yaml")
    assert isinstance(text, yaml.Scalar)

    def product(x: object) -> object:
        return blas.dgemm(1.0, np.ones((2, 3)), np.ones((2, 3)))

    with pytest.raises(SpecError, match=r"this fails: .*dgemm"):
        evaluate(text, {"x": 1}, {"abs": product})


def test_an_accuracy_is_held_to_the_same() -> None:
    for formula, message in [
        ("abs(x, x)", "'abs' takes 1 argument by position in a formula"),
        ("np.sum(x, out=x)", "'np.sum' has no argument 'out' in a formula"),
        ("np.ones(4)", "this has the shape (4,), and 'y' has (3,)"),
        ("1j * eps", "an error cannot be a complex number"),
    ]:
        with pytest.raises(SpecError) as info:
            x = np.ones(3, np.float32)
            oracle.accuracy_bound(loads(spec("x", formula), "k.yaml"), {"x": x, "y": x})
        assert info.value.message == message and info.value.span
        assert info.value.span.line == 11


def _function(name: str) -> object:
    module, _, own = name.rpartition(".")
    return getattr(importlib.import_module(re.sub("^np", "numpy", module)), own, None)


# What writes to an argument, calls one, or takes memory as it lies.
UNWANTED = re.compile(
    "out|output|func.*|.*callback.*|overwrite_.*|copy|subok|like|order|casting|writeable|extra_.*|"
    "plot|workers|func1d|key|file|fname"
)


@pytest.mark.parametrize("module", calls.MODULES)
def test_what_is_listed_is_there_with_these_arguments(module: str) -> None:
    package = re.sub("^np", "numpy", module)
    if package.startswith(("scipy", "skimage")):
        pytest.importorskip(package)
    for name in (n for n in LISTED if n.rpartition(".")[0] == module):
        function, signature = _function(name), calls.SIGNATURES[name]
        taken = (*signature.positions, *signature.names)
        assert callable(function), name
        assert not any(map(UNWANTED.fullmatch, taken)), name
        if isinstance(function, np.ufunc):
            assert len(signature.positions) == function.nin and not signature.names, name
            continue
        try:
            known = list(inspect.signature(function).parameters)
        except ValueError:  # written in C
            continue
        unnamed = name in ("np.arange", "np.einsum", "np.interp") or isinstance(function, type)
        assert unnamed or set(taken) <= {*known, *_further(function)}, name
        assert unnamed or [*signature.positions] == known[: len(signature.positions)], name


def _further(function: object) -> tuple[str, ...]:
    """Arguments that `np.pad` takes by `**kwargs`."""
    ways = ("constant_values", "end_values", "stat_length", "reflect_type")
    return ways if function is np.pad else ()


def test_the_page_of_the_language_has_the_list() -> None:
    text = PAGE.read_text("utf-8")
    assert calls.listing() in text, "write calls.listing() there"
    assert all(f"`{name}`" in text for name in ("T", "mT", "shape", "ndim", "size"))
