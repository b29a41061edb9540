"""Lines of C, put together."""


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def choice(condition: str, then: list[str], otherwise: list[str]) -> list[str]:
    return [f"if ({condition}) {{", *indented(then), "} else {", *indented(otherwise), "}"]
