"""Looks for vector masks that the compiler keeps on the stack in fewer bytes than it loads again.

    python build_tools/check_masks.py EXTENSION...

gcc 12 may store a mask of 8 lanes as one byte and load 2 or 4, the rest of which are whatever the
stack held. What is loaded as 8 bytes into a general register is another value, which the place held
on another way through the function. Prints each such load with its function; the exit status is 1
where there is one. Needs objdump.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence

_SLOT = r"(?P<slot>-?(?:0x[0-9a-f]+)?\(%r[sb]p\))"
_FUNCTION = re.compile(r"^[0-9a-f]+ <(?P<name>.*)>:$")
_MASK_STORED = re.compile(rf"\tkmov(?P<size>[bwdq])\s+%k\d,{_SLOT}")
_STORED = re.compile(rf",{_SLOT}\s*$")
_MASK_LOADED = re.compile(rf"\tkmov(?P<size>[bwdq])\s+{_SLOT},%k\d")
_LOADED = re.compile(rf"\t(?P<word>movz?[bwlq]*)\s+{_SLOT},%(?P<register>\w+)")
_BYTES = {"b": 1, "w": 2, "d": 4, "q": 8}


def wide_loads(listing: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Of objdump's listing: the function and the line of each load of more than was stored."""
    function, stored = "", dict[str, int]()
    for line in listing:
        if found := _FUNCTION.match(line):
            function, stored = found["name"], {}
        elif found := _MASK_STORED.search(line):
            stored[found["slot"]] = _BYTES[found["size"]]
        elif found := _STORED.search(line):
            stored.pop(found["slot"], None)
        else:
            found = _MASK_LOADED.search(line)
            size = _BYTES[found["size"]] if found else 0
            if not found and (found := _LOADED.search(line)):
                size = _loaded(found["word"], found["register"])
                size = 0 if size == 8 else size
            if found and size > stored.get(found["slot"], size):
                yield function, line.strip()


def _loaded(word: str, register: str) -> int:
    match word:
        case "movzbl" | "movb":
            return 1
        case "movzwl" | "movw":
            return 2
        case _:
            return 8 if register.startswith("r") and not register.endswith("d") else 4


def main(paths: Sequence[str]) -> int:
    wrong = 0
    for path in paths:
        command = ["objdump", "-d", "--no-show-raw-insn", path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
            assert listing.stdout
            for function, line in wide_loads(listing.stdout):
                wrong += 1
                print(f"{path}: {function}: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
