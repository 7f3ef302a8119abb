"""The packages of this environment with their licences: a CycloneDX list (SBOM) and requirements/licences.csv.

Reads only what the installed packages say of themselves; asks no network.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("cpu", "cuda", "test")
LICENCES = ROOT / "requirements" / "licences.csv"

SAYS_LITTLE = {"", "unknown", "osi approved", "dfsg approved"}
"""What a package may say where it does not name its licence."""


class Package(NamedTuple):
    """An installed package; `locks` are the lock files that pin it in this version."""

    name: str
    version: str
    licence: str
    locks: tuple[str, ...]


def main() -> None:
    """Write the list to standard output or a file; with --licences also the table of licences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the SBOM to this file instead of standard output")
    parser.add_argument("--licences", action="store_true", help="write requirements/licences.csv, too")
    given = parser.parse_args()
    found = packages()
    text = json.dumps(cyclonedx(found), indent=2) + "\n"
    if given.out is None:
        sys.stdout.write(text)
    else:
        given.out.write_text(text, encoding="utf-8")
    if given.licences:
        LICENCES.write_text(table(found), encoding="utf-8")


def packages() -> list[Package]:
    """Those installed packages that a lock pins, by name."""
    pinned = {lock: pins(lock) for lock in LOCKS}
    found: dict[str, Package] = {}
    for package in distributions():
        name, version = canonical(package.metadata["Name"]), plain_version(package.version)
        locks = tuple(lock for lock, its in pinned.items() if its.get(name) == version)
        if locks and name not in found:
            found[name] = Package(name, version, licence(package), locks)
    return [found[name] for name in sorted(found)]


def pins(lock: str) -> dict[str, str]:
    """Package -> version in a lock file."""
    lines = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8").splitlines()
    pairs = (re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line) for line in lines)
    return {canonical(pair[1]): plain_version(pair[2]) for pair in pairs if pair}


def canonical(name: str) -> str:
    """The name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def plain_version(version: str) -> str:
    """Without the part that names a build, as in 2.13.0+cpu."""
    return version.partition("+")[0]


def licence(package: Distribution) -> str:
    """What a package says of its licence: its expression, else its classifiers, else the first line it has for it."""
    about = package.metadata
    for expression in about.get_all("License-Expression") or ():
        return str(expression).strip()
    kinds = (c.split(" :: ")[-1].strip() for c in about.get_all("Classifier") or () if c.startswith("License ::"))
    named = [kind for kind in kinds if kind.lower() not in SAYS_LITTLE]
    said = "\n".join(about.get_all("License") or ())
    return " OR ".join(named) or next(iter(said.strip().splitlines()), "").strip()


def cyclonedx(found: Iterable[Package]) -> dict[str, Any]:
    """The packages in CycloneDX's form, version 1.6; the same list has the same serial number."""
    components = [_component(package) for package in found]
    serial = uuid5(NAMESPACE_URL, json.dumps(components, sort_keys=True))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "vera-local", "bom-ref": "vera-local"}},
        "components": components,
    }


def _component(package: Package) -> Mapping[str, Any]:
    purl = f"pkg:pypi/{package.name}@{package.version}"
    licences = [{"license": {"name": package.licence}}] if package.licence else []
    properties = [{"name": "vera-local:lock", "value": lock} for lock in package.locks]
    about = {"type": "library", "bom-ref": purl, "name": package.name, "version": package.version, "purl": purl}
    return about | {"licenses": licences, "properties": properties}


def table(found: Iterable[Package]) -> str:
    """One row per package: name, version, licence, and the locks that pin it."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("package", "version", "licence", "locks"))
    rows.writerows((p.name, p.version, p.licence, " ".join(p.locks)) for p in found)
    return text.getvalue()


if __name__ == "__main__":
    main()
