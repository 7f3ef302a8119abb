#!/usr/bin/env bash
# The tests in one command: sets up the environment with the test tools, then runs pytest with the arguments given.
# Paths in the arguments are relative to the root of the checkout.
#
# The tests of pages need a browser: where there is none and apt-get may install one (as in a container, where one is
# root), Debian's chromium is installed. Where that cannot be, these tests say so and are passed over.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
bash "$root/scripts/setup.sh" --test
cd "$root"

browser() {
    local name
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name" >/dev/null; then return; fi
    done
    if [[ "$(id -u)" != 0 ]] || ! command -v apt-get >/dev/null; then return; fi
    echo "test: installing chromium by apt-get, for the tests of pages" >&2
    export DEBIAN_FRONTEND=noninteractive
    {
        apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=30 update
        apt-get -qq install --yes --no-install-recommends chromium fonts-dejavu-core
    } >/dev/null || echo "test: chromium was not had; the tests of pages are passed over" >&2
}

browser
exec .venv/bin/python -m pytest "$@"
