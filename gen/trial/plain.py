"""The plain schedule, compiled: what the spec's body says, computed as it is written.

Input: a spec, a choice of dtypes, and a call's arrays. Output: the results of the call, where the
spec has no oracle to ask, or the temporaries that its accuracy names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from .. import language as specs
from ..ir.interpret.evaluate import numpy_dtype
from ..ir.interpret.sizes import value
from ..ir.nodes import Intent, Kernel
from ..language import Dtypes
from ..language.formulas import oracle
from ..language.model import KernelSpec
from ..lower.finish import Finished, finish
from ..lower.index_limits import index_limits
from ..lower.lower import lower
from ..poly.certificate import Scheduled
from ..poly.values.flow import plain_flow
from ..targets.registry import HOST
from ..targets.target import Runnable
from .sizes import kernel_dims

Array = NDArray[Any]
Arrays = Mapping[str, Array]


@final
@dataclass(eq=False)
class Reference:
    """A spec for one choice of dtypes. Its plain schedule is compiled where it is asked first."""

    spec: KernelSpec
    dtypes: Dtypes

    def results(self, arrays: Arrays, sizes: Mapping[str, int]) -> dict[str, Array]:
        """The outputs of a call. arrays: its arguments; they are not changed."""
        given = self._computed(arrays, sizes, None)
        return {a.name: given[a.name] for a in self.spec.arguments if a.intent is not Intent.IN}

    def temporaries(
        self,
        arrays: Arrays,
        sizes: Mapping[str, int],
        scalars: Mapping[str, float] | None = None,
    ) -> dict[str, Array]:
        """The values of the temporaries that the accuracy formula names."""
        if not (wanted := oracle.needed_temporaries(self.spec)):
            return {}
        given = self._computed(arrays, sizes, scalars)
        return {name: given[name] for name in wanted}

    def _computed(
        self, arrays: Arrays, sizes: Mapping[str, int], scalars: Mapping[str, float] | None
    ) -> dict[str, Array]:
        """All arrays after a call."""
        kernel, compiled = self._compiled
        given, dims = dict(arrays), kernel_dims(self.spec, sizes, scalars)
        values = {**oracle.defaults(self.spec), **(scalars or {}), **dims}
        for p in kernel.parameters:
            name = p.buffer.name
            if name not in given or p.intent is Intent.OUT:
                shape = tuple(value(extent, values) for extent in p.buffer.shape)
                given[name] = np.empty(shape, numpy_dtype(p.buffer.dtype))
            elif p.intent is Intent.INOUT:
                given[name] = given[name].copy()
        compiled.bound(given, dims, values)()
        return given

    @cached_property
    def _compiled(self) -> tuple[Kernel, Runnable]:
        """The plain schedule, compiled, with the temporaries that its accuracy names as outputs."""
        wanted = oracle.needed_temporaries(self.spec)
        plain = oracle.expose(specs.build(self.spec, self.dtypes), wanted)
        kernel = lower(Scheduled(plain, plain_flow(plain)), HOST.lowering).kernel
        arrays = [p.buffer.name for p in kernel.parameters]
        variants = {"plain": [Finished("plain", finish(kernel, HOST.finishing))]}
        sources = HOST.emit(kernel.name, variants, packed=arrays)
        limits = index_limits([(kernel, None)])
        return kernel, HOST.load(kernel, "plain", sources, limits, oracle.defaults(self.spec))
