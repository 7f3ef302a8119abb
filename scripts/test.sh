#!/usr/bin/env bash
# The tests in one command: sets up the environment with the test tools, then runs pytest with the arguments given.
# Paths in the arguments are relative to the root of the checkout.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
bash "$root/scripts/setup.sh" --test
cd "$root"
exec .venv/bin/python -m pytest "$@"
