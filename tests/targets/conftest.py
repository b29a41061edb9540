import pytest

from gen.targets.cpu.levels import Level


def has(level: Level) -> bool:
    wanted = {Level.V2: "sse4_2", Level.V3: "avx2", Level.V4: "avx512vl"}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = next((line.split() for line in file if line.startswith("flags")), [])
    return wanted.get(level, "") in flags


@pytest.fixture(params=[Level.V2, Level.V3, Level.V4], ids=lambda level: str(level.value))
def level(request: pytest.FixtureRequest) -> Level:
    """Each ISA level that this machine has."""
    if not has(request.param):
        pytest.skip(f"this machine has no {request.param.value}")
    return request.param
