#!/usr/bin/env bash
# Installs clang from Debian's packages, for the checks that build the generated C with it too.
# Needs root. Those checks say so, and are skipped, where clang is absent.
set -euo pipefail
if command -v clang >/dev/null; then
    clang --version | head -n 1
    exit 0
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends clang libomp-dev
clang --version | head -n 1
