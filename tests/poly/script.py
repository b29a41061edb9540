"""Short scripts of kernels for these tests, and what the prover says of them."""

from dataclasses import replace
from textwrap import indent

import pytest

from gen.ir.nodes import Kernel
from gen.ir.text.parser import from_text
from gen.poly.certificate import Flow, Scheduled, Source
from gen.poly.prove import prove
from gen.poly.values.flow import plain_flow
from gen.poly.witness import Refused


def nest(*lines: str) -> str:
    """Headers, each around what follows, the last line innermost."""
    result = lines[-1]
    for header in reversed(lines[:-1]):
        result = f"{header}:\n{indent(result, '    ')}"
    return result


def block(name: str, iters: str, body: str, more: str = "") -> str:
    """`iters` as in "i=a.i, j+a.j": + for a reduction variable; "i:0:n=2*a.i_0" gives a domain."""
    arguments = [f'"{name}"']
    for part in filter(None, iters.split(", ")):
        kind = "reduction" if "+=" in part else "spatial"
        left, binding = part.split("+=" if kind == "reduction" else "=", 1)
        var, *domain = left.split(":")
        arguments.append(f"{var}={kind}({', '.join([binding, *domain])})")
    if more:
        arguments.append(more)
    return f"with block({', '.join(arguments)}):\n    {body}"


def kernel(signature: str, *statements: str, temporaries: str = "", assume: str = "") -> Kernel:
    body = "\n".join(statements)
    if temporaries:
        body = nest(f"with allocate({temporaries})", body)
    if assume:
        body = f"assume({assume})\n{body}"
    return from_text(f"def k({signature}):\n{indent(body, '    ')}\n")


def accept(plain: Kernel, tree: Kernel, **changes: Source) -> None:
    """Proves the tree under what it assumes."""
    plain = assuming(plain, tree)
    prove(plain, Scheduled(tree, certificate(plain, changes)))


def assuming(plain: Kernel, tree: Kernel) -> Kernel:
    """The plain schedule for the calls that the tree is for, as a variant's `when` makes it."""
    return replace(plain, assumptions=plain.assumptions or tree.assumptions)


def refusal(plain: Kernel, tree: Kernel, **changes: Source) -> Refused:
    """The refusal, whose text is its reason and the example."""
    plain = assuming(plain, tree)
    with pytest.raises(Refused) as caught:
        prove(plain, Scheduled(tree, certificate(plain, changes)))
    return caught.value


def certificate(plain: Kernel, changes: dict[str, Source]) -> Flow:
    """The plain flow with `block_0=Source(...)` for read 0 of the block."""
    changed = {(k.rsplit("_", 1)[0], int(k.rsplit("_", 1)[1])): s for k, s in changes.items()}
    return {**plain_flow(plain), **changed}
