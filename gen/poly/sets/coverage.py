"""Whether pieces of a relation together reach every element of a set.

Input: a set, and relations from it to the instances of loops that the pieces of one nest are, a
loop cut into parts. Output: True only where each element is in the domain of a piece; False says
nothing. Sets of what tiles compute are full of quotients, and their difference takes seconds; but
in the loops' own variables, which are the relations' ranges, there are none.
"""

from collections.abc import Sequence

import islpy as isl


def covered(events: isl.Set, pieces: Sequence[isl.Map]) -> bool:
    """Asks for the least relation of one convex part around all pieces: it relates every element
    to something, and holds no pair that is not of a piece.

    Ranges are taken as tuples of numbers. So this is right whatever loops they are of, and of use
    where they are of the same.
    """
    out = isl.dim_type.out
    if len(pieces) < 2 or len({p.dim(out) for p in pieces}) > 1:
        return False
    plain = [p.reset_tuple_id(out) if p.has_tuple_id(out) else p for p in pieces]
    union = plain[0]
    for piece in plain[1:]:
        union = union.union(piece)
    hull = isl.Map.from_basic_map(union.simple_hull()).intersect_domain(events)
    return bool(hull.is_subset(union) and events.is_subset(hull.domain()))
