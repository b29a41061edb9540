"""Questions that primitives and lowering ask; no proof depends on the answers. `distances` of
dependent iterations, `times` (when loops run) and `code` (isl's loops for that), `halo` (what ranks
need of each other), `inverse` (of an affine map), `extents` (how far accesses reach); and
one that costs are told by, `work`.
"""
