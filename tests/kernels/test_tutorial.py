"""The tutorial for callers, docs/callers.md, run as a doctest on the built extension."""

import doctest
import re
from pathlib import Path

import tilesmith as ts

PAGE = Path(__file__).parents[2] / "docs" / "callers.md"


def test_the_page() -> None:
    text = PAGE.read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "callers", str(PAGE), None)
    threads, report = ts.get_num_threads(), list[str]()
    try:
        results = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    finally:
        ts.set_num_threads(threads)
    assert results.attempted > 30 and not results.failed, "".join(report)
