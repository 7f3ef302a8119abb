#!/usr/bin/env bash
# Makes requirements/cpu.lock, cuda.lock, ray.lock and test.lock from pyproject.toml: every package, at one exact version.
#
#   bash scripts/lock.sh             keep the versions that are locked, add and drop what pyproject.toml asks for
#   bash scripts/lock.sh --upgrade   take the newest versions that fit
#   bash scripts/lock.sh --upgrade-package NAME
#
# Other options go to `uv pip compile` as they are. uv lives in a temporary environment; nothing else is installed, so
# the CUDA lock can be made without a GPU. The locks are for Linux on x86_64 and each Python that the project allows.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

echo "lock: installing uv into a temporary environment"
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.9 packaging==26.4

# compile EXTRA SETTINGS OUT [uv options]: the extra with all it needs, for any platform.
# hatchling comes along because scripts/setup.sh builds the project without a second download.
compile() {
    local extra="$1" settings="$2" out="$3"
    shift 3
    echo "lock: resolving the extra '$extra'"
    echo hatchling | "$work/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 \
        --config-file "requirements/$settings.uv.toml" --extra "$extra" --no-header --no-annotate \
        --output-file "$out" "$@" pyproject.toml - >/dev/null
}

for name in cpu cuda ray test; do
    if [[ -e "requirements/$name.lock" ]]; then cp "requirements/$name.lock" "$work/$name.lock"; fi
done

compile cpu cpu "$work/cpu.lock" "$@"
"$work/venv/bin/python" scripts/narrow_lock.py "$work/cpu.lock" >"$work/cpu.narrow"

# The CUDA lock starts from the CPU lock's versions, so that both run the same code wherever they can.
cat "$work/cpu.narrow" >>"$work/cuda.lock"
compile cuda cuda "$work/cuda.lock" "$@"
"$work/venv/bin/python" scripts/narrow_lock.py "$work/cuda.lock" >"$work/cuda.narrow"

# Ray and the test tools go beside either of them: they bring only what is missing there.
compile ray cpu "$work/ray.lock" --constraint "$work/cpu.narrow" "$@"
"$work/venv/bin/python" scripts/narrow_lock.py "$work/ray.lock" --beside "$work/cpu.narrow" "$work/cuda.narrow" \
    >"$work/ray.narrow"

compile test cpu "$work/test.lock" --constraint "$work/cpu.narrow" --constraint "$work/ray.narrow" "$@"
"$work/venv/bin/python" scripts/narrow_lock.py "$work/test.lock" --beside "$work/cpu.narrow" "$work/cuda.narrow" \
    >"$work/test.narrow"

for name in cpu cuda ray test; do
    mv "$work/$name.narrow" "requirements/$name.lock"
    echo "lock: requirements/$name.lock has $(grep -c '==' "requirements/$name.lock") packages"
done
