"""The numbers of a body: which the language has, and powers of them.

Input: Python's constants. Output: Literals. Raises SpecError where 64 bits do not hold a number.
"""

from ...errors import Span, SpecError
from .nodes import Literal


def number(value: object, span: Span) -> Literal:
    match value:
        case bool() | int() if value < 2**64:
            return Literal(value, span=span)
        case int():
            raise SpecError("the integer does not fit in 64 bits", span)
        case float() | complex() if abs(value) != float("inf"):
            return Literal(value, span=span)
        case float() | complex():
            raise SpecError("the number is too large", span, "write inf for infinity")
        case _:
            raise SpecError("this is not a number of the language", span)


def power(base: int, exponent: int, span: Span) -> Literal:
    """Of an integer with an exponent from 0 on, an integer as in Python."""
    if exponent >= 64 and abs(base) > 1:
        raise SpecError("the integer does not fit in 64 bits", span)
    return number(base**exponent, span)
