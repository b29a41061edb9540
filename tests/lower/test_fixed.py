"""The plain schedule under a variant's condition, against which all is proved."""

from pathlib import Path

import pytest

from gen import language as specs
from gen.ir.algebra import add
from gen.lower import specialize as fixed
from gen.poly.witness import Refused

CONV2D = Path(__file__).parents[2] / "kernels_spec" / "conv2d.yaml"


def test_what_a_condition_settles_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = specs.load(CONV2D)
    plain = specs.build(spec, specs.choices(spec)[0])
    condition = next(v.when for r in spec.recipes for v in r.variants if v.when is not None)
    fixed.where(plain, condition, spec.sizes)
    monkeypatch.setattr(fixed, "resolve", lambda index, facts: add(index, 1))
    with pytest.raises(Refused, match=r"block 'patch' is emitted with `x.* \+ 1.*` where `x"):
        fixed.where(plain, condition, spec.sizes)
