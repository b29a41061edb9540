"""What JSON holds, as the types that it should be. All raise TypeError."""


def mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, got {value!r}")
    return value


def items(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {value!r}")
    return value


def strings(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in items(value))


def integer(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected an integer, got {value!r}")
    return value
