"""The pages of the site that are made when it is built: a hook of MkDocs (see mkdocs.yml).

Input: the specs in kernels_spec/ and the registry of primitives. Output: kernels.md as a list, in
kernels/ a page a kernel, primitives.md, and tilesmith.schema.json; where a page names the command
that prints one of these in a checkout, a link to it. Nothing is written into docs/.
"""

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

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
    """Adds the pages that are made."""
    for name, text in docs.site_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Links the commands that a page of docs/ names to the pages that say the same."""
    return markdown if "/" in page.file.src_uri else docs.linked(markdown)
