"""What the page of `tilesmith show --html` tells costs for, and what only a run can tell.

Input: a spec, a choice of dtypes, a target and sizes. Output: sizes of all dims; of a GPU's kernel
what the emulator counts, and what nvcc tells of each launch, where they are there.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from ..display.costs import CostedAt
from ..display.text import unproved
from ..errors import TilesmithError
from ..language import Dtypes, build
from ..language.model import KernelSpec
from ..lower.variants import suffix
from ..pipeline import emit, load, schedule
from ..progress import SILENT, Progress
from ..targets.target import Target
from .inputs import costed, random_arrays, whole
from .sizes import kernel_dims, values_of


def asked(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    given: Mapping[str, int],
    shown: Progress = SILENT,
) -> CostedAt | None:
    """given: sizes of some dims. None where a scalar has no default, from which sizes follow.
    shown: gets a part.

    Raises TilesmithError for an unknown dim, sizes that no call may have, and as `emit` does.
    """
    shown.part("costs")
    for name in given:
        if name not in spec.dims:
            known = ", ".join(spec.dims)
            raise TilesmithError(f"{spec.name} has no dim {name!r}: it has {known}")
    if any(s.default is None for s in spec.scalars):
        return None
    sizes = costed(spec, build(spec, dtypes), given)
    values = whole(values_of(spec, sizes))
    return CostedAt(sizes, values, tuple(_further(spec, dtypes, target, sizes)))


def _further(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    sizes: Mapping[str, int],
) -> Iterator[str]:
    """What cannot be told is left out, with the reason."""
    try:
        emulating = target.emulating()
    except TilesmithError:  # it runs as it is
        return
    variants = schedule(spec, dtypes, target, unproved, each_step=False)
    try:
        kernel = load(spec, dtypes, variants, emulating)
        arrays = random_arrays(spec, dtypes, sizes, np.random.default_rng(0))
        yield from kernel.traffic(arrays, kernel_dims(spec, sizes))
    except TilesmithError as error:
        yield f"no counts of memory: {error.message.splitlines()[0]}"
    try:
        yield from target.figures(emit(spec, {suffix(dtypes): variants}, target))
    except TilesmithError as error:
        yield f"no registers and occupancy: {error.message.splitlines()[0]}"
