"""A spec's entry of the manifest: what the binding and the documentation know of the kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

from .. import language as specs
from ..ir.text.print_expr import expr_to_text
from ..language import model
from ..language.model import KernelSpec
from ..lower.index_limits import NO_LIMITS, Limits
from ..lower.variants import Variant, limits_of
from ..poly.certificate import PROVED
from ..poly.checks.in_place import of_other_sizes
from ..targets.runtime import ARCHITECTURES, LEVELS
from .manifest import Entry, EntryArgument, EntryParameter

Pairs = frozenset[tuple[str, str]]
"""Of an input and an output."""

_NONE: tuple[Pairs, Pairs] = (frozenset(), frozenset())


def entry_of(spec: KernelSpec, made: Mapping[str, Mapping[str, Sequence[Variant]]]) -> Entry:
    """The entry of a kernel whose variants are made: by level and suffix of dtypes. Those of GPUs
    may lack some dtypes.
    """
    variants = [v for by_dtypes in made.values() for vs in by_dtypes.values() for v in vs]
    standing = reduce(or_, (v.lowered.standing for v in variants), PROVED)
    steps = {
        level: {dtypes: {v.name: len(v.steps) for v in vs} for dtypes, vs in by_dtypes.items()}
        for level, by_dtypes in made.items()
    }
    proof: dict[str, object] = {"status": str(standing), "steps": steps}
    if standing.tested:
        proof["tested"] = [t.step for t in standing.tested]
    levels = [level for level in made if level in LEVELS]
    in_place = (
        pairs_of([v for level in levels for vs in made[level].values() for v in vs]),
        pairs_of([v for at in made.keys() - {*levels} for vs in made[at].values() for v in vs]),
    )
    entry = manifest_entry(spec, levels, proof, in_place, limits_of(variants))
    return replace(entry, architectures=_architectures(made))


def pairs_of(variants: Sequence[Variant]) -> Pairs:
    """An input and an output that may be one array, whatever variant runs."""
    shared = Pairs().union(*(v.in_place for v in variants))
    return shared.intersection(*(v.in_place | of_other_sizes(v.lowered.kernel) for v in variants))


def _architectures(made: Mapping[str, Mapping[str, object]]) -> dict[str, tuple[str, ...]]:
    """Those of GPUs, by the suffix of dtypes."""
    of_gpus = [level for level in ARCHITECTURES if level in made]
    suffixes = dict.fromkeys(dtypes for level in of_gpus for dtypes in made[level])
    return {s: tuple(level for level in of_gpus if s in made[level]) for s in suffixes}


def manifest_entry(
    spec: KernelSpec,
    levels: Sequence[str],
    proof: Mapping[str, object],
    in_place: tuple[Pairs, Pairs] = _NONE,
    limits: Limits = NO_LIMITS,
) -> Entry:
    """What the binding and the documentation know of the kernel.

    proof: what vouches for it, in words, and by level and dtypes the number of steps of each
    variant. in_place: the pairs of an input and an output that may be one array, whatever variant
    runs, on a processor and on a GPU. limits: of sizes and scalars.
    """
    return Entry(
        kernel=spec.name,
        doc=spec.doc,
        signature=str(spec.signature),
        types={v.name: tuple(d.value for d in v.choices) for v in spec.dtypes},
        following={v.name: v.of for v in spec.dtypes if v.of is not None},
        dims=spec.dims,
        loop_dim=spec.loop_dim,
        arguments=tuple(_argument(spec, k, in_place) for k in range(len(spec.arguments))),
        parameters=tuple(
            EntryParameter(s.name, s.element, s.default, s.members) for s in spec.scalars
        ),
        requires=specs.least_sizes(spec),
        constraints=tuple(expr_to_text(c) for c in specs.relations(spec)),
        named={size.name: expr_to_text(size.value) for size in spec.sizes},
        limits=limits.scalars,
        largest=limits.largest,
        products=tuple(map(expr_to_text, limits.products)),
        levels=tuple(levels),
        ordered=specs.is_ordered(spec),
        details={
            "follows": spec.follows,
            "accuracy": {f.output: f.text.text for f in spec.accuracy},
            "example": spec.example,
            "proof": dict(proof),
        },
    )


def looped(spec: KernelSpec, argument: model.Argument) -> bool:
    """Whether the array has the loop dim: its slices are packed where a unit stride is needed."""
    return spec.loop_dim is not None and argument.shape[:1] == (spec.loop_dim,)


def _argument(spec: KernelSpec, position: int, in_place: tuple[Pairs, Pairs]) -> EntryArgument:
    a = spec.arguments[position]
    has_loop_dim = looped(spec, a)
    axes = a.shape[1:] if has_loop_dim else a.shape
    core = tuple(s if isinstance(s, str | int) else model.size_text(s) for s in axes)
    shared = (
        tuple(b.name for b in spec.arguments if (b.name, a.name) in pairs) for pairs in in_place
    )
    return EntryArgument(a.name, a.intent, a.element, has_loop_dim, core, *shared)
