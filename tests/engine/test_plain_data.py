from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from vera_local.engine import plain_data
from vera_local.engine.folder import weight_files
from vera_local.engine.plain_data import confirm_code
from vera_local.engine.profile import EngineOptions, Profile, Source, find_profile
from vera_local.engine.source import locate
from vera_local.engine.template import ChatTemplate
from vera_local.errors import UserError


class Bomb:
    """What a hostile weight file does when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (Path.touch, (self.mark,))


@pytest.fixture(autouse=True)
def nobody_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_data, "_confirmed", set())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "qwen3"}', encoding="utf-8")
    (model / "model.safetensors").write_bytes(b"weights")
    return model


def profile_of(folder: Path, **engine: Any) -> Profile:
    options = EngineOptions(dtype="bfloat16", **engine)
    return find_profile("qwen3-8b").model_copy(update={"source": Source(path=str(folder)), "engine": options})


def refusal(folder: Path, **engine: Any) -> str:
    with pytest.raises(UserError) as caught:
        locate(profile_of(folder, **engine))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write(file: Path, **keys: Any) -> None:
    file.write_text(json.dumps(keys), encoding="utf-8")


@pytest.mark.parametrize("suffix", sorted(plain_data.PICKLES))
def test_a_folder_with_pickles_alone_is_refused_and_they_are_not_read(
    folder: Path, suffix: str, tmp_path: Path
) -> None:
    (folder / "model.safetensors").unlink()
    (folder / f"pytorch_model{suffix}").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))

    told = refusal(folder)

    assert f"pytorch_model{suffix}" in told
    assert "take a version of the model with .safetensors files" in told
    assert not (tmp_path / "ran").exists()


def test_pickles_beside_safetensors_are_left_alone(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"pickle")

    assert locate(profile_of(folder)) == folder
    assert [path.name for path in weight_files(folder)] == ["model.safetensors"]


def test_an_index_that_names_a_pickle_is_refused(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    write(folder / "model.safetensors.index.json", weight_map={"a": "model.safetensors", "b": "pytorch_model.bin"})

    assert "keeps its weights in pytorch_model.bin" in refusal(folder)


@pytest.mark.parametrize("name", ["../other/model.safetensors", "/etc/model.safetensors", "sub/a.safetensors", "..\\a"])
def test_an_index_that_leads_out_of_the_folder_is_refused(folder: Path, name: str) -> None:
    write(folder / "model.safetensors.index.json", weight_map={"a": name})

    assert "outside of it" in refusal(folder)


@pytest.mark.parametrize("content", [{}, {"weight_map": []}, {"weight_map": {}}, {"weight_map": {"a": 1}}])
def test_an_index_that_names_nothing_is_refused(folder: Path, content: dict[str, Any]) -> None:
    write(folder / "model.safetensors.index.json", **content)

    assert "weight_map" in refusal(folder)


def test_a_file_far_larger_than_any_config_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vera_local.engine.json_file.LARGEST", 10)

    assert "is larger than" in refusal(folder)


@pytest.mark.parametrize(
    ("file", "keys"),
    [
        ("config.json", {"model_type": "unheard_of", "auto_map": {"AutoModelForCausalLM": "own.Model"}}),
        ("tokenizer_config.json", {"tokenizer_class": "OwnTokenizer", "auto_map": {"AutoTokenizer": ["own.T", None]}}),
    ],
)
def test_a_model_that_needs_code_of_its_folder_is_refused(folder: Path, file: str, keys: dict[str, Any]) -> None:
    write(folder / file, **keys)

    told = refusal(folder)

    assert file in told
    assert "which is not run" in told


def test_a_model_that_brings_code_and_does_not_need_it_is_taken(folder: Path) -> None:
    write(folder / "config.json", model_type="qwen3", auto_map={"AutoModelForCausalLM": "own.Model"})
    write(folder / "tokenizer_config.json", tokenizer_class="Qwen2Tokenizer", auto_map={"AutoTokenizer": ["own.T"]})

    assert locate(profile_of(folder)) == folder


def test_code_takes_a_profile_that_asks_and_a_person_who_confirms(folder: Path) -> None:
    write(folder / "config.json", model_type="unheard_of", auto_map={"AutoModelForCausalLM": "own.Model"})

    assert "confirm with --trust-remote-code" in refusal(folder, trust_remote_code=True)

    asking = profile_of(folder, trust_remote_code=True)
    confirm_code(asking)
    assert locate(asking) == folder


def test_what_was_confirmed_of_one_folder_holds_for_no_other_of_that_name(folder: Path, tmp_path: Path) -> None:
    confirm_code(profile_of(tmp_path / "elsewhere", trust_remote_code=True))

    assert "confirm with" in refusal(folder, trust_remote_code=True)


@pytest.mark.parametrize("format", ["auto", "pt", "npcache", "hf", "dummy"])
def test_no_profile_can_ask_for_pickles(format: str) -> None:
    with pytest.raises(ValueError, match="load_format"):
        EngineOptions(dtype="auto", load_format=format)  # type: ignore[arg-type]


def test_a_chat_template_cannot_do_more_than_write_text(tiny_model_folder: Path, tmp_path: Path) -> None:
    from jinja2.exceptions import SecurityError
    from transformers import AutoTokenizer

    from vera_local.engine.seam import ChatMessage, InvalidRequest

    tokenizer = AutoTokenizer.from_pretrained(tiny_model_folder)
    mark = tmp_path / "ran"
    for hostile in (
        "{{ ().__class__.__base__.__subclasses__() }}",
        "{{ messages.append(1) }}",
        f"{{{{ cycler.__init__.__globals__.os.system('touch {mark}') }}}}",
        f"{{{{ lipsum.__globals__['os'].popen('touch {mark}').read() }}}}",
    ):
        tokenizer.chat_template = hostile
        template = ChatTemplate(tokenizer, find_profile(str(tiny_model_folder)).template)
        with pytest.raises(InvalidRequest, match="refuses the messages") as caught:
            template.text([ChatMessage("user", "hello")])
        assert isinstance(caught.value.__cause__, SecurityError) or "undefined" in str(caught.value)
    assert not mark.exists()
