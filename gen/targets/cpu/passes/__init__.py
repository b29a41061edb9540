"""From a proved tree to the one that is emitted: `finish` has the passes in their order, which
are `index_ties`, `unroll`, `inline` (with `clamps`), `scan` and `tensor`; the last two have
their C, too.
"""
