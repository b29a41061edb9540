"""A project that `init --cuda` made: host side and sources in its wheel, machine code beside it."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gen import project
from gen.cli import main
from gen.commands import build, data_wheel
from gen.errors import TilesmithError
from gen.targets.cuda import compilers
from gen.targets.cuda.compilers import nvcc
from gen.targets.registry import TARGETS
from gen.targets.runtime import ARCHITECTURES, DEVICE_HEADERS, digest

from .author import ROOT, Author

needs_nvcc = pytest.mark.skipif(
    nvcc() is None, reason="there is no nvcc: pip install --group cuda brings it"
)
SOURCE = "my_kernels/cuda/normalize.sm_75.cu"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cuda") / "my-kernels"
    project.create("my-kernels", folder, TARGETS, cuda=True)
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, author: Author) -> Path:
    """Built on a machine that has no CUDA."""
    pip = ["pip", "wheel", "--no-build-isolation", "--no-deps", "--quiet"]
    author.run(*pip, "--wheel-dir", source.parent / "dist", source)
    (wheel,) = (source.parent / "dist").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def data(wheel: Path) -> Path:
    return data_wheel.data_wheel(wheel, wheel.parent / "data")


def _manifest(wheel: Path, folder: str) -> dict[str, object]:
    with zipfile.ZipFile(wheel) as archive:
        loaded: dict[str, object] = json.loads(archive.read(f"{folder}/manifest.json"))
    return loaded


def test_the_wheel_has_sources_and_no_machine_code(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    there = tmp_path / "my_kernels" / "cuda"
    assert {path.name for path in there.iterdir()} == {
        "normalize.sm_75.cu", *(path.name for path in DEVICE_HEADERS)
    }  # fmt: skip
    for header in DEVICE_HEADERS:
        assert (there / header.name).read_bytes() == header.read_bytes()
    manifest = _manifest(wheel, "my_kernels")
    assert manifest["cuda_sources"] == digest(there.iterdir())
    call = (
        "import my_kernels as mk; print(mk.normalize([3.0, 4.0]),"
        " mk.show_config('dicts')['levels_built'], mk.kernels()['normalize']['architectures'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", call],
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    called, on_gpus = done.stdout.split("] {")
    assert called.startswith("[0.6 0.8] [") and "sm_75" not in called
    assert on_gpus == "'float32': ['sm_75'], 'float64': ['sm_75']}\n"


def test_sources_in_the_wheel_need_no_other_headers(wheel: Path, tmp_path: Path) -> None:
    """As the emulator's compiler sees it; it brings no more than what stands for a GPU."""
    from gen.targets.cuda import emulator

    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    own = Path(emulator.__file__).parent / "runtime"
    file = tmp_path / SOURCE
    command = ["g++", "-std=gnu++20", "-fsyntax-only", "-DTS_EMULATED", f"-I{file.parent}"]
    command += [f"-I{own}", "-x", "c++", str(file)]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""


@needs_nvcc
def test_the_data_wheel_is_for_its_package(wheel: Path, data: Path) -> None:
    assert data.name == "my_kernels_cuda-0.1.0-py3-none-any.whl"
    manifest, told = _manifest(wheel, "my_kernels"), _manifest(data, "my_kernels_cuda")
    assert told["cuda_sources"] == manifest["cuda_sources"]
    assert (told["distribution"], told["version"]) == ("my-kernels-cuda", "0.1.0")
    functions = told["functions"]["normalize.sm_75"]  # type: ignore[index]
    names = [f"ts_normalize_{t}_0_launch0_i{n}" for t in ("float32", "float64") for n in (32, 64)]
    assert list(functions) == names
    for by_architecture in functions.values():
        assert list(by_architecture) == list(ARCHITECTURES)
        for figures in by_architecture.values():
            assert figures["spilled"] == 0 < figures["registers"] and figures["shared"] > 0
            assert 0.75 <= figures["occupancy"] <= 1


@needs_nvcc
def test_the_data_wheel_is_whole(data: Path) -> None:
    with zipfile.ZipFile(data) as archive:
        folder = "my_kernels_cuda-0.1.0.dist-info"
        assert b"Requires-Dist: my-kernels==0.1.0\n" in archive.read(f"{folder}/METADATA")
        lines = archive.read(f"{folder}/RECORD").decode().splitlines()
        assert {line.partition(",")[0] for line in lines} == set(archive.namelist())
        for name, hashed, size in (line.split(",") for line in lines[:-1]):
            found = hashlib.sha256(archive.read(name)).digest()
            assert hashed == f"sha256={base64.urlsafe_b64encode(found).rstrip(b'=').decode()}"
            assert int(size) == archive.getinfo(name).file_size
        assert archive.read("my_kernels_cuda/normalize.sm_75.fatbin")[:4] == b"\x50\xed\x55\xba"


@needs_nvcc
def test_the_same_sources_are_compiled_once(
    wheel: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr("gen.targets.cuda.machine_code.run", never)
    assert data_wheel.data_wheel(wheel, tmp_path).read_bytes() == data.read_bytes()


@needs_nvcc
def test_machine_code_in_the_package(source: Path, tmp_path: Path, author: Author) -> None:
    folder = tmp_path / "build"
    meson = ["python", "-m", "mesonbuild.mesonmain"]
    author.run(*meson, "setup", folder, source, "-Dcuda=enabled")
    author.run("ninja", "-C", folder, "normalize.sm_75.fatbin")
    assert (folder / "normalize.sm_75.fatbin").stat().st_size > 1000
    assert len(json.loads((folder / "normalize.sm_75.functions.json").read_text())) == 4
    plan = json.loads(author.run(*meson, "introspect", folder, "--install-plan"))["targets"]
    there = {Path(where["destination"]).name for where in plan.values()}
    assert {"normalize.sm_75.fatbin", "normalize.sm_75.functions.json"} <= there


@pytest.mark.thorough
def test_a_package_without_anything_of_cuda(source: Path, tmp_path: Path, author: Author) -> None:
    folder = tmp_path / "build"
    meson = ["python", "-m", "mesonbuild.mesonmain"]
    author.run(*meson, "setup", folder, source, "-Dcuda=disabled")
    author.run("ninja", "-C", folder, "normalize.json")
    made = [path.name for path in folder.glob("normalize.*")]
    assert "normalize.v3.c" in made and not any("sm_75" in name for name in made)
    assert "sm_75" not in (folder / "normalize.json").read_text()
    assert "/cuda/" not in author.run(*meson, "introspect", folder, "--install-plan")


DRIVER = """
void stub_enter(int device) { (void)device; }
int cuLaunchKernel(void) { return 0; }
"""
CALL = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import numpy as np, my_kernels
from tests.runtime import stub_cupy as cupy
with cupy.installed(Path(sys.argv[3])):
    cupy.Module.kind = ""
    cupy.Module.load_file = lambda module, path: print(path)
    cupy.Module.find = lambda module, name: print(name) or 1
    my_kernels.normalize(cupy.ndarray.of(np.ones((2, 3))))
"""


@needs_nvcc
def test_a_pair_of_wheels(wheel: Path, data: Path, tmp_path: Path) -> None:
    """Machine code is loaded from the data wheel of the package's sources, and from no other."""
    site, library = tmp_path / "site", tmp_path / "libcuda.so"
    for each in (wheel, data):
        with zipfile.ZipFile(each) as archive:
            archive.extractall(site)
    (tmp_path / "driver.c").write_text(DRIVER)
    flags = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(library)]
    subprocess.run(["cc", *flags, str(tmp_path / "driver.c")], check=True)

    def called() -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-W", "error", "-c", CALL, str(ROOT), str(site), str(library)]
        return subprocess.run(call, capture_output=True, text=True)

    done, there = called(), site / "my_kernels_cuda"
    loaded = [str(there / "normalize.sm_75.fatbin"), "ts_normalize_float64_0_launch0_i32"]
    assert done.stdout.splitlines() == loaded, done.stderr
    told = there / "manifest.json"
    manifest = json.loads(told.read_text()) | {"cuda_sources": "of others", "version": "0.0.9"}
    told.write_text(json.dumps(manifest))
    assert called().stderr.splitlines()[-1] == (
        "RuntimeWarning: my_kernels 0.1.0: the machine code in my-kernels-cuda 0.0.9 is for other "
        "sources, so that these are compiled by NVRTC; pip install 'my-kernels-cuda==0.1.0' brings "
        "what fits"
    )


def _changed(wheel: Path, to: Path, name: str, text: bytes | None) -> Path:
    """A copy of the wheel with another text, or without the file."""
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(to, "w") as new:
        for each in old.namelist():
            if each != name:
                new.writestr(each, old.read(each))
        if text is not None:
            new.writestr(name, text)
    return to


def test_a_wheel_whose_sources_are_others(wheel: Path, tmp_path: Path) -> None:
    broken = _changed(wheel, tmp_path / "a.whl", SOURCE, b"// another\n")
    with pytest.raises(TilesmithError) as caught:
        data_wheel.data_wheel(broken, tmp_path)
    assert str(caught.value) == "error: a.whl: its sources for GPUs are not its manifest's"


def test_a_wheel_without_kernels_for_gpus(wheel: Path, tmp_path: Path) -> None:
    none = _changed(wheel, tmp_path / "b.whl", "my_kernels/manifest.json", None)
    with pytest.raises(TilesmithError) as caught:
        data_wheel.data_wheel(none, tmp_path)
    assert str(caught.value) == "error: b.whl has no kernels for GPUs"


@needs_nvcc
def test_an_extra_that_asks_for_another_version(wheel: Path, tmp_path: Path) -> None:
    name = "my_kernels-0.1.0.dist-info/METADATA"
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(name)
    assert b'Requires-Dist: my-kernels-cuda==0.1.0; extra == "cuda"' in metadata
    text = metadata.replace(b"my-kernels-cuda==0.1.0", b"my-kernels-cuda==0.0.9")
    broken = _changed(wheel, tmp_path / "c.whl", name, text)
    with pytest.raises(TilesmithError) as caught:
        data_wheel.data_wheel(broken, tmp_path)
    assert str(caught.value) == (
        "error: c.whl asks for my-kernels-cuda==0.0.9: let it ask for my-kernels-cuda==0.1.0"
    )


def test_a_build_that_wants_machine_code_and_has_no_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """meson.build asks before anything is built."""
    monkeypatch.setattr(compilers, "nvcc", lambda: None)
    assert build.main(["nvcc"]) == 1
    assert capsys.readouterr().err == (
        "error: there is no nvcc\n  hint: install nvidia-cuda-nvcc, or put nvcc on the PATH\n"
    )


# ---------------------------------------------------------------- what is generated


RECIPE = (project.TEMPLATES / "cuda" / "recipe.yaml").read_text("utf-8")


@pytest.mark.thorough
def test_a_recipe_for_cuda_adds_files_and_changes_none(source: Path, tmp_path: Path) -> None:
    spec = source / "kernels_spec" / "normalize.yaml"
    plain = tmp_path / "normalize.yaml"
    plain.write_text(spec.read_text().removesuffix(RECIPE))
    assert "cuda" not in plain.read_text()
    assert main(["generate", str(spec), "-o", str(tmp_path / "both")]) == 0
    assert main(["generate", str(plain), "-o", str(tmp_path / "plain")]) == 0
    both, before = ({p.name: p for p in (tmp_path / k).iterdir()} for k in ("both", "plain"))
    assert set(both) - set(before) == {"normalize.sm_90.c", "normalize.sm_90.cu"}
    for name, path in before.items():
        if path.suffix == ".c":
            assert both[name].read_bytes() == path.read_bytes()
    entries = [json.loads(files["normalize.json"].read_text()) for files in (both, before)]
    assert entries[0].pop("architectures") == {"float32": ["sm_90"], "float64": ["sm_90"]}
    assert entries[1].pop("architectures") == {}
    assert set(entries[0]["details"]["proof"]["steps"].pop("sm_90")) == {"float32", "float64"}
    on_gpus = [[a.pop("in_place_on_gpus") for a in entry["arguments"]] for entry in entries]
    assert on_gpus == [[[], ["x"]], [[], []]]
    assert entries[0] == entries[1]


def test_a_recipe_for_gpus_that_is_not_listed(tmp_path: Path) -> None:
    project.create("my-kernels", tmp_path / "new", TARGETS)
    spec = tmp_path / "new" / "kernels_spec" / "normalize.yaml"
    spec.write_text(spec.read_text() + RECIPE)
    with pytest.raises(TilesmithError) as caught:
        build.generate([spec], ["v2"], tmp_path, None, ["sm_90"], [])
    message = "has a recipe for cuda: name it in cuda_kernels of meson.build"
    assert str(caught.value) == f"error: normalize.yaml {message}"


def test_listed_without_a_recipe(tmp_path: Path) -> None:
    """Rules write one."""
    project.create("my-kernels", tmp_path / "new", TARGETS)
    spec = tmp_path / "new" / "kernels_spec" / "normalize.yaml"
    build.generate([spec], ["v2"], tmp_path, None, ["sm_90"], ["normalize"])
    assert "ts_normalize_float32" in (tmp_path / "normalize.sm_90.cu").read_text("utf-8")
