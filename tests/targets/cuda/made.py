"""Kernels for GPUs, made once for all tests of a run."""

from functools import cache
from pathlib import Path

from gen.ir.text.printer import to_text
from gen.language import choices, loads
from gen.lower.variants import Plain, Variant, suffix
from gen.pipeline import emit, schedule
from gen.poly.prove import prove
from gen.targets.cuda.target import Cuda
from gen.targets.registry import TARGETS

SPECS = Path(__file__).parent / "specs"
SHIPPED = Path(__file__).parents[3] / "kernels_spec"
NAMES = tuple(sorted(path.stem for path in SPECS.glob("*.yaml")))
TARGET = Cuda.at("sm_90")


@cache
def variants(name: str) -> tuple[Plain, tuple[Variant, ...]]:
    """The plain schedule and the variants of a spec's first dtypes: proved step by step, or as
    lowered alone, for a shipped kernel.
    """
    own = SPECS / f"{name}.yaml"
    spec = TARGETS.load(own if own.exists() else SHIPPED / own.name)
    plain = Plain(spec, next(iter(choices(spec))))
    steps = own.exists()
    return plain, schedule(spec, plain.dtypes, TARGET, prove, plain=plain, each_step=steps)


@cache
def sources(name: str) -> tuple[str, str]:
    """The device text and the C of the host side."""
    plain, made = variants(name)
    device, host = emit(plain.spec, {suffix(plain.dtypes): made}, TARGET).values()
    return device, host


SPEC = """\
tilesmith: 1
kernel: k
doc: A kernel.
follows: numpy
signature: (m,n)->(m,n)
dtypes: {{T: [float32]}}
arguments:
  x: {{type: "T[m, n]"}}
  y: {{type: "T[m, n]", intent: out}}
compute: |
  {body}
oracle: x
accuracy: 0
example: |
  >>> 0
  0
recipes:
  - target: cuda
    variants:
      - steps:
{steps}
"""


def written(body: str, steps: str, when: str = "") -> Variant:
    """The first variant of a small spec. Raises as `schedule`."""
    lines = "".join(f"          {line}\n" for line in steps.splitlines())
    text = SPEC.format(body=body.replace("\n", "\n  "), steps=lines)
    if when:
        text = text.replace("      - steps:\n", f"      - when: {when}\n        steps:\n")
        text += f"      - steps:\n{lines}"
    spec = loads(text, "k.yaml")
    dtypes = next(iter(choices(spec)))
    return schedule(spec, dtypes, TARGET, prove)[0]


def lowered(body: str, steps: str, when: str = "") -> str:
    """The text of the lowered tree of the first variant of a small spec."""
    return to_text(written(body, steps, when).lowered.kernel)
