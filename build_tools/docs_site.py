"""The kernels' pages of the site: a hook of MkDocs (see mkdocs.yml).

Input: the specs in kernels_spec/. Output: kernels.md as a list, and in kernels/ a page a kernel,
with what the list in the repository has and its recipes. Nothing is written into docs/.
"""

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from build_tools import docs


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the kernels' pages into the menu, where mkdocs.yml has the empty list `Kernels`."""
    names = sorted(path.stem for path in (docs.ROOT / "kernels_spec").glob("*.yaml"))
    pages = [{"All kernels": "kernels.md"}, *({name: f"kernels/{name}.md"} for name in names)]
    (reference,) = (part["Reference"] for part in config.nav or [] if "Reference" in part)
    (kernels,) = (part for part in reference if "Kernels" in part)
    kernels["Kernels"] = pages
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages that are made from the specs, in place of the one that is committed."""
    pages = docs.kernel_pages(docs.ROOT / "kernels_spec")
    for name, text in pages.items():
        if (committed := files.get_file_from_path(name)) is not None:
            files.remove(committed)
        files.append(File.generated(config, name, content=text))
    return files
