"""What `run` does with specs that promise nothing, or whose oracle fails."""

import pytest

from gen import trial
from gen.errors import SpecError
from gen.lower.target import Level
from gen.spec import choices, loads

COPY = """\
tilesmith: 1
kernel: copy
doc: The input.
signature: ()->()
dtypes: {T: [float32]}
arguments: {x: {type: "T[m]"}, y: {type: "T[m]", intent: out}}
compute: |
  y[i] = x[i]
oracle: ORACLE
"""


def run(oracle: str) -> trial.Report:
    spec = loads(COPY.replace("ORACLE", oracle), "copy.yaml")
    return trial.run(spec, choices(spec)[0], Level.V2, {})


def test_without_an_accuracy_floats_are_near_and_no_more() -> None:
    assert run("x").right
    assert run("x * (1 + 1e-5)").right
    assert not run("x * (1 + 1e-3)").right


def test_an_oracle_that_fails_is_an_error_there() -> None:
    with pytest.raises(SpecError, match=r"copy\.yaml:9:9: error: the oracle fails: Unable to"):
        run("np.ones(10**12)")
