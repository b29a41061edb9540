"""The intermediate representation: blocks in loops, one immutable tree from the spec to the
emitted code.

Read `nodes` (the grammar) with `expressions` and `types`, then `walk` and `algebra` (to ask and
rebuild). `text` prints and parses it, `rules` are what every tree obeys, `interpret` runs it,
`index` is what primitives and lowering know of index expressions. The prover reads nothing of
`index`.
"""
