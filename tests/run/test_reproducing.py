"""What a report says of how to make a run again, done."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vera_local.run import Plan, load_config, make_plan, manifest
from vera_local.run.reproducing import CONFIG, again

MakePlan = Callable[..., Plan]

CONFIGS: dict[str, dict[str, Any]] = {
    "the demonstration": {},
    "several of each": {
        "simulator": ["qwen3-8b", "qwen3-14b"],
        "judge": [{"model": "qwen3-8b", "repeats": 3, "temperature": 0.7}, {"model": "qwen3-14b", "mode": "think"}],
        "personas": ["Mirela", "Ayumi"],
    },
    "a served chatbot": {
        "chatbot": {
            "kind": "http", "url": "http://127.0.0.1:9/chat", "request": {"text": "{message}", "n": [1, True, "é\n"]},
            "reply": "$.text",
        },
        "seed": 7,
    },
}  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_config_makes_a_run_of_the_same_identity(make: MakePlan, tmp_path: Path, config: dict[str, Any]) -> None:
    plan = make_plan(load_config(None, {}, {"out": str(tmp_path / "run"), **config}))
    plan.out.mkdir()
    manifest.enter(plan)
    manifest.enter_judges(plan)
    begun = manifest.read(plan.out)
    assert begun is not None
    made = again(begun)
    (tmp_path / CONFIG).write_text(made.config, encoding="utf-8")
    assert shlex.split(made.commands[0]) == ["vera-local", "run", "--config", CONFIG, "--out", "NEW"]
    (tmp_path / "again").mkdir()
    plan_again = make_plan(load_config(tmp_path / CONFIG, {"out": tmp_path / "again"}))
    manifest.enter(plan_again)
    manifest.enter_judges(plan_again)
    other = manifest.read(plan_again.out)
    assert other is not None
    assert (other["identity"], other["judges"]) == (begun["identity"], begun["judges"])


def test_a_judge_with_several_servers_keeps_them_all() -> None:
    judge = {"model": "m", "url": ["http://a/v1", "http://b/v1"]}
    made = again({"identity": {"imported": {}}, "judges": {}, "config": {"bundle": "b", "judge": [judge]}})
    assert made.commands[-1] == "vera-local judge NEW --judge m@http://a/v1,http://b/v1"


def test_judges_of_imported_conversations_have_their_options() -> None:
    judge = {
        "model": "m x", "url": "http://127.0.0.1:9/v1", "mode": "reason", "repeats": 2, "window": True,
        "evidence": False, "confidence": True,
    }  # fmt: skip
    config = {"bundle": "suicide_risk", "target": None, "end_semantics": "legacy", "judge": [judge], "out": "x"}
    made = again({"identity": {"imported": {"a.txt": "d"}}, "judges": {"m x": {}}, "config": config})
    assert made.config == ""
    assert made.commands == (
        "vera-local import THE_FILES_BELOW --bundle suicide_risk --end-semantics legacy --out NEW",
        "vera-local judge NEW --judge 'm x@http://127.0.0.1:9/v1' --judge-mode reason --judge-repeats 2"
        " --judge-window --no-evidence",
    )
