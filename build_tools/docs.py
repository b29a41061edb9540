"""Writes docs/hazards.md, and makes those pages of the site that are not kept in the repository.

Input: the tests of hazards; the specs in kernels_spec/, the registry of primitives and the schema.
Output: docs/hazards.md, or with `--check` exit status 1 where it is out of date; the texts of the
other pages, for `build_tools/docs_site.py`. Invariant: the same sources give the same bytes.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from functools import reduce
from inspect import cleandoc
from operator import or_
from pathlib import Path

from gen import language as specs
from gen.binding.cython import parameters
from gen.binding.entry import manifest_entry
from gen.display.text import unproved
from gen.ir.text.printer import to_text
from gen.ir.types import DType
from gen.language import yaml
from gen.language.model import Argument, KernelSpec, Scalar, size_text
from gen.pipeline import schedule
from gen.poly import laws
from gen.poly.certificate import PROVED
from gen.reference import primitives as reference
from gen.reference import schema
from gen.schedule import intrinsics
from gen.schedule.base import Example, Layer, Primitive
from gen.schedule.primitives.rescale import Rescale
from gen.schedule.registry import LAYERS, PRIMITIVES
from gen.targets.registry import TARGETS

from . import hazards

ROOT = Path(__file__).resolve().parents[1]


def pages() -> dict[str, str]:
    """The texts of the pages that are kept, by their names in docs/."""
    return {"hazards.md": hazards.page(ROOT / "tests" / "hazards")}


def site_pages() -> dict[str, str]:
    """The texts of the pages that the site alone has, by their names in it: of primitives, kernels
    and each of them; and the schema of specs.
    """
    return {
        "primitives.md": primitives(),
        **kernel_pages(ROOT / "kernels_spec"),
        "tilesmith.schema.json": schema.text(TARGETS),
    }


def linked(page: str) -> str:
    """A page as the site has it: where it names the command or folder that has in a checkout what
    the site has as a page, a link to that page.
    """
    return _NAMED.sub(_link, page)


_NAMED = re.compile(
    r"(?<!\[)`(?:help\(ts\.(?P<kernel>\w+)\)"
    r"|(?P<steps>tilesmith primitives)(?: (?P<step>\w+))?"
    r"|(?P<schema>tilesmith schema)"
    r"|(?P<specs>kernels_spec/))`"
)


def _link(named: re.Match[str]) -> str:
    kernel, step = named["kernel"], named["step"]
    targets = {
        "kernel": f"kernels/{kernel}.md",
        "steps": f"primitives.md#{step}" if step else "primitives.md",
        "schema": "tilesmith.schema.json",
        "specs": "kernels.md",
    }
    return f"[{named[0]}]({next(targets[key] for key in targets if named[key])})"


# ---------------------------------------------------------------- kernels

_KERNELS = """\
# Kernels

Made from `kernels_spec/`; [language.md](language.md) explains what stands on a kernel's page under
*Computes*. `...` are leading axes: they broadcast over all inputs, and what is
computed has them as one dim or is computed for each. Errors are absolute, at each element: `eps` is
the distance from 1 to the next larger number of T, `ulp(v)` that from v to the next. The bounds
hold on every ISA level, for every size and number of threads.

Every kernel takes `out=`, the array or tuple of arrays to write to, and `num_threads=`; where
`axis=` is shown, it is the axis to run along; of a reduction a tuple of several, too, or None for
all, the default; `keepdims=True` keeps reduced axes, of length 1. [hazards.md](hazards.md) has
what happens with every kind of array and argument. Kernels with a recipe for CUDA also take arrays
on [GPUs](gpus.md), and `workspace=`.

Beside the kernels, a package has `kernels()`, a dict of what is known of each: signature, types,
accuracy, proof; `show_config()`, which `python -m tilesmith` prints: version, ISA levels, threads,
caches, compiler; `set_num_threads(n)`, `get_num_threads()` and `with threads(n):`; `last_call()`,
the level and variant that the latest call ran; `free_workspace()`, which gives memory back;
`get_include()`, the folder of the header for C and Cython; and `warmup()`, which loads what runs on
a GPU.
"""


def kernel_pages(folder: Path) -> dict[str, str]:
    """The pages of the specs in a folder: `kernels.md`, a list, and one a kernel."""
    loaded = [specs.load(path) for path in sorted(folder.glob("*.yaml"))]
    index = "\n".join(f"- [{s.name}](kernels/{s.name}.md): {_sentence(s.doc)}" for s in loaded)
    pages = {f"kernels/{s.name}.md": _joined(_kernel(s), _recipes(s)) for s in loaded}
    return {"kernels.md": "\n".join([_KERNELS, index + "\n"]), **pages}


def _recipes(spec: KernelSpec) -> str:
    """The recipes as the file has them, and the macros that they use."""
    if not spec.recipes:
        return ""
    text = Path(spec.path).read_text("utf-8")
    found = re.finditer(r"^(macros|recipes):\n(?:[ #].*\n|\n)*", text, re.MULTILINE)
    written = {block[1]: block[0] for block in found}
    assert "recipes" in written, f"{spec.path}: the recipes are not a block of their own"
    text = written.get("macros", "") + written["recipes"]
    return f"Runs by ([primitives](../primitives.md))\n\n{_code(text, 'yaml')}\n"


def _sentence(doc: str) -> str:
    return doc.partition(". ")[0].removesuffix(".") + "."


def _kernel(spec: KernelSpec) -> str:
    entry = manifest_entry(spec, [], {})
    dtypes = "; ".join(f"{v.name} is {_alternatives(v.choices)}" for v in spec.dtypes)
    return _joined(
        f"# {spec.name}",
        _code(f"{spec.name}({', '.join(parameters(entry))})"),
        spec.doc,
        f"Follows {spec.follows}." if spec.follows else "",
        f"Signature `{spec.signature}`; {dtypes}.",
        f"Sizes: {_code_list(entry.size_rules)}." if entry.size_rules else "",
        _table(("argument", "shape", "type", ""), (_argument(spec, a) for a in spec.arguments)),
        _table(("scalar", "type", "default", ""), map(_scalar, spec.scalars))
        if spec.scalars
        else "",
        *(_error(f.output, f.text.text) for f in spec.accuracy),
        _code(spec.example),
        "Computes",
        _code(_body(Path(spec.path))),
        _given(spec),
    )


def _given(spec: KernelSpec) -> str:
    """What its proof takes for granted. A recipe has to be run to know, if it has the one step that
    needs a law.
    """
    steps = (s for r in spec.recipes for v in r.variants for s in v.steps)
    if all(step.primitive != Rescale.name for step in steps):
        return ""
    dtypes = specs.choices(spec)[0]
    machines = (target.at(level) for target in TARGETS.targets for level in target.levels)
    variants = (v for m in machines for v in schedule(spec, dtypes, m, unproved))
    standing = reduce(or_, (v.scheduled.standing for v in variants), PROVED)
    return f"{str(standing).capitalize()}; see [laws](../primitives.md#laws)."


def _alternatives(choices: Sequence[DType]) -> str:
    return " or ".join(dict.fromkeys(choice.value for choice in choices))


def _code_list(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _argument(spec: KernelSpec, argument: Argument) -> tuple[str, ...]:
    looped = bool(argument.shape) and argument.shape[0] == spec.loop_dim
    core = argument.shape[1:] if looped else argument.shape
    shape = f"`({', '.join(['...', *map(size_text, core)])})`"
    return f"`{argument.name}`", shape, argument.element, argument.intent.value


def _scalar(scalar: Scalar) -> tuple[str, ...]:
    default = "" if scalar.default is None else f"`{scalar.default}`"
    return f"`{scalar.name}`", scalar.element, default, scalar.doc


def _error(output: str, bound: str) -> str:
    if bound == "0":
        return f"`{output}` has no error."
    return f"The error of `{output}` is at most\n\n{_code(' '.join(bound.split()))}"


def _body(path: Path) -> str:
    """The text of `compute`, after the temporaries that are declared."""
    root = yaml.parse(path.read_text("utf-8"), path.name)
    assert isinstance(root, yaml.Map)
    parts = {key.text: value for key, value in root.entries}
    declared = parts.get("temporaries")
    temporaries = declared.entries if isinstance(declared, yaml.Map) else ()
    lines = [f"{k.text}: {v.text}" for k, v in temporaries if isinstance(v, yaml.Scalar)]
    compute = parts["compute"]
    assert isinstance(compute, yaml.Scalar)
    return "\n".join([*lines, compute.text])


# ---------------------------------------------------------------- primitives

_PRIMITIVES = """\
# Primitives

Made from the primitives' own documentation and examples, all of which are tested.
A step of a recipe is `- name: {argument: value, ...}`. Every step is proved: the
tree after it computes, for every size, what the spec says. `as` names what the step creates.
Any step takes `tested: true`, for where data hides what is read: see [Proving](authors.md#proving).
There is no code yet for launches on a GPU (`bind`, `gpu`, `tile_gpu`, ...) and for loops over ranks
(`distribute`, and with it `send` and `receive`): their trees are proved and interpreted, and a
recipe that has them is refused where C would be made of it.
"""

_LAYERS = {
    Layer.ALGORITHM: "Layer I: what is computed",
    Layer.ORDER: "Layer II: in what order, and on which processor",
    Layer.STORAGE: "Layer III: where values are stored",
    Layer.COMMUNICATION: "Layer IV: how values get there",
}


def primitives() -> str:
    """The page of all primitives, by layer."""
    parts = [_PRIMITIVES, "\n".join(map(_line, PRIMITIVES)) + "\n"]
    for layer, title in _LAYERS.items():
        parts += [f"## {title}\n", *map(_primitive, LAYERS[layer])]
    parts += [_INTRINSICS, *map(_intrinsic, intrinsics.names())]
    return "\n".join([*parts, _LAWS, *map(_law, laws.names())])


_INTRINSICS = """\
## Intrinsics

What [tensorize](#tensorize) puts in the place of loops: each a file in `gen/schedule/intrinsics`.
"""


def _intrinsic(name: str) -> str:
    found = intrinsics.lookup(name)
    levels = (f"`{feature}` on {level}" for level, feature in found.code.features.items())
    return _joined(
        f"### {name}",
        f"An instruction of processors with {', '.join(levels)}.",
        found.promise,
        f"Its pattern:\n\n{_code(to_text(found.pattern))}",
    )


_LAWS = """\
## Laws

Algebra that changes values, by which [rescale](#rescale) joins reductions: each a file in
`gen/poly/laws`. `meaning` is what the parts are of a set of terms x, `term` what they are of one,
`state` how two are combined. That these agree is proved, over the real numbers, whenever the law is
used. `bound` is how far each part may be from its exact value, in floats: n is the number of terms,
`largest` the largest of their magnitudes. The tests hold it. What is proved by such a law says so:
`proved given LAW`.
"""


def _law(name: str) -> str:
    text = (laws.FOLDER / f"{name}.yaml").read_text("utf-8")
    found = laws.lookup(name, DType.FLOAT64)
    written = text[text.index("\nforms:") :]
    return _joined(f"### {name}", found.doc, f"After {found.source}.", _code(written, "yaml"))


def _line(primitive: type[Primitive]) -> str:
    return f"- [{primitive.name}](#{primitive.name}): {_sentence(primitive.summary())}"


def _primitive(primitive: type[Primitive]) -> str:
    befores = ["", *(example.before for example in primitive.EXAMPLES)]
    return _joined(
        f"### {primitive.name}",
        f"Also {', '.join(f'`{a}`' for a in primitive.aliases)}." if primitive.aliases else "",
        cleandoc(primitive.__doc__ or ""),
        _table(("argument", "value", "default"), reference.arguments(primitive)),
        *map(_example, primitive.EXAMPLES, befores),
    )


def _example(example: Example, before: str) -> str:
    """The example after one that starts from the tree `before`."""
    refused = f"is refused: {example.refused}"
    outcome = refused if example.refused else f"gives\n\n{_code(reference.after(example))}"
    return _joined(
        f"#### {example.title}",
        "In the same tree" if example.before == before else _code(example.before),
        _code(example.steps, "yaml"),
        outcome,
    ).removesuffix("\n")


# ---------------------------------------------------------------- Markdown


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _code(text: str, language: str = "python") -> str:
    return f"```{language}\n{text.strip()}\n```"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Writes docs/hazards.md.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args(arguments)
    stale = False
    for name, text in pages().items():
        path = ROOT / "docs" / name
        if not options.check:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            print(f"docs/{name} is out of date: run python -m build_tools.docs", file=sys.stderr)
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
