"""What is compiled for a kernel tried out, and when."""

from pathlib import Path

import numpy as np
import pytest

import gen
from gen.errors import TilesmithError

from .kernels import ADD


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec, where nothing was compiled before."""
    monkeypatch.setenv("TILESMITH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "add.yaml").write_text(ADD)
    return tmp_path / "add.yaml"


def test_the_first_kernel_compiles_the_runtime_once(spec: Path, tmp_path: Path) -> None:
    """Which level the machine has takes one small file of it."""
    add = gen.compile(spec)
    assert [p.suffix for p in (tmp_path / "cache").iterdir()] == [".so"]
    assert add(1, 2) == 3
    (runtime,) = (tmp_path / "cache").glob("runtime-*")
    assert {p.suffix for p in runtime.iterdir()} == {".h", ".gch", ".o"}
    made = sorted((tmp_path / "cache").iterdir())
    assert gen.compile(spec)(1, 2) == 3
    assert sorted((tmp_path / "cache").iterdir()) == made


@pytest.mark.parametrize("level", [None, "v2"])
def test_where_there_is_no_compiler(
    spec: Path, level: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-cc -m64")
    with pytest.raises(TilesmithError) as caught:
        gen.compile(spec, level)(np.ones(2), 1)
    assert str(caught.value) == (
        "error: there is no C compiler 'no-such-cc'\n"
        "  hint: install one, such as gcc or clang, or name another by CC"
    )


def test_where_the_compiler_refuses(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc --no-such-option")
    with pytest.raises(
        TilesmithError, match=r"the C compiler refused the kernel:\n.*no-such-option"
    ):
        gen.compile(spec)
    with pytest.raises(
        TilesmithError, match=r"the C compiler refused the runtime:\n.*no-such-option"
    ):
        gen.compile(spec, "v2")(1, 2)
