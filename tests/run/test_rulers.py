"""Texts are measured by a model's own tokenizer where it is here, and by their characters where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from vera_local.engine.seam import ChatMessage
from vera_local.engine.template import ChatTemplate
from vera_local.run import Plan, load_config, make_plan, rulers
from vera_local.run.paper import BY_CHARACTERS, Paper
from vera_local.run.rulers import Rulers


def plan_of(folder: Path, **models: object) -> Plan:
    return make_plan(load_config(None, {"out": folder / "run", "personas": 4, **models}))


async def test_a_model_that_is_here_measures_as_its_engine_would(tiny_model_folder: Path, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, judge=[str(tiny_model_folder)])
    player = plan.judges[0].player
    rulers = Rulers()
    ruler = rulers(player)
    assert rulers(player) is ruler, "read once"
    template = ChatTemplate.load(tiny_model_folder, player.profile.template)
    history = [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "How are you?"),
        ChatMessage("assistant", "Well"),
    ]
    history += [ChatMessage("user", "And what do you think of this, then?")]
    counted = await Paper(ruler, 10_000).count_tokens(history)
    assert counted == pytest.approx(len(template.ids(history)), abs=2)


def test_without_its_files_characters_stand_for_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    plan = plan_of(tmp_path, judge=["qwen3-32b"])
    assert Rulers()(plan.judges[0].player) is BY_CHARACTERS


def test_a_served_model_is_measured_by_characters(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, judge=["mine@http://127.0.0.1:9/v1"])
    assert Rulers()(plan.judges[0].player) is BY_CHARACTERS


def test_the_embedded_model_is_not_converted_for_this(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rulers, "converted", lambda: None)
    monkeypatch.setattr(rulers, "locate", lambda profile: pytest.fail("nothing is to be converted"))
    plan = plan_of(tmp_path)
    assert Rulers()(plan.judges[0].player) is BY_CHARACTERS
