"""What a config becomes once everything is looked up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vera_local.bundle import load_bundle
from vera_local.engine.profile import list_profiles
from vera_local.errors import UserError
from vera_local.judge import Mode
from vera_local.run import Player, load_config, make_plan
from vera_local.run.plan import DEMONSTRATION_TURNS
from vera_local.run.seats import Seat


@pytest.mark.parametrize("flags", [{}, {"repeats": 3}, {"simulator": ["qwen3-8b", "qwen3-14b"], "repeats": 2}])
def test_conversations_are_counted_without_making_them(flags: dict[str, Any]) -> None:
    plan = make_plan(load_config(None, flags))
    assert plan.count == len([*plan.conversations()])


def test_without_a_model_the_run_is_a_demonstration() -> None:
    plan = make_plan(load_config(None, {}))
    assert all(player.embedded for player in (*plan.speakers, *(s.player for s in plan.judges)))
    assert [p.group for p in plan.personas] == ["None", "Low", "High", "Immediate"]
    assert plan.turns == DEMONSTRATION_TURNS == 6


def test_with_a_model_the_published_size_is_the_default() -> None:
    plan = make_plan(load_config(None, dict.fromkeys(("simulator", "chatbot", "judge"), "qwen3-8b")))
    bundle = load_bundle("suicide_risk")
    assert not any(player.embedded for player in (*plan.speakers, *(s.player for s in plan.judges)))
    assert plan.personas == bundle.choose(len(bundle.personas))
    assert plan.turns == bundle.turns == 30


def test_with_one_model_named_the_size_is_no_longer_a_demonstration_s() -> None:
    plan = make_plan(load_config(None, {"chatbot": "qwen3-8b"}))
    assert plan.judges[0].player.embedded
    assert plan.turns == 30


def test_a_hub_id_names_its_profile() -> None:
    assert make_plan(load_config(None, {"judge": "Qwen/Qwen3-14B"})).judges[0].player.profile.name == "qwen3-14b"


def test_a_served_chatbot_is_tested_as_it_is() -> None:
    assert make_plan(load_config(None, {"chatbot": "m@http://127.0.0.1:9/v1"})).system_prompt == ""
    assert make_plan(load_config(None, {"chatbot": "qwen3-8b"})).system_prompt


@pytest.mark.parametrize("mode", ["direct", "reason"])
def test_a_judge_that_always_thinks_behind_a_server_does_so_in_mode_think_alone(mode: str) -> None:
    served = "gpt-oss-20b@http://127.0.0.1:9/v1"
    with pytest.raises(
        UserError, match="judge: gpt-oss-20b behind a server reasons before every answer; judge in mode"
    ):
        make_plan(load_config(None, {"judge": [served], "judge_mode": mode}))
    (seat,) = make_plan(load_config(None, {"judge": [served], "judge_mode": "think"})).judges
    assert (seat.name, seat.budget) == ("gpt-oss-20b:think", 2048)


def seats(*judges: str, **flags: Any) -> tuple[Seat, ...]:
    """The seats of judges of the command line."""
    return make_plan(load_config(None, {"judge": list(judges)} | flags)).judges


def test_a_seat_for_each_repeat_of_each_judge_and_the_mode_in_its_name() -> None:
    table = {"model": "qwen3-8b", "mode": "think", "repeats": 3, "max_tokens": 500, "window": True, "evidence": False}
    plan = make_plan(load_config(None, {"judge": ["m@http://127.0.0.1:9/v1", table]}))
    assert [seat.name for seat in plan.judges] == ["m", "qwen3-8b:think", "qwen3-8b:think#2", "qwen3-8b:think#3"]
    first, *repeats = plan.judges
    assert (first.mode, first.budget, first.window, first.evidence, first.confidence) == (
        Mode.DIRECT,
        0,
        False,
        True,
        True,
    )
    assert {seat.judge for seat in repeats} == {"qwen3-8b:think"}
    assert [seat.repeat for seat in repeats] == [1, 2, 3]
    assert {(s.mode, s.budget, s.window, s.evidence) for s in repeats} == {(Mode.THINK, 500, True, False)}


@pytest.mark.parametrize(
    ("judges", "name"),
    [
        (["qwen3-8b", "qwen3-8b"], "qwen3-8b"),
        (["qwen3-14b", "Qwen/Qwen3-14B"], "qwen3-14b"),
        (["m@http://h/v1", "m@http://g/v1"], "m"),
    ],
)
def test_two_judges_of_one_name_are_refused(judges: list[str], name: str) -> None:
    with pytest.raises(UserError, match=rf"^judge: {name} is named twice; for further opinions of one judge set its"):
        seats(*judges)


def test_names_that_repeats_and_the_jury_take_are_no_judge_s() -> None:
    with pytest.raises(UserError, match="judge: m#2 is named twice"):
        seats("m@http://h/v1", "m#2@http://h/v1", judge_repeats="2")
    with pytest.raises(UserError, match="judge: no judge can be called jury"):
        seats("jury@http://h/v1")


def test_one_model_in_two_modes_is_two_judges() -> None:
    tables = [{"model": "qwen3-8b"}, {"model": "qwen3-8b", "mode": "reason"}]
    assert [s.name for s in make_plan(load_config(None, {"judge": tables})).judges] == ["qwen3-8b", "qwen3-8b:reason"]


@pytest.mark.parametrize("judge", ["gemma-3-12b-it", "our-own@http://127.0.0.1:9/v1"])
def test_mode_think_needs_to_know_how_thinking_ends(judge: str) -> None:
    with pytest.raises(
        UserError, match=r"which mode think needs to know; set .*template\.think_end in a profile of it"
    ):
        seats(judge, judge_mode="think")


def test_the_budget_has_to_leave_room_in_the_context_where_there_is_one() -> None:
    table = {"model": "qwen3-8b", "max_tokens": 16384}
    make_plan(load_config(None, {"judge": table}))
    for mode in ("reason", "think"):
        with pytest.raises(UserError, match=r"^judge\.max_tokens: 16384 leaves no room in the context of 16384 tokens"):
            make_plan(load_config(None, {"judge": table | {"mode": mode}}))


def test_every_shipped_profile_has_a_budget_for_how_it_reasons() -> None:
    for profile in list_profiles():
        expected = 80 if profile.source.embedded else 400 if profile.template.thinking == "none" else 2048
        assert profile.roles.judge.max_tokens == expected, profile.name


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
    models = {"simulator": "qwen3-8b", "chatbot": "qwen3-8b"}
    assert folder(judge="gemma-3-12b-it", **models) == folder(judge="gemma-3-27b-it", **models), (
        "so a judge can be added"
    )
    assert folder(turns="8").parent == Path("runs")


def test_settings_of_a_role_win_over_the_profile(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('[chatbot]\nmodel = "smollm2-135m-instruct"\ntemperature = 0.1\nmax_tokens = 5\n', encoding="utf-8")
    chatbot = make_plan(load_config(file, {})).chatbot
    assert isinstance(chatbot, Player)
    draw = chatbot.draw
    assert (draw.temperature, draw.max_tokens) == (0.1, 5)


def test_a_served_model_needs_no_profile() -> None:
    plan = make_plan(load_config(None, {"judge": "our/own-model@http://127.0.0.1:9/v1"}))
    assert (plan.judges[0].player.profile.name, plan.judges[0].player.url) == ("our/own-model", "http://127.0.0.1:9/v1")


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
