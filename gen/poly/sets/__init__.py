"""Trees as isl sets and maps: `affine` (expressions), `statement` (a block where it stands),
`extract` (a tree), `order` (what runs before what), `places` (what may meet). `tiles` and
`delinearize` read split and fused loops, `unknown_places` has indices of which only bounds are
known, `coverage` whether pieces make a whole.
"""
