#!/usr/bin/env bash
# Cross-compiles every kernel for neon and runs it under an emulator: tests that are skipped where
# the tools are absent. Installs them from Debian's packages, which needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! [ -e /usr/aarch64-linux-gnu/include/stdio.h ] ||
    ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends \
        gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
fi
aarch64-linux-gnu-gcc --version | head -n 1
report=$(mktemp)
trap 'rm -f "$report"' EXIT
"${PYTHON:-python}" -m pytest -rs --thorough tests/kernels/test_neon.py tests/simd -k neon --junitxml "$report"
if ! grep -q 'skipped="0"' "$report"; then
    echo "some tests for neon were skipped" >&2
    exit 1
fi
