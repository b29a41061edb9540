"""`check` on files that are too large: it ends, and says so."""

import sys
from pathlib import Path

import pytest

from gen.cli import main
from gen.poly import limit
from gen.trial import check

HEAD = """\
tilesmith: 1
kernel: k
doc: d.
signature: (n)->(n)
dtypes: {T: [float32]}
arguments:
  x: {type: "T[n]"}
  y: {type: "T[n]", intent: out}
"""
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)


def written(folder: Path, text: str) -> Path:
    path = folder / "k.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_hundreds_of_statements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each reads what the one before has stored. In a second, where it took minutes."""
    body = "  y[i] = x[i] + 0\n" + 299 * "  y[i] = y[i] + 1\n"
    path = written(tmp_path, f"{HEAD}compute: |\n{body}")
    assert main(["check", str(path), "--levels", "v3"]) == 0
    assert capsys.readouterr().out.startswith("1 spec without errors")


def test_a_check_ends_at_the_limit_of_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Residues by many primes: isl would take for ever, and cannot be stopped from within."""
    constraints = "".join(f"  - n % {p} != 1\n" for p in PRIMES)
    path = written(tmp_path, f"{HEAD}constraints:\n{constraints}compute: |\n  y[i] = x[i]\n")
    monkeypatch.setattr(check, "SECONDS", 1.0)
    assert main(["check", str(path), str(path.with_name("none.yaml"))]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == (
        f"error: {path}: no answer within 1 seconds: the spec, or a step of its recipes, is too"
        " large"
    )
    assert second.startswith("error: ") and "none.yaml" in second, "the next file has its own time"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_check_ends_at_the_limit_of_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where isl multiplies out what a step asks of it."""
    path = written(tmp_path, f"{HEAD}compute: |\n  y[i] = x[i]\n")
    monkeypatch.setattr(limit, "MEMORY", 2**27)
    for asked, ends in ((2**26, 0), (2**28, 1)):
        monkeypatch.setattr(check, "_require_callable", lambda spec, asked=asked: bytearray(asked))
        assert main(["check", str(path)]) == ends
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"error: {path}: no answer within 0.125 GiB of memory: the spec, or a step of its recipes,"
        " is too large"
    )


def test_a_file_is_proved_within_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of it counts: what is asked of isl before the first proof, too."""
    constraints = "".join(f"  - n % {p} != 1\n" for p in PRIMES)
    slow = written(tmp_path, f"{HEAD}constraints:\n{constraints}compute: |\n  y[i] = x[i]\n")
    right = tmp_path / "right.yaml"
    right.write_text(f"{HEAD}compute: |\n  y[i] = x[i]\n", encoding="utf-8")
    assert main(["prove", str(slow), str(right), "--levels", "v3", "--seconds", "1"]) == 1
    out, error = capsys.readouterr()
    assert error == (
        f"error: {slow}: no answer within 1 seconds: `--seconds` and fewer `--levels` let each have"
        " more time\n"
    )
    assert out.splitlines()[-1] == "proved: 1 kernel, 1 type, 1 level"


def test_what_no_call_could_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """More dims than the runtime has room for, which `generate` refuses, too."""
    dims = [f"d{k}" for k in range(70)]
    text = HEAD.replace("(n)->(n)", f"{','.join(f'({d})' for d in dims)}->(d0)")
    inputs = "".join(f'  x{k}: {{type: "T[{d}]"}}\n' for k, d in enumerate(dims))
    text = text.replace('  x: {type: "T[n]"}\n', inputs).replace(
        '"T[n]", intent', '"T[d0]", intent'
    )
    sums = " + ".join(f"x{k}[0]" for k in range(1, 70))
    body = f"compute: |\n  y[i] = x0[i] + {sums}\n"
    least = f"constraints: [{', '.join(f'{d} >= 1' for d in dims)}]\n"
    path = written(tmp_path, text + least + body)
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out == (
        f"{path}:2:9: error: kernel k: has 71 arguments; the runtime takes at most 12\n"
        "    kernel: k\n            ^\n"
    )
