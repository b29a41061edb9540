"""The wheel with a package's machine code for GPUs: data alone, for every Python.

Input: the package's wheel, with its sources for GPUs. Output: the wheel `<package>-cuda` of the
same version: a fatbin a source, and a manifest that repeats the hash of those sources, by which
the package knows its own. Invariant: the same wheel and compiler give the same bytes.
"""

import base64
import hashlib
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from email import message_from_bytes
from pathlib import Path

from ..cache import cache_folder
from ..errors import TilesmithError
from ..targets.cuda.machine_code import Functions, machine_code
from ..targets.runtime import digest

_WRITTEN = (1980, 1, 1, 0, 0, 0)  # of each file, so that two wheels are alike


def data_wheel(wheel: Path, to: Path) -> Path:
    """Writes the wheel into the folder `to`, and returns it.

    Raises TilesmithError where the package has no sources for GPUs, not those that its manifest
    tells, or an extra that asks for another version, and as `machine_code`; OSError and
    zipfile.BadZipFile where it cannot be read.
    """
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        told = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(told))
        package, manifest = _manifest(archive, wheel)
        inside = [n for n in archive.namelist() if n.startswith(f"{package}/cuda/")]
        archive.extractall(folder, inside)
        cuda = Path(folder, package, "cuda")
        sources = [path for path in sorted(cuda.iterdir()) if path.suffix in (".cu", ".h")]
        if manifest["cuda_sources"] != digest(sources):
            raise TilesmithError(f"{wheel.name}: its sources for GPUs are not its manifest's")
        name, version = f"{metadata['Name']}-cuda", str(metadata["Version"])
        _check_extra(wheel, metadata.get_all("Requires-Dist", []), name, version)
        imported = f"{package.replace('/', '_')}_cuda"
        texts = [path for path in sources if path.suffix == ".cu"]
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # each waits for a compiler
            found = dict(zip(texts, pool.map(_compiled, texts), strict=True))
        functions = {source.stem: made for source, made in found.items()}
        binaries = [source.with_suffix(".fatbin") for source in texts]
        files = {f"{imported}/{binary.name}": binary.read_bytes() for binary in binaries}
    document = {
        "manifest": 1,
        "distribution": name,
        "version": version,
        "cuda_sources": manifest["cuda_sources"],
        "functions": functions,
    }
    doc = f'"""Machine code for GPUs, which the package {package} loads."""\n'
    files[f"{imported}/__init__.py"] = doc.encode()
    files[f"{imported}/manifest.json"] = (json.dumps(document, indent=1) + "\n").encode()
    to.mkdir(parents=True, exist_ok=True)
    path = to / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    _write(path, files, name, version, str(metadata["Name"]))
    return path


def _compiled(source: Path) -> Functions:
    """Writes the fatbin beside the source."""
    architecture, kept = source.stem.rpartition(".")[2], cache_folder() / "machine-code"
    return machine_code(source, architecture, source.with_suffix(".fatbin"), kept, [source.parent])


def _check_extra(wheel: Path, required: Sequence[str], name: str, version: str) -> None:
    """Raises TilesmithError where an extra of the package asks for another version."""
    for requirement in required:
        asked = requirement.partition(";")[0].replace(" ", "")
        if re.match(rf"{re.escape(name)}(?![\w.-])", asked) and asked != f"{name}=={version}":
            raise TilesmithError(f"{wheel.name} asks for {asked}: let it ask for {name}=={version}")


def _manifest(archive: zipfile.ZipFile, wheel: Path) -> tuple[str, Mapping[str, object]]:
    """The package's folder, and its manifest. Raises TilesmithError where it has no GPU's code."""
    for name in archive.namelist():
        folder, _, file = name.rpartition("/")
        if file == "manifest.json" and folder:
            manifest = json.loads(archive.read(name))
            if "cuda_sources" in manifest:
                return folder, manifest
    raise TilesmithError(f"{wheel.name} has no kernels for GPUs")


def _write(path: Path, files: Mapping[str, bytes], name: str, version: str, package: str) -> None:
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        f"Summary: Machine code for GPUs, for {package} {version}\n"
        f"Requires-Dist: {package}=={version}\n"
    )
    tags = "Wheel-Version: 1.0\nGenerator: tilesmith\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    whole = {**files, f"{folder}/METADATA": metadata.encode(), f"{folder}/WHEEL": tags.encode()}
    record = "".join(f"{file},{_hash(data)},{len(data)}\n" for file, data in whole.items())
    whole[f"{folder}/RECORD"] = f"{record}{folder}/RECORD,,\n".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, data in whole.items():
            info = zipfile.ZipInfo(file, _WRITTEN)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, data)


def _hash(data: bytes) -> str:
    text = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={text.decode()}"
