"""Kernels for GPUs, made once for all tests of a run."""

import re
from functools import cache
from pathlib import Path

from build_tools.check_kernel_list import for_gpus
from build_tools.digests import GPUS
from gen.ir.text.printer import to_text
from gen.language import Dtypes, choices, loads
from gen.language.model import KernelSpec
from gen.lower.variants import Plain, Variant, suffix
from gen.pipeline import emit, schedule, schedule_to_emit
from gen.poly.prove import prove
from gen.targets.cuda.target import Cuda
from gen.targets.registry import TARGETS
from tilesmith import _kernels

SPECS = Path(__file__).parent / "specs"
ROOT = Path(__file__).parents[3] / "kernels_spec"
TARGET = Cuda.at("sm_90")
BUILT = Path(_kernels.__file__).parent  # the build's folder, where tilesmith is installed editable
(LEVEL,) = GPUS
GOLDEN = Path(__file__).parents[2] / "golden" / "rules" / "cuda"
TRIED = (
    *("blur", "clamp", "gelu", "layer_norm", "matmul", "matvec", "softmax", "sum", "transpose"),
)
"""One of each form that rules take: all that is asked of a recipe is asked of theirs."""


@cache
def _read(path: Path) -> KernelSpec:
    return TARGETS.load(path)


_FILES = (*SPECS.glob("*.yaml"), *(ROOT / f"{name}.yaml" for name in for_gpus(ROOT)))
_PATHS = {path.stem: path for path in _FILES}
NAMES = tuple(sorted(name for name, path in _PATHS.items() if path.parent == SPECS))
"""Of the specs beside the tests."""
SHIPPED = tuple(sorted(_PATHS.keys() - {*NAMES}))
"""Of the package's kernels those that are for GPUs, too."""


def _elementwise(name: str) -> bool:
    """Whether there are no axes but those that a call broadcasts along."""
    spec = _read(_PATHS[name])
    return all(argument.shape == (spec.loop_dim,) for argument in spec.arguments)


def spec_of(name: str) -> KernelSpec:
    """Of `TRIED` with the recipe that rules write, as a golden has it: they take seconds to."""
    return _with_golden(name) if name in TRIED else _read(_PATHS[name])


@cache
def _with_golden(name: str) -> KernelSpec:
    text = re.split(r"\n(?:macros|recipes):", _PATHS[name].read_text("utf-8"), maxsplit=1)[0]
    return loads(f"{text}\n{(GOLDEN / f'{name}.yaml').read_text('utf-8')}", f"{name}.yaml")


ELEMENTWISE = tuple(filter(_elementwise, SHIPPED))
AS_BUILT = tuple(name for name in SHIPPED if name not in TRIED)
"""`tests/kernels/test_on_gpus.py` tries them as they were built, and thorough runs on all that they
may be given.
"""


@cache
def dtypes_of(name: str) -> tuple[Dtypes, ...]:
    """All for which a shipped kernel has code; of others the first."""
    found = [d for d in choices(spec_of(name)) if all(map(TARGET.has_code_for, d.values()))]
    return tuple(found if name in SHIPPED else found[:1])


@cache
def variants(name: str, number: int = 0) -> tuple[Plain, tuple[Variant, ...]]:
    """The plain schedule and the variants for one choice of dtypes, proved as emitted."""
    plain = Plain(spec_of(name), dtypes_of(name)[number])
    return plain, schedule_to_emit(plain.spec, plain.dtypes, TARGET, prove, plain)


@cache
def sources(name: str, number: int | None = None) -> tuple[str, str]:
    """The device text and the C of the host side, for all dtypes or for one choice."""
    numbers = range(len(dtypes_of(name))) if number is None else (number,)
    made = {suffix(dtypes_of(name)[k]): variants(name, k)[1] for k in numbers}
    device, host = emit(spec_of(name), made, TARGET).values()
    return device, host


def built(name: str) -> tuple[str, str]:
    """As `sources`, of a shipped kernel as this machine has built it."""
    device, host = ((BUILT / f"{name}.{LEVEL}.{kind}").read_text("utf-8") for kind in ("cu", "c"))
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
