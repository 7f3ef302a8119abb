#!/usr/bin/env bash
# The main job in one command: sets up the environment, then runs `vera-local run` with the arguments given.
# Relative paths in the arguments mean the folder that you are in. Where --ray is among them, Ray is installed, too.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
ray=()
for argument in "$@"; do
    case "$argument" in --ray | --ray=*) ray=(--ray) ;; esac
done
bash "$root/scripts/setup.sh" "${ray[@]}"
exec "$root/.venv/bin/vera-local" run "$@"
