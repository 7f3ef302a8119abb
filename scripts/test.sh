#!/usr/bin/env bash
# The tests in one command: sets up the environment with the test tools, then runs pytest with the arguments given.
# Paths in the arguments are relative to the root of the checkout.
#
#   bash scripts/test.sh [ARGUMENTS OF PYTEST]
#   bash scripts/test.sh --offline [ARGUMENTS OF PYTEST]    all tests where there is no network but loopback
#
# The tests of pages need a browser, those of the network strace and ip: what is missing is installed where apt-get may do
# that (as in a container, where one is root). Where that cannot be, these tests say so and are passed over.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"

say() { echo "test: $*" >&2; }

# has NAME...: whether there is one of these programs.
has() {
    local name
    for name in "$@"; do
        if command -v "$name" >/dev/null; then return; fi
    done
    return 1
}

# The packages of Debian with what is missing.
missing() {
    has chromium chromium-browser google-chrome || echo chromium fonts-dejavu-core
    has strace || echo strace
    has ip || echo iproute2
}

install_tools() {
    local packages
    read -r -d '' -a packages <<<"$(missing)" || true
    if [[ ${#packages[@]} == 0 || "$(id -u)" != 0 ]] || ! has apt-get; then return; fi
    say "installing ${packages[*]} by apt-get"
    export DEBIAN_FRONTEND=noninteractive
    {
        apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=30 update
        apt-get -qq install --yes --no-install-recommends "${packages[@]}"
    } >/dev/null || say "${packages[*]} were not had; the tests that need them are passed over"
}

# A network namespace with no interface but loopback; who is not root is in a namespace of users, too.
alone=(unshare --net)
if [[ "$(id -u)" != 0 ]]; then alone+=(--map-root-user); fi
alone+=(sh -c 'ip link set lo up && exec "$@"' sh)

where=()
if [[ "${1:-}" == --offline ]]; then
    where=("${alone[@]}")
    shift
fi

bash "$root/scripts/setup.sh" --test
cd "$root"
install_tools
if [[ ${#where[@]} != 0 ]] && ! "${where[@]}" true; then
    say "--offline: no network namespace can be made here; it takes unshare and ip, and a kernel that lets users make one"
    exit 1
fi
exec "${where[@]}" .venv/bin/python -m pytest "$@"
