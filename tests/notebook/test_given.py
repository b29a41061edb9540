"""What kernels tried out take: types, numbers, scalars, sizes; errors as of a built package."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gen.cli import main

from .kernels import ADD, of_text, shipped

SHIFT = """\
tilesmith: 1
kernel: shift
doc: x and all scalars.
signature: ()->()
dtypes: {T: [float32, float64, int8]}
arguments: {x: {type: "T[m]"}, y: {type: "T[m]", intent: out}}
scalars:
  s: {type: int64, default: 0}
  b: {type: int8, default: 0}
  u: {type: uint64, default: 0}
  f: {type: float32, default: 0}
  c: {type: complex128, default: 0}
  t: {type: T, default: 0}
  on: {type: bool, default: true}
compute: y[i] = x[i] + T(s) + T(b) + T(u) + T(f) + T(real(c)) + t if on else x[i]
"""


@pytest.fixture(scope="module")
def shift(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return of_text(tmp_path_factory.mktemp("shift"), SHIFT)


ONE = np.ones(1, np.float32)


@pytest.mark.parametrize(
    ("scalars", "result"),
    [
        ({"s": np.int8(3)}, 4),
        ({"s": np.array(3)}, 4),
        ({"s": True}, 2),
        ({"s": -(2**63)}, 1 - 2.0**63),
        ({"b": -128}, -127),
        ({"u": 2**63}, 1 + 2.0**63),
        ({"u": 2**64 - 1}, 2.0**64),
        ({"f": 2}, 3),
        ({"f": np.array(2.5)}, 3.5),
        ({"f": True}, 2),
        ({"c": 2}, 3),
        ({"c": np.complex64(2 + 1j)}, 3),
        ({"t": 2.5}, 3.5),
        ({"on": False, "s": 9}, 1),
        ({"on": np.False_, "s": 9}, 1),
    ],
)  # fmt: skip
def test_scalars(shift: Any, scalars: dict[str, Any], result: float) -> None:
    assert shift(ONE, **scalars).tolist() == [np.float32(result)]
    assert shift(ONE, **scalars).tolist() == [np.float32(result)]


@pytest.mark.parametrize(
    ("name", "given", "error", "message"),
    [
        ("s", 5.9, TypeError, "must convert to int64, got float"),
        ("s", 5.0, TypeError, "must convert to int64, got float"),
        ("s", np.float32(5), TypeError, "must convert to int64, got float32"),
        ("s", np.True_, TypeError, f"must convert to int64, got {np.bool_.__name__}"),
        ("s", "5", TypeError, "must convert to int64, got str"),
        ("s", None, TypeError, "must convert to int64, got NoneType"),
        ("s", np.array([5]), TypeError, "must convert to int64, got ndarray"),
        ("s", 2**63, OverflowError, "must fit int64, got 9223372036854775808"),
        ("s", np.uint64(2**63), OverflowError, "must fit int64, got 9223372036854775808"),
        ("s", -(2**63) - 1, OverflowError, "must fit int64, got -9223372036854775809"),
        ("b", 128, OverflowError, "must fit int8, got 128"),
        ("u", -1, OverflowError, "must fit uint64, got -1"),
        ("f", "2.5", TypeError, "must convert to float32, got str"),
        ("f", b"2.5", TypeError, "must convert to float32, got bytes"),
        ("f", 2j, TypeError, "must convert to float32, got complex"),
        ("f", 10**400, OverflowError, "int too large to convert to float"),
        ("c", "2j", TypeError, "must convert to complex128, got str"),
        ("t", [1.0], TypeError, "must convert to float32, got list"),
        ("on", 1, TypeError, "must convert to bool, got int"),
    ],
)
def test_scalars_that_are_refused(
    shift: Any, name: str, given: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        shift(ONE, **{name: given})
    between = ": " if error is OverflowError else " "
    assert str(caught.value) == f"shift: scalar {name}{between}{message}"
    assert shift(ONE).tolist() == [1]


def test_a_scalar_has_the_type_of_the_arrays(shift: Any) -> None:
    x = np.ones(1, np.int8)
    assert shift(x, t=np.int64(5)).tolist() == [6]
    for given, message in [
        (5.9, "scalar t must convert to int8, got float"),
        (500, "scalar t: must fit int8, got 500"),
    ]:
        with pytest.raises((TypeError, OverflowError), match=rf"^shift: {message}$"):
            shift(x, t=given)


def test_a_scalar_may_have_any_name(tmp_path: Path) -> None:
    named = of_text(
        tmp_path, ADD.replace("compute", "scalars: {self: {type: T}}\ncompute").rstrip() + " * self"
    )
    assert named(1, 2, self=3) == 7
    with pytest.raises(TypeError, match=r"^add needs the scalar 'self'$"):
        named(1, 2)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (2.0, "num_threads must be an integer, got float"),
        (True, "num_threads must be an integer, got bool"),
        (None, "num_threads must be an integer, got NoneType"),
        (0, "num_threads must be from 1 to 1024, got 0"),
        (1025, "num_threads must be from 1 to 1024, got 1025"),
    ],
)
def test_numbers_of_threads(count: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        shipped("sum")(ONE, num_threads=count)
    assert str(caught.value) == f"sum: {message}"
    assert shipped("sum")(ONE, num_threads=np.int64(2)) == 1


# ---------------------------------------------------------------- types and numbers


def test_numbers_take_the_type_of_the_arrays_beside_them(tmp_path: Path) -> None:
    add = of_text(tmp_path, ADD)
    for y in (2, 2.5, True):
        assert add(ONE, y).dtype == np.float32
        assert add(y, ONE.astype(">f8")).dtype == np.float64
        assert add(ONE, y).tolist() == [1 + y]
    for y in (np.float64(2), np.array(2.0), np.int64(2), [2.0]):
        assert add(ONE, y).dtype == np.float64
    assert add(ONE, np.array(2, np.int8)).dtype == np.float32
    with pytest.raises(TypeError, match=r"^add has no version for x: float32, y: complex128$"):
        add(ONE, 2j)
    with pytest.raises(OverflowError, match=r"^add: argument y: int too large to convert to float"):
        add(ONE, 10**400)


def test_numbers_alone_have_their_own_type(tmp_path: Path) -> None:
    add = of_text(tmp_path, ADD)
    assert type(add(1, 2)) is type(add(1.5, 2)) is np.float64
    assert type(add(np.float32(1), 2)) is type(add(True, False)) is np.float32
    assert add(1.5, 2) == 3.5


FOLLOWED = """\
tilesmith: 1
kernel: scale
doc: The absolute value of x, times y.
signature: (),()->()
dtypes: {T: [int8, complex64, complex128, float32], S: {of: T, int8: int64, complex64: float32, complex128: float64}}
arguments: {x: {type: "T[m]"}, y: {type: "S[m]"}, z: {type: "S[m]", intent: out}}
compute: z[i] = S(abs(x[i])) * y[i]
"""  # noqa: E501


def test_of_many_types_the_exact_one_is_taken(tmp_path: Path) -> None:
    scale = of_text(tmp_path, FOLLOWED)
    for given, found in {"i1 i8": "i8", "c8 f4": "f4", "c16 f8": "f8", "f4 f4": "f4", "c8 f8": "f8",
                         "f4 f8": "f8", "f2 f2": "f4", "i1 f4": "f4"}.items():  # fmt: skip
        x, y = (np.ones(3, dtype) for dtype in given.split())
        assert scale(x, y).dtype == found, given
    assert scale(np.ones(3, "c8"), 2.5).dtype == np.float32
    assert scale(np.ones(3, "i1"), 300).tolist() == [300] * 3
    with pytest.raises(TypeError, match=r"^scale has no version for x: uint64, y: complex64$"):
        scale(np.ones(3, "u8"), np.ones(3, "c8"))


# ---------------------------------------------------------------- shapes


TOTAL = """\
tilesmith: 1
kernel: total
doc: The sum of all.
signature: (n)->()
dtypes: {T: [float32]}
arguments: {x: {type: "T[n]"}, y: {type: "T[]", intent: out}}
compute: y = sum(x[i] for i in n)
"""


def test_results_without_axes_are_numbers(tmp_path: Path) -> None:
    total = of_text(tmp_path, TOTAL)
    assert type(total(np.ones(3, "f4"))) is np.float32 and total(np.ones(3, "f4")) == 3
    assert total(np.ones(0, "f4")) == 0
    assert total(np.arange(6, dtype="f4").reshape(2, 3)).tolist() == [3, 12]
    assert total(np.ones((0, 3), "f4")).shape == (0,)
    with pytest.raises(ValueError, match=r"^total: x has 0 axes, its core is \(n\)$"):
        total(np.float32(2))


def test_leading_axes_that_do_not_broadcast(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:
        of_text(tmp_path, ADD)(np.ones(3), np.ones((2, 2)))
    assert str(caught.value) == "add: leading axes do not broadcast: x has (3,), y has (2, 2)"


ANGLE = """\
tilesmith: 1
kernel: angle
doc: The angle of (x, y).
signature: (),()->()
dtypes: {T: [float64]}
externals:
  arctan2:
    arguments: {y: T, x: T}
    result: T
    c: {float64: atan2}
    header: math.h
    oracle: np.arctan2(y, x)
arguments: {y: {type: "T[m]"}, x: {type: "T[m]"}, r: {type: "T[m]", intent: out}}
compute: r[i] = arctan2(y[i], x[i])
"""


ODD = """\
tilesmith: 1
kernel: odd
doc: Every second of an odd number of elements.
signature: (2 * n + 1)->(n)
dtypes: {T: [float32]}
arguments: {x: {type: "T[2 * n + 1]"}, y: {type: "T[n]", intent: out}}
compute: y[i] = x[2 * i + 1]
"""


def test_an_axis_that_is_too_short_for_any_dim(tmp_path: Path) -> None:
    odd = of_text(tmp_path, ODD)
    assert odd(np.arange(5, dtype=np.float32)).tolist() == [1, 3]
    message = r"^odd: core axis 0 of x \(2 \* n \+ 1\) has size 0, expected at least 1$"
    with pytest.raises(ValueError, match=message):
        odd(np.ones(0, np.float32))


def test_an_axis_that_is_too_short_for_a_dim_that_another_tells(tmp_path: Path) -> None:
    weighted = ODD.replace("(2 * n + 1)->", "(2 * n + 1),(n)->").replace("= x", "= w[i] * x")
    kernel = of_text(tmp_path, weighted.replace(", y: {", ', w: {type: "T[n]"}, y: {'))
    message = r"^odd: core axis 0 of x \(2 \* n \+ 1\) has size 0, expected 7$"
    with pytest.raises(ValueError, match=message):
        kernel(np.ones(0, np.float32), np.ones(3, np.float32))


def test_functions_of_c(tmp_path: Path) -> None:
    angle = of_text(tmp_path, ANGLE)
    y, x = np.random.default_rng(0).standard_normal((2, 3, 5))
    np.testing.assert_allclose(angle(y, x), np.arctan2(y, x), rtol=1e-14)
    assert angle(1, 0) == np.pi / 2


HALF = """\
tilesmith: 1
kernel: half_max
doc: The largest of the first n // 2 elements.
signature: (n)->()
dtypes: {T: [float32]}
arguments: {x: {type: "T[n]"}, y: {type: "T[]", intent: out}}
sizes: {half: n // 2}
constraints: [n >= 1]
compute: y = max(x[min(j, n - 1)] for j in range(half))
"""


def test_a_max_over_a_size_that_is_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    half_max = of_text(tmp_path, HALF)
    assert half_max(np.array([1, 2, 9], np.float32)) == 1
    for n, message in [
        (1, "needs half >= 1, got half = 0"),
        (0, "dim n is 0, it must be at least 1"),
    ]:
        for shape in [(n,), (3, n), (0, n)]:
            with pytest.raises(ValueError, match=rf"^half_max: {message}$"):
                half_max(np.ones(shape, np.float32))
    for command in (["run", "--size", "n=1"], ["bench", "--sizes", "n=1"]):
        assert main([command[0], str(tmp_path / "spec.yaml"), *command[1:]]) == 1
        told = "error: half_max: give sizes for which n >= 1 and half >= 1\n"
        assert capsys.readouterr().err == told
