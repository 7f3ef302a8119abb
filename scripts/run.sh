#!/usr/bin/env bash
# The main job in one command: sets up the environment, then runs `vera-local run` with the arguments given.
# Relative paths in the arguments mean the folder that you are in.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
bash "$root/scripts/setup.sh"
exec "$root/.venv/bin/vera-local" run "$@"
