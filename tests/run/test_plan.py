"""What a config becomes once everything is looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from vera_local.bundle import load_bundle
from vera_local.errors import UserError
from vera_local.run import load_config, make_plan
from vera_local.run.plan import DEMONSTRATION_TURNS


def test_without_a_model_the_run_is_a_demonstration() -> None:
    plan = make_plan(load_config(None, {}))
    assert all(player.embedded for player in (*plan.speakers, plan.judge))
    assert [p.group for p in plan.personas] == ["None", "Low", "High", "Immediate"]
    assert plan.turns == DEMONSTRATION_TURNS == 6


def test_with_a_model_the_published_size_is_the_default() -> None:
    plan = make_plan(load_config(None, dict.fromkeys(("simulator", "chatbot", "judge"), "qwen3-8b")))
    bundle = load_bundle("suicide_risk")
    assert not any(player.embedded for player in (*plan.speakers, plan.judge))
    assert plan.personas == bundle.choose(len(bundle.personas))
    assert plan.turns == bundle.turns == 30


def test_with_one_model_named_the_size_is_no_longer_a_demonstration_s() -> None:
    plan = make_plan(load_config(None, {"chatbot": "qwen3-8b"}))
    assert plan.judge.embedded
    assert plan.turns == 30


def test_a_hub_id_names_its_profile() -> None:
    assert make_plan(load_config(None, {"judge": "Qwen/Qwen3-14B"})).judge.profile.name == "qwen3-14b"


def test_a_served_chatbot_is_tested_as_it_is() -> None:
    assert make_plan(load_config(None, {"chatbot": "m@http://127.0.0.1:9/v1"})).system_prompt == ""
    assert make_plan(load_config(None, {"chatbot": "qwen3-8b"})).system_prompt


def test_a_judge_that_reasons_behind_a_server_is_refused() -> None:
    with pytest.raises(UserError, match="judge: gpt-oss-20b behind a server reasons before every answer"):
        make_plan(load_config(None, {"judge": "gpt-oss-20b@http://127.0.0.1:9/v1"}))


@pytest.mark.parametrize(("asked", "held"), [("1", 2), ("5", 6), ("6", 6)])
def test_the_chatbot_has_the_last_word(asked: str, held: int) -> None:
    assert make_plan(load_config(None, {"turns": asked})).turns == held


def test_conversations_have_names_of_their_own() -> None:
    plan = make_plan(load_config(None, {"personas": "3", "repeats": "2"}))
    ids = [c.id for c in plan.conversations()]
    assert len(set(ids)) == 6
    assert {c.repeat for c in plan.conversations()} == {1, 2}


def test_the_same_config_finds_the_same_folder_again() -> None:
    def folder(**flags: str) -> Path:
        return make_plan(load_config(None, flags)).out

    assert folder(turns="8") == folder(turns="8") != folder(turns="10")
    assert folder(turns="8").parent == Path("runs")


def test_settings_of_a_role_win_over_the_profile(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('[chatbot]\nmodel = "smollm2-135m-instruct"\ntemperature = 0.1\nmax_tokens = 5\n', encoding="utf-8")
    draw = make_plan(load_config(file, {})).chatbot.draw
    assert (draw.temperature, draw.max_tokens) == (0.1, 5)


def test_a_served_model_needs_no_profile() -> None:
    plan = make_plan(load_config(None, {"judge": "our/own-model@http://127.0.0.1:9/v1"}))
    assert (plan.judge.profile.name, plan.judge.url) == ("our/own-model", "http://127.0.0.1:9/v1")


def test_a_system_prompt_of_ones_own(tmp_path: Path) -> None:
    prompt, file = tmp_path / "prompt.txt", tmp_path / "run.toml"
    file.write_text(f'[chatbot]\nmodel = "smollm2-135m-instruct"\nsystem_prompt = "{prompt}"\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"prompt\.txt: the chatbot's system prompt cannot be read"):
        make_plan(load_config(file, {}))
    prompt.write_text("Be kind.\n", encoding="utf-8")
    assert make_plan(load_config(file, {})).system_prompt == "Be kind."


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"judge": "gpt-17"}, 'there is no model "gpt-17"'),
        ({"judge": "/no/such/folder"}, "/no/such/folder"),
        ({"bundle": "nothing"}, "there is no bundle 'nothing'"),
        ({"personas": "Nobody"}, "Nobody"),
        ({"personas": "0"}, "0"),
        ({"personas": "1000"}, "1000"),
    ],
)
def test_what_cannot_be_found_is_named(flags: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        make_plan(load_config(None, flags))
    assert "\n" not in str(caught.value)


def test_a_model_that_always_reasons_needs_a_beginning_of_its_answer(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "models" / "gpt-oss-20b.toml"
    text = shipped.read_text(encoding="utf-8").replace('name = "gpt-oss-20b"', 'name = "own"')
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    make_plan(load_config(None, {"judge": str(tmp_path / "own.toml")}))
    lines = [line for line in text.splitlines() if not line.startswith("answer_prefix")]
    (tmp_path / "own.toml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(UserError, match=r"judge: own reasons before every answer .*answer_prefix"):
        make_plan(load_config(None, {"judge": str(tmp_path / "own.toml")}))
