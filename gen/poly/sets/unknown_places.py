"""Places of which only bounds are known.

Input: the events of an access, and the bounds of an index that is not affine. Output: the map from
events to the free coordinate that stands for the index.
"""

import islpy as isl


def within(
    bounds: tuple[isl.PwAff | None, isl.PwAff | None], free: int, coordinate: int, events: isl.Set
) -> isl.Map:
    """From events to their free coordinate, which lies between the bounds that are known."""
    part = isl.Map.universe(_to_number(events.get_space()))
    low, high = (
        b if b is None else isl.Map.from_pw_aff(b).add_dims(isl.dim_type.in_, free) for b in bounds
    )
    if low is not None:
        part = part.intersect(low.apply_range(_order("<=")))
    if high is not None:
        part = part.intersect(high.apply_range(_order(">=")))
    return part.equate(isl.dim_type.in_, coordinate, isl.dim_type.out, 0)


def _order(relation: str) -> isl.Map:
    return isl.Map(f"{{ [a] -> [b] : a {relation} b }}")


def _to_number(space: isl.Space) -> isl.Space:
    """The space of maps from a set space to one coordinate."""
    return isl.Map.from_domain(isl.Set.universe(space)).add_dims(isl.dim_type.out, 1).get_space()
