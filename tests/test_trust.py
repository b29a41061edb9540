"""What commands do with a spec that somebody else wrote; docs/trust.md says it."""

import ctypes
import html.parser
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gen import cli
from gen.display import page
from gen.display.text import unproved
from gen.language import choices, load
from gen.language.formulas import formula
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.registry import TARGETS

PAGE = Path(__file__).parents[1] / "docs" / "trust.md"

SPEC = """\
tilesmith: 1
kernel: guest
doc: >-
  {text}
follows: >-
  {text}
signature: (n)->(n)
dtypes: {{T: [float32]}}
arguments:
  x: {{type: "T[n]", doc: '{text}'}}
  y: {{type: "T[n]", intent: out}}
scalars:
  c: {{type: T, default: 0.5, doc: '{text}'}}
externals:
  more:
    arguments: {{v: T}}
    result: T
    header: /etc/hostname
    source: |
      /* {text} */
      __attribute__((constructor)) static void now(void) {{ abort(); }}
      static float more(float v) {{ return v + 1; }}
    oracle: v + 1
compute: |
  y[i] = more(x[i]) * c
oracle: (x + 1) * c
accuracy: 4 * eps * abs(y[i])
example: |
  >>> raise SystemExit
recipes:
  - target: cpu
    variants:
      - steps:
          - split: {{loop: y.i, factors: [null, 4]}}
"""
TEXT = r'*\ "" <!-- <script> </script> & \n %s {0} @data@ ${x} ??/ // `x` #include "x"'


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "guest.yaml"
    path.write_text(SPEC.format(text=TEXT))
    return path


def forbidden(*_: object, **__: object) -> None:
    raise AssertionError("something of the spec is run")


@pytest.mark.parametrize(
    "command",
    [("check",), ("show",), ("show", "--stage", "c"), ("show", "--steps"), ("prove",),
     ("generate", "--levels", "v3", "-o", "OUT")],
    ids=" ".join,
)  # fmt: skip
def test_what_runs_nothing(
    command: tuple[str, ...], spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, name in ((subprocess, "Popen"), (ctypes, "CDLL"), (formula, "prepared")):
        monkeypatch.setattr(owner, name, forbidden)
    out = tmp_path / "out"
    given = [str(out) if word == "OUT" else word for word in command]
    assert cli.main([given[0], str(spec), *given[1:]]) == 0
    if "OUT" in command:
        names = {path.name for path in out.iterdir()}
        assert "guest.json" in names and "guest.v3.c" in names
        assert names <= {"guest.json", *(f"guest.{level}.c" for level in TARGETS.levels)}
    assert {path.name for path in tmp_path.iterdir()} <= {"guest.yaml", "out"}


def test_every_command_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    actions = cli._parser(TARGETS)._actions
    (commands,) = (a for a in actions if a.dest == "==SUPPRESS==" and a.choices)
    assert all(f"`{name}`" in text for name in commands.choices or ())


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.scripts += tag == "script"


def test_a_spec_is_text_on_its_page(spec: Path) -> None:
    """With the spec's texts in its C and in its recipe there are as many scripts as without."""
    loaded = load(spec)
    made = page.page(loaded, choices(loaded)[0], Cpu(Level.V3), prove=unproved)
    assert "u003c!-- \\u003cscript> \\u003c/script>" in made
    before, after = Tags(), Tags()
    before.feed(page.TEMPLATE.read_text("utf-8"))
    after.feed(made)
    assert after.scripts == before.scripts
    assert len(re.findall("</script", made)) == before.scripts


@pytest.mark.parametrize("name", ["../../x", "a/b", "a b", "x;y", "a__b", "", "-x", "é", "con.txt"])
def test_names_that_would_be_paths_or_code(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.yaml"
    path.write_text(SPEC.format(text="x").replace("kernel: guest", f"kernel: '{name}'"))
    assert cli.main(["generate", str(path), "-o", str(tmp_path / "out")]) == 1
    assert f"k.yaml:2:9: error: '{name}' is not a name" in capsys.readouterr().err
    assert not [*(tmp_path / "out").iterdir()]


Edit = Callable[[str], str]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.replace("/etc/hostname", "x.h>\\n#include <y"), "not the name of a header"),
        (lambda t: t.replace("/etc/hostname", "x.h> /*"), "not the name of a header"),
        (lambda t: t.replace("result: T", "result: T\n    c: f(); g"), "not the name of a C"),
        (lambda t: t.replace("[null, 4]}", "[null, 4], as: ['a;b', 'a b']}"), "name"),
        (lambda t: t.replace("[null, 4]", "[null, 1000000000000]"), "is too large"),
    ],
)
def test_texts_that_would_be_code(
    edit: Edit, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.yaml"
    path.write_text(edit(SPEC.format(text="x")))
    assert cli.main(["check", str(path)]) == 1
    said = capsys.readouterr().out
    assert message in said and re.match(r".*k\.yaml:\d+:\d+: error: ", said)


def test_what_never_ends_is_read_up_to_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("no /dev/zero")
    assert cli.main(["check", "/dev/zero"]) == 1
    assert "the file is larger than 65536 bytes" in capsys.readouterr().out
