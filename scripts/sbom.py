"""The packages of this environment with their licences: a CycloneDX list (SBOM) and requirements/licences.csv.

Reads only what packages say of themselves; asks no network. What a lock pins and is not installed here (the CUDA lock
on a machine without a GPU) comes from a report of pip, which downloads none of it where the index tells its metadata:

    pip install --dry-run --ignore-installed --no-deps --report REPORT -r requirements/cuda.lock
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
LOCKS = tuple(sorted(file.stem for file in (ROOT / "requirements").glob("*.lock")))
LICENCES = ROOT / "requirements" / "licences.csv"

SAYS_LITTLE = {"", "unknown", "osi approved", "dfsg approved"}
"""What a package may say where it does not name its licence."""


class Package(NamedTuple):
    """A package; `locks` are the lock files that pin it in this version."""

    name: str
    version: str
    licence: str
    locks: tuple[str, ...]


def main() -> None:
    """Write the list to standard output or a file; with --licences also the table of licences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the SBOM to this file instead of standard output")
    parser.add_argument("--report", type=Path, help="a report of pip, for packages that are not installed here")
    parser.add_argument("--licences", action="store_true", help="write requirements/licences.csv, too")
    given = parser.parse_args()
    found = packages(() if given.report is None else reported(given.report))
    text = json.dumps(cyclonedx(found), indent=2) + "\n"
    if given.out is None:
        sys.stdout.write(text)
    else:
        given.out.write_text(text, encoding="utf-8")
    if given.licences:
        LICENCES.write_text(table(packages([*found, *committed()])), encoding="utf-8")


def packages(others: Iterable[Package] = ()) -> list[Package]:
    """Those packages that a lock pins, by name: the installed ones, and of `others` those that are not installed."""
    pinned = {lock: pins(lock) for lock in LOCKS}
    found: dict[tuple[str, str], Package] = {}
    for name, version, its, _ in (*map(_installed, distributions()), *others):
        locks = tuple(lock for lock in LOCKS if pinned[lock].get(name) == version)
        if locks:
            found.setdefault((name, version), Package(name, version, its, locks))
    return [found[key] for key in sorted(found)]


def reported(file: Path) -> list[Package]:
    """The packages of a report of pip."""
    told = [one["metadata"] for one in json.loads(file.read_text(encoding="utf-8"))["install"]]
    return [
        Package(
            canonical(m["name"]),
            plain_version(m["version"]),
            licence(m.get("license_expression", ""), m.get("classifier", ()), m.get("license", "")),
            (),
        )
        for m in told
    ]


def committed() -> list[Package]:
    """Those that the table of licences has."""
    with LICENCES.open(encoding="utf-8", newline="") as file:
        return [
            Package(r["package"], r["version"], r["licence"], tuple(r["locks"].split())) for r in csv.DictReader(file)
        ]


def _installed(package: Distribution) -> Package:
    about = package.metadata
    expression, said = (next(iter(about.get_all(key) or ()), "") for key in ("License-Expression", "License"))
    told = licence(str(expression), map(str, about.get_all("Classifier") or ()), str(said))
    return Package(canonical(about["Name"]), plain_version(package.version), told, ())


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


def licence(expression: str, classifiers: Iterable[str], said: str) -> str:
    """What a package says of its licence: its expression, else its classifiers, else the first line it has for it."""
    kinds = (c.split(" :: ")[-1].strip() for c in classifiers if c.startswith("License ::"))
    named = " OR ".join(kind for kind in kinds if kind.lower() not in SAYS_LITTLE)
    return expression.strip() or named or next(iter(said.strip().splitlines()), "").strip()


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
