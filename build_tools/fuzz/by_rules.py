"""One kernel whose recipes rules choose: on each target these have to be proved and right.

Input: a draft and options with targets. Output: an Outcome. What rules choose is never refused,
but where a target has no code for the kernel: that is counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from gen import language as specs
from gen.binding.entry import pairs_of
from gen.errors import NoCode, TilesmithError
from gen.lower.finish import interpretable
from gen.lower.variants import Plain, Variant
from gen.pipeline import emit, load, schedule_to_emit
from gen.poly.witness import Refused
from gen.targets.recipes import by_rules
from gen.targets.target import Target
from gen.trial.sizes import holds

from .cases import Array, Case
from .checks import Call, Checks, Failed
from .failure import Failure


class ByRules(Checks):
    """Of recipes that rules choose."""

    def _tried(self, spec: specs.KernelSpec) -> bool:
        spec = replace(spec, recipes=())
        plain = self._guarded("build", lambda: Plain(spec, specs.choices(spec)[0]))
        if self._plain(plain.under(None), plain.bench) is None:
            return False
        return all([self._on(target, plain) for target in self.options.by_rules])

    def _on(self, target: Target, plain: Plain) -> bool:
        """Whether there is code for the kernel."""
        what, (dtype,) = f"rules for {target.name}", plain.dtypes.values()
        if not target.has_code_for(dtype):
            return False

        def chosen() -> tuple[Variant, ...]:
            found = by_rules(plain, target)
            assert found is not None
            if faults := [fault for each in found.chosen for fault in each.faults]:
                raise Failed(Failure(f"{what}: a fault", faults[0]))
            spec = replace(plain.spec, recipes=(found.recipe,))
            known = replace(plain, spec=spec)
            made = schedule_to_emit(spec, plain.dtypes, target, self._prove, known)
            emit(spec, {dtype.value: made}, target)
            return made

        try:
            variants = self._guarded(what, chosen)
        except NoCode as missing:
            self._refuse(None, what, "check", missing)
            return False
        except (TilesmithError, Refused) as error:
            raise Failed(Failure(f"{what} choose what is refused", str(error))) from error
        self.taken += [step.primitive for variant in variants for step in variant.steps]
        for variant in variants:
            self._right(variant, target, what)
        for run in self.options.run:
            if (run.name, run.level) == (target.name, target.level):
                self._called(plain, variants, run)
        return True

    def _called(self, plain: Plain, variants: Sequence[Variant], target: Target) -> None:
        """The code of all variants, which chooses one of them in each call."""
        random = Random(self.seed)
        arrays = [p.buffer.name for p in variants[0].lowered.kernel.parameters]
        packed = [a for a in arrays if random.random() < 0.5]

        def code() -> Call:
            kernel = load(plain.spec, plain.dtypes, variants, target)

            def call(case: Case, arrays: Mapping[str, Array]) -> None:
                kernel.with_scalars(case.scalars)(arrays, case.dims)

            return call

        what = f"the code for {target.name}"
        self._run(what, code, self._cases(), random, packed, pairs_of(variants))

    def _right(self, variant: Variant, target: Target, what: str) -> None:
        """The trees that lowering and finishing make, and for CPUs the code, on cases that the
        variant is for.
        """
        lowered = variant.lowered.kernel
        cases = [case for case in self._cases() if _takes(variant, case)]
        self._compare(f"{what}: the lowered tree", lowered, cases)
        emitted = self._guarded("finishing", lambda: interpretable(lowered, target.finishing))
        self._compare(f"{what}: the tree that is emitted", emitted, cases)
        for level in self.options.levels:
            if level == target.level:
                self._compile(lowered, level, cases)


def _takes(variant: Variant, case: Case) -> bool:
    return variant.when is None or holds(variant.when, case.sizes)
