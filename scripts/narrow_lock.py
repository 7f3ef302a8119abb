"""Narrows a lock for every platform to Linux on x86_64. Knows no resolver."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEADER = "# Made by scripts/lock.sh from pyproject.toml. Install with: pip install --no-deps -r THIS_FILE"
PYTHONS = ("3.11", "3.12", "3.13")
LINUX = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "sys_platform": "linux",
}


def read(path: Path) -> list[Requirement]:
    """The requirements of a lock, in its order."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def pythons(pin: Requirement) -> list[str]:
    """The Python versions on Linux for which `pin` holds."""
    if pin.marker is None:
        return list(PYTHONS)
    places = {v: LINUX | {"python_version": v, "python_full_version": f"{v}.99"} for v in PYTHONS}
    return [version for version, place in places.items() if pin.marker.evaluate(place)]


def narrow(pin: Requirement) -> str | None:
    """`pin` as one line with no more condition than Linux needs; None where it is never installed there."""
    held = pythons(pin)
    line = f"{pin.name}{pin.specifier}"
    if not held:
        return None
    return line if held == list(PYTHONS) else f"{line} ; " + " or ".join(f'python_version == "{v}"' for v in held)


def present(pin: Requirement, lock: Path) -> bool:
    """Whether `lock` has `pin`; another version of it there ends the script, for both cannot be installed."""
    there = {canonicalize_name(p.name): str(p.specifier) for p in read(lock)}.get(canonicalize_name(pin.name))
    if there not in (None, str(pin.specifier)):
        sys.exit(f"lock: {pin} is needed here, but {lock.name} has {pin.name}{there}")
    return there is not None


def main() -> None:
    """Print the narrowed lock; with `--beside`, without the packages that all those locks have."""
    parser = argparse.ArgumentParser()
    parser.add_argument("lock", type=Path)
    parser.add_argument("--beside", type=Path, nargs="*", default=[])
    args = parser.parse_args()
    lines = [HEADER]
    for pin in read(args.lock):
        found = [present(pin, lock) for lock in args.beside]
        line = narrow(pin)
        if line and not (found and all(found)):
            lines.append(line)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
