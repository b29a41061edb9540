"""ts_overlap.c by itself, under a sanitizer, beside the bytes counted one by one."""

import ctypes
import itertools
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen.targets.runtime import RUNTIME

Layout = tuple[int, list[int], list[int], int]  # address, shape, strides, bytes of an element


class _Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("overlap") / "overlap.so"
    flags = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wconversion"]
    flags += [
        "-Wshadow",
        "-Wpedantic",
        "-Werror",
        "-fsanitize=undefined",
        "-fno-sanitize-recover=all",
    ]
    subprocess.run(["cc", *flags, RUNTIME / "ts_overlap.c", "-o", path], check=True)
    library = ctypes.CDLL(str(path))
    one = (ctypes.POINTER(_Array), ctypes.c_int64)
    library.ts_overlap.argtypes, library.ts_overlap.restype = (*one, *one), ctypes.c_bool
    library.ts_overlaps_itself.argtypes, library.ts_overlaps_itself.restype = one, ctypes.c_bool
    return library


def argument(layout: Layout) -> tuple[_Array, int]:
    address, shape, strides, itemsize = layout
    numbers = ctypes.c_int64 * max(len(shape), 1)
    return _Array(address, len(shape), numbers(*shape), numbers(*strides)), itemsize


def bytes_of(layout: Layout) -> Iterator[int]:
    address, shape, strides, itemsize = layout
    for at in itertools.product(*map(range, shape)):
        first = address + sum(i * step for i, step in zip(at, strides, strict=True))
        yield from range(first, first + itemsize)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Up to four axes whose strides are alike, so that many interleave."""
    itemsize = draw(st.sampled_from([1, 2, 4, 8, 3]))
    unit = draw(st.sampled_from([itemsize, itemsize, 1]))
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    strides = [unit * draw(st.integers(-12, 12)) for _ in shape]
    return 4096 + unit * draw(st.integers(-40, 40)), shape, strides, itemsize


@settings(max_examples=500, deadline=None)
@given(layouts())
def test_its_own_elements(library: ctypes.CDLL, layout: Layout) -> None:
    places = list(bytes_of(layout))
    assert library.ts_overlaps_itself(*argument(layout)) == (len(set(places)) < len(places))


@settings(max_examples=500, deadline=None)
@given(layouts(), layouts())
def test_two_arrays(library: ctypes.CDLL, a: Layout, b: Layout) -> None:
    shared = not set(bytes_of(a)).isdisjoint(bytes_of(b))
    assert library.ts_overlap(*argument(a), *argument(b)) == shared
    assert library.ts_overlap(*argument(b), *argument(a)) == shared


@pytest.mark.parametrize(
    ("shape", "strides", "shares"),
    [
        ([2, 3], [3, 2], False),  # 0, 2, 4 and 3, 5, 7
        ([2, 4], [3, 2], False),
        ([3, 4], [3, 2], True),  # 6 is 3 + 3 and 2 + 2 + 2
        ([1_000_000, 2_000_000], [1_000_003, 1_000_033], False),
        ([1_000_000, 2_000_000], [999_983, 999_979], True),
        ([300, 200, 100], [7 * 11, 11 * 13, 7 * 13], True),
        ([13, 7, 2], [7 * 11, 11 * 13, 7 * 13], False),
        ([2**40, 2**20], [2**21, 0], True),
        ([2**62, 2**62], [2**62, 2**62], True),  # more than 64 bits
    ],
)
def test_large_ones(
    library: ctypes.CDLL, shape: list[int], strides: list[int], shares: bool
) -> None:
    for itemsize in (1, 4) if max(strides) < 2**60 else (1,):
        layout = 0, shape, [itemsize * step for step in strides], itemsize
        assert library.ts_overlaps_itself(*argument(layout)) is shares


def test_what_would_take_long_counts_as_shared(library: ctypes.CDLL) -> None:
    """No two sums of up to two of each 3**k are alike: a few are told, of 3**28 none in time."""
    for axes, shares in ((8, False), (28, True)):
        strides = [2**45 + 3**k for k in range(axes)]
        assert library.ts_overlaps_itself(*argument((0, [3] * axes, strides, 1))) is shares
