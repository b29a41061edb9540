"""Small specs for the tests of rules, what is written for them, and whether it is right."""

import re
from collections.abc import Collection, Sequence

from gen.display.choices import written
from gen.language import KernelSpec, build, choices, loads
from gen.lower.variants import Plain
from gen.pipeline import schedule_to_emit
from gen.poly.prove import prove
from gen.targets.cpu.target import Cpu
from gen.targets.recipes import ByRules, by_rules
from gen.targets.target import Target
from tests.schedule.support import assert_same

V2 = Cpu.at("v2")  # of the shortest vectors: small sizes are beyond its tiles


def spec(arguments: str, compute: str, rest: str = "", dtypes: str = "float32") -> KernelSpec:
    """arguments: `x: T[m, n], y: T[m, n] out`, in the order of a call; rest: more lines."""
    pairs = [argument.split(": ") for argument in arguments.split("; ")]
    lines = [_argument(name, *given.rsplit("] ", 1)) for name, given in pairs]
    given = ",".join(_shape(each) for _, each in pairs if not each.endswith(" out"))
    made = ",".join(_shape(each) for _, each in pairs if not each.endswith("]"))
    text = "\n".join(f"  {line}" for line in compute.splitlines())
    head = f"tilesmith: 1\nkernel: k\ndoc: d\nsignature: {given}->{made}\n"
    head += f"dtypes: {{T: [{dtypes}]}}\narguments: {{{', '.join(lines)}}}\n"
    return loads(f"{head}{rest}compute: |\n{text}\n", "k.yaml")


def _argument(name: str, type_: str, intent: str = "in") -> str:
    return f'{name}: {{type: "{type_.rstrip("]")}]", intent: {intent}}}'


def _shape(given: str) -> str:
    return f"({given[given.index('[') + 1 : given.index(']')].replace(' ', '')})"


def ruled(kernel: KernelSpec, target: Target) -> ByRules:
    """What rules choose for a spec's first types."""
    found = by_rules(Plain(kernel, choices(kernel)[0]), target)
    assert found is not None
    return found


def recipe(kernel: KernelSpec, rules: Collection[str]) -> str:
    """What rules write for it, and why these declined."""
    text = written(Plain(kernel, choices(kernel)[0]), V2)
    return "".join(line for line in text.splitlines(True) if _told(line, rules))


def _told(line: str, rules: Collection[str]) -> bool:
    found = re.match(r"#   not (\w+):", line)
    return found is None or found[1] in rules


def assert_right(kernel: KernelSpec, sizes: Sequence[int]) -> None:
    """What is emitted computes what the spec says, for all combinations of the sizes."""
    dtypes = choices(kernel)[0]
    for variant in schedule_to_emit(kernel, dtypes, V2, prove):
        assert_same(build(kernel, dtypes), variant.lowered.kernel, sizes)
