"""Bugs planted in the lowered trees of kernels: the prover refuses them, and they are found in the
device text, by the emulator or by the oracle beside it.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gen.errors import KernelFault, TilesmithError
from gen.ir.algebra import TRUE, add, conjunction, conjuncts, index
from gen.ir.index.linear import constant
from gen.ir.nodes import Allocate, Block, If, Kernel, Loop, Stmt, Var
from gen.ir.rules.verify import verify
from gen.ir.walk import replace_stmt, statements, substitute
from gen.lower.variants import Variant, suffix
from gen.pipeline import emit
from gen.poly.prove import prove
from gen.targets.cuda.emulator.emulated import Emulated
from gen.targets.cuda.emulator.library import Array, build
from gen.trial.comparison import compare
from gen.trial.sizes import kernel_dims

from .emulated_kernels import EMULATED, Subject, calls, sizes_of, subject
from .made import ELEMENTWISE, TARGET, variants

OF_EACH_FORM = [name for name in EMULATED if name == "gelu" or name not in ELEMENTWISE]


def changes(stmt: Stmt) -> Iterator[tuple[str, Stmt]]:
    """A statement with one thing wrong, and what: a thread or a block takes the place of the next;
    of a loop's iterations, of a block's threads, of a tile in memory the last is gone; a guard is.
    """
    match stmt:
        case Loop(var, upper=upper, kind=kind, body=body):
            if kind.is_bound:
                yield (
                    f"next {kind.value}",
                    replace(stmt, body=substitute(body, {var: add(Var(var), index(1))})),
                )
            if (size := constant(upper) or 0) > 1:
                yield f"shorter {var}", replace(stmt, upper=index(size - 1))
        case Allocate(buffers):
            for k, buffer in enumerate(buffers):
                for axis, extent in enumerate(buffer.shape):
                    if (size := constant(extent) or 0) > 1:
                        shape = (*buffer.shape[:axis], index(size - 1), *buffer.shape[axis + 1 :])
                        less = replace(buffer, shape=shape)
                        new = (*buffers[:k], less, *buffers[k + 1 :])
                        yield f"smaller {buffer.name}[{axis}]", replace(stmt, buffers=new)
        case Block(name, predicate=predicate) if predicate != TRUE:
            parts = conjuncts(predicate)
            for k in range(len(parts)):
                rest = conjunction(*parts[:k], *parts[k + 1 :])
                yield f"unguarded {name} ({k})", replace(stmt, predicate=rest)
        case If(_, body):
            yield "without if", body


def planted(kernel: Kernel) -> Iterator[tuple[str, Kernel]]:
    for stmt in statements(kernel.body):
        for what, wrong in changes(stmt):
            yield what, replace(kernel, body=replace_stmt(kernel.body, stmt, wrong))


def is_proved(name: str, variant: Variant) -> bool:
    plain, _ = variants(name)
    try:
        verify(variant.lowered.kernel, lowered=True)
        prove(plain.under(variant.when), variant.lowered, plain.bench)
    except TilesmithError:
        return False
    return True


def of_variant(name: str, variant: Variant) -> Iterator[tuple[str, Variant]]:
    for what, wrong in planted(variant.lowered.kernel):
        yield what, replace(variant, emitted=replace(variant.lowered, kernel=wrong))


HARMLESS = {  # what the prover takes all the same, as it may
    r"smaller .*": "what only keeps rows in other banks, or a last part leaves over",
    r"unguarded y \(0\)": "blur has no blocks where w is 0, and need not ask for it",
    r"unguarded .*\.init \(\d\)": "what nobody reads may be set to 0, too",
    r"without if": "matmul asks whether a tile is there, and then of each element",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if number % 2 else pytest.mark.thorough)
        for number, name in enumerate(OF_EACH_FORM)
    ],
)
def test_the_prover_refuses_them(name: str) -> None:
    """Or what is planted does no harm."""
    accepted = []
    for variant in variants(name)[1]:
        planted_ = [*of_variant(name, variant)]
        assert len(planted_) > 3
        accepted += [what for what, wrong in planted_ if is_proved(name, wrong)]
    assert all(any(re.fullmatch(known, what) for known in HARMLESS) for what in accepted), accepted
    assert len({*accepted}) <= 5  # each planted in several variants


# ---------------------------------------------------------------- in the device text

UNSEEN = {  # what is right all the same, or is wrong only where it takes minutes to emulate
    r".*: unguarded .*\.init \(\d\)": "what nobody reads may be set to 0, too",
    r"softmax.*: shorter peak\..*": "a softmax is right whatever it takes for the peak",
    r"sum 0: shorter y_sum\..*": "of the last pieces of a row only 4 million elements make use",
    r"blur 0: unguarded column \(0\)": "past a row's end are rooms that nobody reads",
    r"matmul 0: without if": "as above, or registers take what is 0",
}


def calls_of(of: Subject, variant: str) -> Iterator[tuple[dict[str, Array], dict[str, int]]]:
    """Calls that run a variant."""
    for sizes in sizes_of(of):
        for order in "CF" if len(of.variants) > 1 else "C":
            arrays = {n: np.array(x, order=order) for n, x in of.arrays(sizes).items()}
            if of.kernel.variant(arrays, kernel_dims(of.spec, sizes)) == variant:
                yield arrays, sizes
    for name, arrays, dims in calls(of):
        if name == variant:
            yield arrays, {d: dims[d] for d in of.spec.dims}


def is_found(of: Subject, kernel: Emulated, variant: str) -> bool:
    try:
        cases = calls_of(of, variant)
        return any(not compare(of.reference, kernel, *case).worst <= 1 for case in cases)
    except KernelFault:
        return True


@pytest.mark.parametrize("most", [8, pytest.param(1000, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough if number % 2 else ())
        for number, name in enumerate(OF_EACH_FORM)
    ],
)
def test_the_emulator_finds_them(name: str, most: int) -> None:
    """All are one library, in which each is a kernel with a name of its own. Those that the prover
    takes are right. most: so many of a kernel's bugs are tried, of each sort some.
    """
    of = subject(name)
    own = f"ts_{name}_{suffix(of.dtypes)}_"
    wrong = [(v.name, *w) for v in of.variants for w in of_variant(name, v)]
    wrong = wrong[:: -(-len(wrong) // most)]
    device, host = [], []
    for k, (_, _, variant) in enumerate(wrong):
        alone = replace(variant, plan=replace(variant.plan, when=None))
        texts = emit(of.spec, {suffix(of.dtypes): (alone,)}, TARGET).values()
        d, h = (text.replace(own, f"ts_{name}{k}_{suffix(of.dtypes)}_") for text in texts)
        device.append(re.sub(r'extern "C" __global__[^{]*_i64\([^}]*\}\n', "", d))
        host.append(h)
    path = build({"k.cu": "".join(device), "k.c": "".join(host)})
    unseen = []
    for k, (at, what, variant) in enumerate(wrong):
        symbol = of.kernel.compiled.symbol.replace(own, f"ts_{name}{k}_{suffix(of.dtypes)}_")
        compiled = replace(of.kernel.compiled, library=path, symbol=symbol, variants=1)
        found = is_found(of, replace(of.kernel, compiled=compiled), at)
        if found:
            assert not is_proved(name, variant), (at, what)
        elif not is_proved(name, variant):
            unseen.append(f"{name} {at}: {what}")
    assert all(any(re.fullmatch(known, what) for known in UNSEEN) for what in unseen), unseen
