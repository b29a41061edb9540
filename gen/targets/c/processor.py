"""What this machine's processor is called."""

import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def name() -> str:
    """As its maker calls it, where the system says so; else its family."""
    lines = _CPUINFO.read_text("utf-8").splitlines() if _CPUINFO.exists() else []
    models = (line.partition(": ")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()
