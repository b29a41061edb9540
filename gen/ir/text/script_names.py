"""Names of the IR as Python takes them, which keeps some words for itself.

Input and output: names, their parts joined by dots. `pass.j` is written `pass_.j`, and `pass_.j`
is written `pass__.j`: `from_script(to_script(name)) == name` for every name.
"""

from keyword import iskeyword


def to_script(name: str) -> str:
    """The name with an underscore more in each part that is a keyword but for underscores."""
    parts = name.split(".")
    return ".".join(f"{part}_" if iskeyword(part.rstrip("_")) else part for part in parts)


def from_script(name: str) -> str:
    """The name that `to_script` gave this one for."""
    parts = name.split(".")
    return ".".join(part[:-1] if iskeyword(part.rstrip("_")) else part for part in parts)
