"""Goldens: texts that the generator made before, kept under `tests/golden/`; of most kernels' C a
digest alone, in a table.

`pytest --update-golden` writes them anew; look at the difference before you commit it.
`pytest --thorough` runs those tests, too, that repeat others on more kernels, levels or sizes and
would take longer than one waits for: they are marked `thorough`.
"""

import fcntl
import gc
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from zlib import crc32

import pytest

from build_tools import digests as table

from .turns import today

GOLDEN = Path(__file__).parent / "golden"
Golden = Callable[[str, str], None]
Digests = Callable[..., None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the goldens anew")
    parser.addoption("--thorough", action="store_true", help="more kernels, levels and sizes")


LONGEST = (
    "tests/build_tools/test_fuzz.py",
    "tests/test_proofs.py",
    *(f"tests/packaging/test_{name}.py" for name in ("tutorial", "wheel", "project", "sizes")),
)
"""Files that start first, so that no worker is left with one of them at the end."""


IN_TURNS = {
    f"tests/{name}"
    for name in (
        "build_tools/test_broken.py::test_what_is_accepted_is_right",
        "build_tools/test_evaluator.py::test_the_interpreter_computes_what_the_page_says",
        "kernels/test_levels.py::test_a_corrupted_kernel_fails_the_comparison",
        "kernels/test_on_gpus.py::test_asks_for_what_it_needs",
        "kernels/test_on_gpus.py::test_right_at_small_sizes",
        "kernels/test_sanitizers.py::test_sanitizers_find_nothing",
        "kernels/test_sanitizers.py::test_what_is_planted_is_found",
        "kernels/test_shipped.py::test_layouts_of_inputs",
        "kernels/test_shipped.py::test_out_does_not_change_a_bit",
        "kernels/test_warnings.py::test_kernels_compile_without_warnings",
        "language/test_docs.py::test_example",
        "language/test_exact.py::test_compiled_code_knows_uint64",
        "language/test_named.py::test_values",
        "language/test_reductions.py::test_proved_and_compiled",
        "language/test_sizes.py::test_values",
        "lower/test_index_limits.py::test_shipped",
        "notebook/test_layouts.py::test_layouts_change_no_result",
        "poly/test_mutations.py::test_what_is_accepted_is_right",
        "runtime/test_emulated_package.py::test_sizes",
        "schedule/rules/test_all.py::test_rules",
        "schedule/rules/test_gpu.py::test_recipes",
        "schedule/rules/test_gpu.py::test_recipes_of_shipped_kernels",
        "schedule/rules/test_gpu.py::test_results",
        "schedule/rules/test_product.py::test_recipe",
        "schedule/rules/test_product.py::test_right",
        "schedule/rules/test_rows.py::test_recipe",
        "schedule/rules/test_rows.py::test_right",
        "schedule/rules/test_sweeps.py::test_right",
        "schedule/test_random.py::test_steps_keep_what_a_kernel_computes",
        "schedule/test_scan.py::test_forms",
        "targets/cuda/test_compile.py::test_device_text_compiles_without_warnings_and_spills",
        "targets/cuda/test_emulated_barriers.py::test_the_emulator_finds_what_goes_wrong_without_one",
        "targets/cuda/test_emulated_barriers.py::test_the_prover_refuses_a_tree_without_one",
        "targets/cuda/test_emulated_mutants.py::test_the_emulator_finds_them",
        "targets/cuda/test_emulated_mutants.py::test_the_prover_refuses_them",
        "targets/cuda/test_emulated_recipes.py::test_right_at_sizes_around_tiles",
        "targets/cuda/test_emulated_recipes.py::test_right_on_all_kinds_of_inputs",
        "targets/cuda/test_host.py::test_large_arrays_have_indices_of_64_bits",
        "targets/cuda/test_recipes.py::test_a_recipe_is_proved_and_emitted_in_two_seconds",
        "targets/test_equals.py::test_the_first_of_equals",
        "targets/test_finish.py::test_the_tree_that_is_emitted",
        "targets/test_masks.py::test_bools_are_stored_from_masks",
        "targets/test_masks.py::test_masks_of_bytes",
        "targets/test_narrow.py::test_conversions",
        "targets/test_scalar.py::test_shipped_kernels_by_their_plain_schedules",
        "targets/test_scan.py::test_chunks_of_vectors",
        "targets/test_scan.py::test_the_terms_before_from_and_after_a_place",
        "targets/test_storage.py::test_casts_between_all_widths",
        "targets/test_transposes.py::test_rows_are_added_to_before_columns_are_wanted",
        "targets/test_transposes.py::test_rows_of_several_vectors",
        "test_complex.py::test_compiled",
        "test_proofs.py::test_broken_trees_are_refused",
    )
}
"""Tests of many cases that are alike. Each case runs once a week, other ones each day, where a run
is neither thorough nor writes goldens.
"""

TURNS = 7

PACKAGES = (
    *("tests/packaging/test_wheel.py", "tests/packaging/test_cuda.py"),
    *("tests/packaging/test_storage.py", "tests/packaging/test_project.py"),
    *("tests/packaging/test_sizes.py", "tests/runtime/test_emulated_package.py"),
)
"""Files that each build a package of their own, which takes most of their time: every other one
runs, the others on the next day. The tutorial, which builds one as well, runs each day.
"""


def pytest_collection_finish() -> None:
    """Python looks for cycles less often than it is used to, and never in what was collected: trees
    are many small objects without cycles, and this took a fifth of the time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.nodeid.partition("::")[0] not in LONGEST)
    if config.getoption("--thorough"):
        return
    later = _between(items)
    if not config.getoption("--update-golden"):
        later |= _of_other_days(items)
    left = [x for x in items if x.get_closest_marker("thorough") or x.nodeid in later]
    config.hook.pytest_deselected(items=left)
    gone = {*left}
    items[:] = [item for item in items if item not in gone]


def _between(items: list[pytest.Item]) -> set[str]:
    """The tests at v3 that others repeat at v2 and at v4, but for digests, which take no time, and
    those of what is written for each level by hand. `kernels/test_levels.py` has all kernels at v3,
    besides.
    """
    names = {item.nodeid for item in items}
    found = {name for name in names if re.search(r"\bv3\b", name.partition("[")[2])}
    around = {name: [re.sub(r"\bv3\b", level, name) for level in ("v2", "v4")] for name in found}
    kept = ("tests/simd/", "tests/kernels/test_digests.py")
    return {n for n in found if names.issuperset(around[n]) and not n.startswith(kept)}


def _of_other_days(items: list[pytest.Item]) -> set[str]:
    """The tests whose turn is on another day: those of PACKAGES, and the cases of those that are
    IN_TURNS, drawn by their names: in their order, all of one level or of one type would come on
    one day.
    """
    cases: dict[str, list[str]] = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in IN_TURNS:
            cases.setdefault(name, []).append(item.nodeid)
    drawn = (sorted(each, key=lambda case: crc32(case.encode())) for each in cases.values())
    later = {case for each in drawn for k, case in enumerate(each) if k % TURNS != today(TURNS)}
    waiting = [file for k, file in enumerate(PACKAGES) if k % 2 != today(2)]
    return later | {item.nodeid for item in items if item.nodeid.partition("::")[0] in waiting}


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden(name, text)`: the text is what the file `tests/golden/<name>` holds."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"there is no golden {name}: make it by pytest --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def digests(request: pytest.FixtureRequest) -> Digests:
    """`digests(level, files)`: the C files of all kernels that have code on the level are those of
    which the table has the digests. of: the kernels that were asked, where that is not all.
    """

    def compare(level: str, files: Mapping[str, str], of: Collection[str] | None = None) -> None:
        made = {name: table.digest(text) for name, text in files.items()}
        with open(GOLDEN / "digests.txt", "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another worker may have a level in its hands
            kept = table.read(file.read())
            new = table.put(kept, level, made, of)
            if request.config.getoption("--update-golden"):
                file.seek(0)
                file.truncate()
                file.write(table.written(new))
        changed = table.changed(kept, new)
        if changed and not request.config.getoption("--update-golden"):
            pytest.fail(table.told(level, changed), pytrace=False)

    return compare


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled kernels are not taken from, nor left in, the user's cache; all workers share one."""
    root = tmp_path_factory.getbasetemp()
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "tilesmith-cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILESMITH_CACHE", str(folder))
        yield
