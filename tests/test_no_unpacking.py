"""What others made is read as data: nothing here unpacks an archive, makes objects of bytes or runs a text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import vera_local
from vera_local.bundle import load_bundle
from vera_local.errors import UserError
from vera_local.run.recordings import find

SOURCES = sorted(Path(vera_local.__file__).parent.rglob("*.py"))

MODULES = {"zipfile", "tarfile", "gzip", "bz2", "lzma", "pickle", "cPickle", "dill", "marshal", "shelve", "runpy"}
CALLS = {"eval", "exec", "compile", "os.system", "os.popen", "shutil.unpack_archive", "torch.load", "yaml.unsafe_load"}


def found(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name.partition(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in MODULES:
                yield module
            case ast.Call(func=func) if ast.unparse(func) in CALLS:
                yield ast.unparse(func)
            case ast.keyword(arg="shell", value=ast.Constant(value=True)):
                yield "shell=True"


@pytest.mark.parametrize(
    "source",
    ["import zipfile", "from pickle import loads", "import os; os.system('x')", "run('x', shell=True)", "eval('1')"],
)
def test_what_is_looked_for_is_found(source: str) -> None:
    assert list(found(source))


def test_nothing_unpacks_or_runs_what_it_reads() -> None:
    assert {str(file): told for file in SOURCES if (told := [*found(file.read_text(encoding="utf-8"))])} == {}


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_an_archive_is_no_bundle_and_no_recording(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(UserError, match="there is no bundle"):
        load_bundle(tmp_path / name)
    with pytest.raises(UserError, match=name):
        find(tmp_path / name)
