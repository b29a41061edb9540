"""All primitives, by name and alias, in the order in which the docs have them.

Input: a name. Output: the primitive's class. Invariant: every file in `primitives/` is listed here;
it has the class of that name.
"""

from collections.abc import Sequence
from importlib import import_module

from .base import Layer, Primitive, snake
from .edit.tree import CannotApply, nearest

_ORDER = {
    Layer.ALGORITHM: "rescale",
    Layer.ORDER: """
        split align fuse reorder tile unroll auto_unroll merge fission peel
        reverse shift skew set_schedule add_unit_loop transform_block_layout normalize
        parallel vectorize annotate unannotate
        compute_at reverse_compute_at simple_compute_at after before between
        compute_inline inline_all reverse_compute_inline
        pad decompose_padding decompose_reduction rfactor scan cascade
        bind gpu tile_gpu pipeline cross_thread_reduction
        blockize tensorize
    """,
    Layer.STORAGE: """
        stream prefetch set_scope store_at expand
        transform_layout store_in fold_storage storage_align set_size
        reuse_at double_buffer
    """,
    Layer.COMMUNICATION: """
        cache_read cache_write reindex pack
        sync_threads barrier_at cache_shared_at cache_local_at copy_at host_to_device device_to_host
        distribute send receive
    """,
}


def _found(name: str) -> type[Primitive]:
    """The class of that name in the file of that name."""
    module = import_module(f".primitives.{name}", __package__)
    found: type[Primitive] = getattr(module, "".join(map(str.capitalize, name.split("_"))))
    return found


LAYERS: dict[Layer, tuple[type[Primitive], ...]] = {
    layer: tuple(map(_found, names.split())) for layer, names in _ORDER.items()
}

PRIMITIVES: tuple[type[Primitive], ...] = tuple(p for found in LAYERS.values() for p in found)

BY_NAME: dict[str, type[Primitive]] = {
    name: primitive for primitive in PRIMITIVES for name in (primitive.name, *primitive.aliases)
}

ELSEWHERE = {
    "compute_root": "what no step moves or inlines is computed whole, before all that reads it",
    "specialize": "a recipe has `variants`, each for the calls that its `when` says",
    "gpu_blocks": "`bind` takes the axis, as in bind: {loop: y.i, axis: blockIdx.x}",
    "gpu_threads": "`bind` takes the axis, as in bind: {loop: y.i, axis: threadIdx.x}",
    "stage_mem": "`cache_read` stages what a block reads, `cache_write` what it writes",
    "bind_expr": "give the expression a temporary of its own in `compute`",
    "fuse_loops": "`merge` makes one loop of siblings, `fuse` of loops in one another",
    "unroll_jam": "split the outer loop, reorder its inner part inwards and unroll that",
    "unroll_and_jam": "split the outer loop, reorder its inner part inwards and unroll that",
}
"""What Halide, Exo and compilers have a name for, and no primitive here is: what to do instead."""


def lookup(name: str, macros: Sequence[str] = ()) -> type[Primitive]:
    """The primitive of that name or alias, CINN's `ComputeAt` for `compute_at` too. Raises
    CannotApply where there is none. macros: what could be meant as well.
    """
    known = name if name in BY_NAME else snake(name)
    if known not in BY_NAME:
        hint = ELSEWHERE.get(known) or nearest(known, (*BY_NAME, *macros))
        kinds = "primitive or macro" if macros else "primitive"
        raise CannotApply(f"there is no {kinds} '{name}'", hint)
    return BY_NAME[known]


def is_primitive(name: str) -> bool:
    """Whether `lookup` finds one."""
    return name in BY_NAME or snake(name) in BY_NAME
