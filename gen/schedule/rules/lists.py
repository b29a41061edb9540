"""The rules of each kind of machine, in the order in which they are asked."""

from . import (
    block_rows,
    block_tiles,
    chain,
    columns,
    elementwise,
    fallback,
    lines,
    passes,
    product,
    running,
    stencil,
    sweeps,
    transpose,
    turned,
    whole,
)
from .choose import Rule, Rules
from .parts.normal import inlined, unrepeated
from .waiting import abreast, escape

PROCESSOR = Rules(
    unrepeated,
    (
        Rule("escape", escape.processor),
        Rule("running", running.processor),
        Rule("chain", chain.processor),
        Rule("product", product.processor),
        Rule("whole", whole.processor),
        Rule("passes", passes.processor),
        Rule("columns", columns.processor),
        Rule("stencil", stencil.processor),
        Rule("sweeps", sweeps.processor),
        Rule("transpose", transpose.processor),
        Rule("elementwise", elementwise.processor),
        Rule("lines", lines.processor),
        Rule("abreast", abreast.processor),
    ),
    Rule("fallback", fallback.processor),
)

GPU = Rules(
    inlined,
    (
        Rule("escape", escape.gpu),
        Rule("running", running.gpu),
        Rule("product", block_tiles.gpu),
        Rule("rows", block_rows.gpu),
        Rule("elementwise", elementwise.gpu),
        Rule("turned", turned.gpu),
    ),
    Rule("fallback", fallback.gpu),
)
