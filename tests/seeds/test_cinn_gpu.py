"""CINN's examples of SyncThreads and Bind, in its words where ours have them as aliases."""

from gen.ir.text.printer import to_text
from tests.schedule.support import assert_same, schedule, start

DOUBLED = """\
def sync(a: float32[32, 32], b: Out[float32[32, 32]]):
    for b.i in range(32):
        for b.j in range(32):
            with block("b", i=spatial(b.i), j=spatial(b.j)):
                b[i, j] = 2.0 * a[i, j]
"""
COPIED = """\
def bind(a: float32[32, 2], b: Out[float32[32, 2]]):
    for b.i in range(32):
        for b.j in range(2):
            with block("b", i=spatial(b.i), j=spatial(b.j)):
                b[i, j] = a[i, j]
"""


def after(text: str, recipe: str) -> str:
    """The tree after the steps, which compute the same; threads take turns in two orders."""
    state = start(text)
    kernel = schedule(state, recipe)[-1].state.kernel
    assert_same(state.kernel, kernel)
    return to_text(kernel)


def test_sync_threads() -> None:
    assert (
        after(DOUBLED, "- SyncThreads: {loop: b.j, where: before}")
        == """\
def sync(a: float32[32, 32], b: Out[float32[32, 32]]):
    for b.i in range(32):
        barrier()
        for b.j in range(32):
            with block("b", i=spatial(b.i), j=spatial(b.j)):
                b[i, j] = 2.0 * a[i, j]
"""
    )


def test_sync_threads_in_a_launch() -> None:
    """The same place, where the columns are threads: all of them come by."""
    assert (
        after(
            DOUBLED,
            "- SyncThreads: {loop: b.j, where: before}\n- Bind: {loop: b.j, axis: threadIdx.x}\n"
            "- Bind: {loop: b.i, axis: blockIdx.x}",
        )
        == """\
def sync(a: float32[32, 32], b: Out[float32[32, 32]]):
    for b.i in blockIdx.x(32):
        barrier()
        for b.j in threadIdx.x(32):
            with block("b", i=spatial(b.i), j=spatial(b.j)):
                b[i, j] = 2.0 * a[i, j]
"""
    )


def test_bind() -> None:
    assert (
        after(COPIED, "- Bind: {loop: b.i, axis: threadIdx.x}")
        == """\
def bind(a: float32[32, 2], b: Out[float32[32, 2]]):
    for b.i in threadIdx.x(32):
        for b.j in range(2):
            with block("b", i=spatial(b.i), j=spatial(b.j)):
                b[i, j] = a[i, j]
"""
    )
