#!/usr/bin/env bash
# The list of packages (SBOM, CycloneDX JSON) of the environment that scripts/setup.sh made, on standard output or with
# --out FILE; with --licences also requirements/licences.csv. Asks no network.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec .venv/bin/python scripts/sbom.py "$@"
