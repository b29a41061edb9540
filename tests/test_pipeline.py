"""What a build proves: what it emits, and each step only where that fails."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gen.commands import build
from gen.errors import ScheduleError, TilesmithError
from gen.ir.nodes import Kernel, Loop
from gen.ir.walk import loops, replace_stmt
from gen.pipeline import generate
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.workbench import Workbench
from gen.schedule.primitives.unroll import Unroll
from gen.targets.registry import TARGETS
from gen.targets.target import Registry

from .targets.scalar import REGISTRY, Scalar

SPEC = """\
tilesmith: 1
kernel: {name}
doc: A sum of neighbours.
signature: (n),(n)->(n)
dtypes: {{T: [float32, float64]}}
arguments:
  x: {{type: "T[n]"}}
  y: {{type: "T[n]"}}
  z: {{type: "T[n]", intent: out}}
compute: |
  z[i] = x[i] + y[i]
oracle: x + y
accuracy: 0
example: |
  >>> ts.{name}([1.0], [2.0])
  array([3.])
recipes:
  - target: cpu
    variants:
      - when: n >= 4
        steps:
          - split: {{loop: z.i, factors: [null, 4]}}
          - unroll: {{loop: z.i_1}}
      - steps: []
"""


def written(folder: Path, name: str = "both") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(SPEC.format(name=name))
    return path


def test_two_targets_are_in_one_answer(tmp_path: Path) -> None:
    """Levels tell them apart, so that no two targets may share one."""
    spec, targets = TARGETS.load(written(tmp_path)), (*TARGETS.chosen(None, ["v3"]), Scalar())
    made = generate(spec, targets, lambda *_: None)
    assert [*made.c_files] == ["both.v3.c", "both.scalar.c"]
    assert [*made.manifest["details"]["proof"]["steps"]] == ["v3", "plain"]
    with pytest.raises(TilesmithError, match="two targets have a level 'plain'"):
        Registry((Scalar, *REGISTRY.targets))


def test_levels_share_plain_schedules_and_steps_are_not_proved(tmp_path: Path) -> None:
    asked: list[tuple[Kernel, Scheduled]] = []

    def prove(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        asked.append((plain, state))

    generate(TARGETS.load(written(tmp_path)), TARGETS.chosen(None), prove)
    proofs = Counter(id(plain) for plain, _ in asked)
    assert sorted(proofs.values()) == [3, 3, 3, 3]  # of each dtype and variant one a level


def test_a_part_of_a_condition_that_isl_cannot_say_leaves_the_others_known(tmp_path: Path) -> None:
    """Whole fours have no guard: that is right where the condition holds, and is proved so."""
    path = tmp_path / "both.yaml"
    path.write_text(SPEC.format(name="both").replace("n >= 4", "n * n <= 4096 and n % 4 == 0"))
    made = generate(TARGETS.load(path), TARGETS.chosen(None, ["v3"]), prove)
    assert "z_i_1" not in made.c_files["both.v3.c"]  # no loop of a rest


@pytest.mark.parametrize("level", ["v3", "v4"])
def test_a_loop_of_one_iteration_leaves_a_tile_in_registers(level: str) -> None:
    """On v4 a row is one vector, and the loop over a row's vectors runs once."""
    spec = TARGETS.load(Path(__file__).parent / "lower" / "one_vector.yaml")
    (made,) = generate(spec, TARGETS.chosen(None, [level]), prove).c_files.values()
    assert "ts_f32 s[4]" in made and "ts_workspace_acquire" not in made


def test_a_step_that_breaks_a_rule_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where what it comes to is refused, steps are verified one by one."""
    good = Unroll.apply

    def twice(self: Unroll, state: Scheduled) -> Scheduled:
        new = good(self, state)
        outer, inner = loops(new.kernel.body)
        renamed: Loop = replace(inner, var=outer.var)
        body = replace_stmt(new.kernel.body, inner, renamed)
        return replace(new, kernel=replace(new.kernel, body=body))

    monkeypatch.setattr(Unroll, "apply", twice)
    with pytest.raises(ScheduleError, match=r"unroll \(loop z.i_1\): the tree breaks a rule: loop"):
        generate(TARGETS.load(written(tmp_path)), TARGETS.chosen(None, ["v3"]), lambda *_: None)


def test_a_fault_of_the_generator_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no refusal: nothing is tried again, which might hide it."""
    tries = []

    def broken(self: Unroll, state: Scheduled) -> Scheduled:
        tries.append(state)
        raise LookupError("no such loop")

    monkeypatch.setattr(Unroll, "apply", broken)
    with pytest.raises(LookupError, match="no such loop"):
        generate(TARGETS.load(written(tmp_path)), TARGETS.chosen(None, ["v3"]), lambda *_: None)
    assert len(tries) == 1


def test_a_run_makes_several_kernels(tmp_path: Path) -> None:
    specs = [written(tmp_path, name) for name in ("both", "other")]
    depfile = tmp_path / "run.d"
    arguments = ["generate", *map(str, specs), "--levels", "v3", "--output-dir", str(tmp_path)]
    assert build.main([*arguments, "--depfile", str(depfile)]) == 0
    for name in ("both", "other"):
        assert (tmp_path / f"{name}.v3.c").exists() and (tmp_path / f"{name}.json").exists()
    target, _, inputs = depfile.read_text().partition(": ")
    assert target == str(tmp_path / "both.json")  # as ninja has it: the first that a run makes
    assert inputs.split()[:2] == [str(spec) for spec in specs]
