"""File and flags make one config; what is wrong is named in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vera_local.engine.server import Address
from vera_local.errors import UserError
from vera_local.run import RunConfig, load_config
from vera_local.run.roles import ChatbotConfig, JudgeConfig


def write(folder: Path, text: str) -> Path:
    file = folder / "run.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, 'turns = 10\nseed = 3\njudge = "a"\n')
    config = load_config(file, {"turns": "6", "judge": "b", "seed": None})
    assert (config.turns, config.seed) == (6, 3)
    assert config.judge is not None
    assert [judge.model for judge in config.judge] == ["b"]


def test_a_role_is_a_name_a_name_at_a_server_or_a_table(tmp_path: Path) -> None:
    file = write(tmp_path, 'simulator = "m@https://host/v1"\n[chatbot]\nmodel = "/x@y/z"\ntemperature = 0.2\n')
    config = load_config(file, {"judge": "judge"})
    assert (config.simulator[0].model, config.simulator[0].servers) == ("m", (Address("https://host/v1"),))
    assert isinstance(config.chatbot, ChatbotConfig)
    assert (config.chatbot.model, config.chatbot.url, config.chatbot.temperature) == ("/x@y/z", None, 0.2)


@pytest.mark.parametrize(
    ("requests", "each"), [("", (64, 64)), ("requests = 8\n", (8, 8)), ("requests = [8, 9]\n", (8, 9))]
)
def test_a_role_can_have_several_servers(tmp_path: Path, requests: str, each: tuple[int, int]) -> None:
    file = write(tmp_path, f'[simulator]\nmodel = "m"\nurl = ["http://a/v1", "https://b/v1"]\n{requests}')
    config = load_config(file, {"judge": "m@http://a/v1,https://b/v1"})
    assert config.simulator[0].servers == (Address("http://a/v1", each[0]), Address("https://b/v1", each[1]))
    assert config.judge is not None
    assert config.judge[0].servers == (Address("http://a/v1"), Address("https://b/v1"))
    # As it is kept, it is read again; one server is kept as ever.
    kept = config.model_dump(mode="json")
    assert RunConfig.model_validate(kept) == config
    assert load_config(None, {"judge": "m@http://a/v1"}).model_dump(mode="json")["judge"][0]["url"] == "http://a/v1"


@pytest.mark.parametrize(("given", "read"), [("7", 7), ("An", ["An"]), ("An, Bo", ["An", "Bo"]), (["An"], ["An"])])
def test_personas_are_a_number_or_names(given: Any, read: int | list[str]) -> None:
    assert load_config(None, {"personas": given}).personas == read


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("turns = = 3", r"run\.toml: this is not valid TOML: .*line 1"),
        ("turnz = 3", r"run\.toml: key turnz: unknown key; known ones are bundle, out, personas, turns"),
        ("turns = 0", r"run\.toml: key turns: must be at least 1$"),
        ('seed = "many"', r"run\.toml: key seed: must be a whole number$"),
        (
            'judge = {model = "m", temprature = 1}',
            r"key judge\.temprature: unknown key; known ones are model",
        ),
        ("judge = {}", r"run\.toml: key judge\.model: missing, add it$"),
        ('judge = {model = "m", url = "host"}', r"run\.toml: key judge\.url: must begin with http:// or https://$"),
        ('judge = {model = "m", url = ["http://a", "b"]}', r"key judge\.url: must begin with http:// or https://$"),
        ('judge = "m@http://a/v1,b/v1"', r"key judge\.url: must begin with http:// or https://$"),
        ('judge = {model = "m", url = []}', r"key judge\.url: name at least one server, or leave the key out$"),
        (
            'judge = "m@http://a/v1,http://a/v1/"',
            r"key judge\.url: http://a/v1/ is named twice; name each server once$",
        ),
        (
            'judge = {model = "m", requests = 9}',
            r"key judge\.requests: is for servers only; name them in url, or leave",
        ),
        ('judge = {model = "m", url = "http://a", requests = 0}', r"key judge\.requests: must be at least 1$"),
        (
            'judge = {model = "m", url = ["http://a", "http://b"], requests = [1, 2, 3]}',
            r"key judge\.requests: must be one number for all servers, or one for each of the 2 in url$",
        ),
        ('chatbot = "m@http://a/v1,http://b/v1"', r"key chatbot: a chatbot has one url; put what spreads the load"),
        ('chatbot = {model = "m", system = "x"}', r"key chatbot\.system: unknown key; .*system_prompt"),
        ("personas = [1, 2]", r"run\.toml: key personas"),
        ("turns = true", r"run\.toml: key turns: must be a whole number$"),
        ("turns = 6.0", r"run\.toml: key turns: must be a whole number$"),
        ('personas = ""', r"key personas: name at least one persona, or give a number$"),
        ('simulator = ""', r"key simulator: name a model, or write MODEL@http://HOST:PORT/v1 "),
        ('simulator = {model = ""}', r"key simulator\.model: must not be empty$"),
        ("simulator = 3", "key simulator: must be a model's name, a table of settings or a list of these$"),
        ('judge = "m@http://u:pw@host/v1"', r"key judge\.url: must not hold a login; put the key into an environment"),
        ('judge = "m\\u202ex"', r"key judge\.model: holds the character U\+202E, which nobody sees; remove it$"),
        ("judge = []", r"run\.toml: key judge: name at least one model, or leave the key out$"),
        ("judge = 3", r"key judge: must be a model's name, a table of settings or a list of these$"),
        ('judge = ["m", 3]', r"key judge \(judge 2 of 2\): must be a model's name or a table of settings$"),
        ('judge = {model = "m", mode = "fast"}', r"key judge\.mode: must be 'direct', 'reason' or 'think'$"),
        ('judge = {model = "m", repeats = 0}', r"key judge\.repeats: must be at least 1$"),
        ('judge = {model = "m", repeats = 1.0}', r"key judge\.repeats: must be a whole number$"),
        ('judge = {model = "m", max_tokens = true}', r"key judge\.max_tokens: must be a whole number$"),
        ('judge = {model = "m", window = "perhaps"}', r"key judge\.window: must be true or false$"),
        (
            '[[judge]]\nmodel = "a"\n[[judge]]\nmodel = "b"\nmode = "x"',
            r"key judge\.mode \(judge 2 of 2\): must be 'direct', 'reason' or 'think'$",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        load_config(write(tmp_path, text), {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"out": ""}, r"^--out : name a folder$"),
        ({"judge": "m@127.0.0.1:80"}, r"^--judge m@127.0.0.1:80: name a model, or write MODEL@http://HOST:PORT/v1"),
        ({"judge": "http://h/v1"}, r"^--judge http://h/v1: name a model, or write MODEL@http://HOST:PORT/v1"),
        ({"judge": ["a", "m@h"]}, r"^--judge m@h: name a model, or write MODEL@http://HOST:PORT/v1"),
        ({"judge": ["a", "m@h"], "judge_mode": "reason"}, r"^--judge m@h: name a model, or write"),
        ({"judge": ["a"], "judge_mode": "fast"}, r"^--judge-mode fast: must be 'direct', 'reason' or 'think'$"),
        ({"judge": ["a"], "judge_repeats": "0"}, r"^--judge-repeats 0: must be at least 1$"),
        ({"judge": ["a"], "judge_repeats": "two"}, r"^--judge-repeats two: must be a whole number$"),
        ({"judge_mode": "reason"}, r"^--judge-mode reason: holds for the judges of the command line; name them with"),
        (
            {"judge_evidence": False},
            r"^--no-evidence: holds for the judges of the command line; name them with --judge$",
        ),
        ({"judge_window": True}, r"^--judge-window: holds for the judges of the command line; name them with --judge$"),
        ({"turns": "0"}, r"^--turns 0: must be at least 1$"),
        ({"turns": "six"}, r"^--turns six: must be a whole number$"),
        ({"repeats": "0"}, r"^--repeats 0: must be at least 1$"),
        ({"seed": "-1"}, r"^--seed -1: must be at least 0$"),
        ({"seed": "1.5"}, r"^--seed 1\.5: must be a whole number$"),
    ],
)
def test_what_is_wrong_in_a_flag_is_named(flags: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        load_config(None, flags)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.toml: the config cannot be read \(No such file or directory\)"):
        load_config(tmp_path / "absent.toml", {})
    (tmp_path / "latin.toml").write_bytes(b'bundle = "\xe9"')
    with pytest.raises(UserError, match=r"latin\.toml: this is not a text file in UTF-8"):
        load_config(tmp_path / "latin.toml", {})


@pytest.mark.parametrize(
    ("text", "judges"),
    [
        ('judge = "a"', [JudgeConfig(model="a")]),
        ('judge = ["a", "b@http://h/v1"]', [JudgeConfig(model="a"), JudgeConfig(model="b", url=("http://h/v1",))]),
        ('[judge]\nmodel = "a"\ntemperature = 0.3', [JudgeConfig(model="a", temperature=0.3)]),
        (
            '[[judge]]\nmodel = "a"\nmode = "think"\nmax_tokens = 9\n'
            '[[judge]]\nmodel = "b"\nrepeats = 3\nevidence = false',
            [JudgeConfig(model="a", mode="think", max_tokens=9), JudgeConfig(model="b", repeats=3, evidence=False)],
        ),
    ],
)
def test_judges_are_one_or_several(tmp_path: Path, text: str, judges: list[JudgeConfig]) -> None:
    assert load_config(write(tmp_path, text), {}).judge == tuple(judges)


def test_flags_hold_for_every_judge_of_the_command_line(tmp_path: Path) -> None:
    flags = {"judge_mode": "reason", "judge_repeats": "3", "judge_window": True, "judge_confidence": False}
    config = load_config(write(tmp_path, 'judge = "c"'), {"judge": ["a", "b"], **flags})
    shared = {"mode": "reason", "repeats": 3, "window": True, "confidence": False}
    assert config.judge == tuple(JudgeConfig.model_validate({"model": name, **shared}) for name in "ab")


def test_what_a_run_stored_is_read_with_flags_over_it() -> None:
    stored = {"bundle": "psychosis", "judge": {"model": "old", "temperature": 0.2}}
    kept = load_config(None, {}, stored)
    assert kept.judge == (JudgeConfig(model="old", temperature=0.2),)
    assert load_config(None, {"judge": ["new"]}, stored).judge == (JudgeConfig(model="new"),)
    with pytest.raises(UserError, match=r"^the config of the run: key judge\.modell: unknown key"):
        load_config(None, {}, {"judge": {"model": "m", "modell": 1}})


def test_a_config_survives_the_manifest() -> None:
    config = load_config(None, {"personas": "Ann,Bo", "judge": ["m@http://h/v1", "n"], "out": Path("x")})
    assert RunConfig.model_validate(config.model_dump(mode="json")) == config
