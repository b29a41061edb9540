"""Lowering: a scheduled tree becomes one in which nothing is implied, by passes that all
targets share.

Read `lower` (the passes in their order): `loop_bounds` (guards become bounds), `edges` and
`transposed_tiles` (tiles at the edges of arrays), `storage` (shapes and places of temporaries),
`pragmas`. Of their own stand `specialize` (a variant's condition), `index_limits` (of 64 bits), and
what finishing calls: `contraction` and `narrowing`; `variants` is what a recipe makes of a kernel.
"""
