"""The table of digests of generated code: a row a kernel, a column a level.

Input: the C files of kernels; for a GPU, the device text and the host side together. Output:
`tests/golden/digests.txt`, which says when one of them has changed; `build_tools/diff_generated.py`
says how. `pytest --update-golden` writes it.
"""

import hashlib
from collections.abc import Collection, Mapping

TABLE = "tests/golden/digests.txt"
GPUS = ("sm_75",)  # what packages have; others differ in names, and recipes for one of them
LEVELS = ("v2", "v3", "v4", "neon", *GPUS)
Digests = Mapping[str, Mapping[str, str]]  # by kernel, by level


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(table: str) -> dict[str, dict[str, str]]:
    """The digests in the text of a table."""
    head, *rows = (line.split() for line in table.splitlines())
    pairs = {name: zip(head[1:], row, strict=True) for name, *row in rows}
    return {name: {x: text for x, text in row if text != "-"} for name, row in pairs.items()}


def written(digests: Digests) -> str:
    """The text of the table; `-` where there is no digest."""
    rows = [
        ("kernel", *LEVELS),
        *((name, *(row.get(level, "-") for level in LEVELS)) for name, row in digests.items()),
    ]
    head, *kernels = (
        f"{name:20} {' '.join(f'{each:16}' for each in row)}".rstrip() + "\n" for name, *row in rows
    )
    return "".join([head, *sorted(kernels)])


def put(
    old: Digests, level: str, made: Mapping[str, str], of: Collection[str] | None = None
) -> dict[str, dict[str, str]]:
    """The table with these digests for those that a level had. of: the kernels that were asked,
    where that is not all.
    """
    rows = {
        name: {k: v for k, v in old.get(name, {}).items() if k != level or name not in (of or old)}
        | ({level: made[name]} if name in made else {})
        for name in (*old, *made)
    }
    return {name: row for name, row in rows.items() if row}


def changed(old: Digests, new: Digests) -> dict[str, tuple[str, ...]]:
    """The levels, of each kernel of either, at which its code is another; kernels without any are
    left out.
    """
    found = {
        name: tuple(x for x in LEVELS if old.get(name, {}).get(x) != new.get(name, {}).get(x))
        for name in sorted(old.keys() | new.keys())
    }
    return {name: levels for name, levels in found.items() if levels}


def shown(levels: Collection[str]) -> str:
    """Of the levels at which code differs, the one to look at."""
    return next(level for level in ("v3", *LEVELS) if level in levels)


def told(level: str, kernels: Mapping[str, tuple[str, ...]]) -> str:
    """What a test says of kernels whose code on a level is not that of the table."""
    return (
        f"on {level} the C of {len(kernels)} kernels is not that of {TABLE}: {', '.join(kernels)}\n"
        f"this shows what has changed since a commit:\n    {command(kernels)}\n"
        "and this writes the table: pytest --update-golden"
    )


def command(kernels: Mapping[str, tuple[str, ...]]) -> str:
    """What shows how the code of these kernels has changed, on a level of each."""
    levels = dict.fromkeys(map(shown, kernels.values()))
    return (
        f"python build_tools/diff_generated.py HEAD --levels {','.join(levels)}"
        f" --kernels {','.join(kernels)}"
    )
