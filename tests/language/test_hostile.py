"""Hostile files: each is refused in bounded time and memory."""

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from gen.errors import SpecError
from gen.language import load, loads
from gen.language.yaml import MAX_BYTES, MAX_LINE

SECONDS = 10.0
MEGABYTES = 32


def refused(read: Callable[[], object]) -> SpecError:
    """The error, once it came in time and within memory."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        with pytest.raises(SpecError) as info:
            read()
        assert time.perf_counter() - start < SECONDS
        assert tracemalloc.get_traced_memory()[1] < MEGABYTES << 20
    finally:
        tracemalloc.stop()
    assert info.value.span is not None
    return info.value


ALIASES = "a0: &a0 [x]\n" + "".join(f"a{k}: &a{k} [{f'*a{k - 1},' * 9}]\n" for k in range(1, 30))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ALIASES, "anchors and aliases are not allowed"),
        ("kernel: !!python/object/apply:os.system [ls]\n",
         "the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not allowed"),
        ("tilesmith: " + "9" * 1900, "the integer does not fit in 64 bits"),
        ("a: " + "9" * 50_000, f"the line is longer than {MAX_LINE} characters"),
        ("a: " + "[" * 1000, "brackets nest deeper than 64"),
        ("[\n" * 3000, "brackets nest deeper than 64"),
        ("- " * 900, "more than 8 list markers open on one line"),
        ("? " * 900, "more than 8 list markers open on one line"),
        ("".join(" " * k + "a:\n" for k in range(200)),
         "the line is indented deeper than 120 columns"),
        ("a: " + "-" * 50_000, f"the line is longer than {MAX_LINE} characters"),
        ("a: " + "-" * 100_000, f"the file is larger than {MAX_BYTES} bytes"),
        ("a: " + "[" * 6000, f"the line is longer than {MAX_LINE} characters"),
        ("-\n" * 10_000, "the file has more than 4000 lines"),
        (f"[{'a,' * 900}\n{'a,' * 900}]", "the spec must be a map, not a list"),
        ("-" * 1000, "the spec must be a map, not '" + "-" * 64 + "'"),
        ("a: b\n" * MAX_BYTES, f"the file is larger than {MAX_BYTES} bytes"),
        ("a: 1\na: 2\n", "the key 'a' is given twice, first in line 1"),
        ("a: \x00\n", "the character U+0000 is not allowed"),
        ("a: \u2028\n", "the character U+2028 is not allowed"),
        ("a:\n\tb: 1\n", "a tab is not allowed"),
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("a: b\n---\na: b\n", "not YAML: but found another document"),
        ("a: [1, 2\n", "not YAML: expected ',' or ']', but got '<stream end>'"),
        ("[a]: b\n", "a key must be a name"),
        ("{" * 60 + "}" * 60, "a key must be a name"),
    ],
    ids=range(26),
)  # fmt: skip
def test_yaml(text: str, message: str) -> None:
    assert refused(lambda: loads(text, "hostile.yaml")).message == message


@pytest.mark.parametrize(
    ("character", "hint"),
    [("\t", "indent with spaces"), ("\x00", "it cannot be seen: take it out")],
)
def test_hints_at_what_is_not_allowed(character: str, hint: str) -> None:
    error = refused(lambda: loads(f"tilesmith: 1{character}\n", "hostile.yaml"))
    assert error.hint == hint and error.span and error.span.column == 13


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "k.yaml"
    path.write_bytes(b"tilesmith: 1\nkernel: \xff\n")
    error = refused(lambda: load(path))
    assert error.message == "the file is not UTF-8" and error.span and error.span.line == 2
    path.write_bytes(b"a" * (MAX_BYTES + 1))
    assert refused(lambda: load(path)).message == f"the file is larger than {MAX_BYTES} bytes"


# ---------------------------------------------------------------- texts that `ast` would read

SPEC = """\
tilesmith: 1
kernel: k
doc: d
signature: (n)->(n)
dtypes: {T: [float32]}
arguments: {x: {type: "T[n]"}, y: {type: "T[n]", intent: out}}
"""


def folded(text: str) -> str:
    """The text as a block, in lines that the limits allow."""
    lines = [text[k : k + 1500] for k in range(0, len(text), 1500)]
    return "|\n" + "".join(f"  {line}\n" for line in lines)


def with_text(where: str, text: str) -> str:
    block = folded(f"y[i] = ({text})" if where == "compute" else text)
    body = "" if where == "compute" else "compute: y[i] = x[i]\n"
    return f"{SPEC}{body}{where}: {block}"


TEXTS = {
    "50,000 minus signs": ("-" * 50_000 + "x", "the text is longer than 20000 characters"),
    "minus signs": ("-" * 9000 + "x", "more than 8 prefix operators in a row"),
    "nots": ("not " * 9 + "x", "more than 8 prefix operators in a row"),
    "brackets": ("(" * 6000, "brackets nest deeper than 50"),
    "parentheses": ("(" * 49 + "x" + ")" * 49 + "+" + "[" * 51, "brackets nest deeper than 50"),
    "sums": ("x+" * 120 + "x", "the expression nests deeper than 100"),
    "long sums": ("x+" * 9000 + "x", "the expression nests deeper than 100"),
    "powers": ("x**" * 6000 + "x", "the expression nests deeper than 100"),
    "attributes": ("x" + ".a" * 9000, "the expression nests deeper than 100"),
    "conditions": ("x if x else " * 500 + "x", "the expression nests deeper than 100"),
}


@pytest.mark.parametrize("where", ["compute", "oracle", "accuracy"])
@pytest.mark.parametrize("name", TEXTS)
def test_texts(where: str, name: str) -> None:
    text, message = TEXTS[name]
    assert refused(lambda: loads(with_text(where, text), "hostile.yaml")).message == message


@pytest.mark.parametrize(
    ("where", "text", "message"),
    [
        ("compute", "9" * 1400, "the integer does not fit in 64 bits"),
        ("compute", "1e999", "the number is too large"),
        ("compute", "x[i] and " * 120 + "x[i]", "the expression nests deeper than 100"),
        ("compute", "0 " + "< x[i] " * 120, "the expression nests deeper than 100"),
        ("compute", "__import__('os').system('ls')", "this is not an expression of the language"),
        ("compute", "__import__(x[i])", "unknown function '__import__'"),
        ("oracle", "__import__('os').system('ls')",
         "'this' is not a function that a formula may call"),
        ("oracle", "np.load('secret.npy')", "'np.load' is not a function that a formula may call"),
        ("oracle", "x.__class__", "this is not part of a formula"),
        ("oracle", "np.linalg.__dict__['x']", "this is not part of a formula"),
        ("oracle", "scipy.special._ufuncs(x)",
         "'scipy.special._ufuncs' is not a function that a formula may call"),
        ("oracle", "(lambda: x)()", "'this' is not a function that a formula may call"),
        ("oracle", "[x for x in x]", "this is not part of a formula"),
        ("accuracy", "open('x')", "'open' is not a function that a formula may call"),
    ],
)  # fmt: skip
def test_names_and_numbers(where: str, text: str, message: str) -> None:
    assert refused(lambda: loads(with_text(where, text), "hostile.yaml")).message == message


def test_sizes_that_cannot_be_compared_are_limited() -> None:
    parts = [f"for i in range({k} * n + {99 - k} * m): t[i] = x[0, 0]" for k in range(17)]
    spec = SPEC.replace("(n)->(n)", "(m,n)->(m,n)").replace("T[n]", "T[m, n]")
    body = "".join(f"  {line}\n" for line in [*parts, "y[i, j] = t[0]"])
    error = refused(lambda: loads(f"{spec}compute: |\n{body}", "hostile.yaml"))
    assert error.message == (
        "cannot tell the size of axis 0 of 't': too many sizes may be the largest"
    )
