"""A whole small evaluation on the transformers engine with a tiny random model, and how that engine is chosen."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.run.held import held
from vera_local.engine.offline import SWITCHES
from vera_local.engine.placement import ANYWHERE
from vera_local.engine.profile import find_profile
from vera_local.engine.vllm import _start
from vera_local.errors import UserError
from vera_local.run import Plan, Watcher, key_of, load_config, make_plan, manifest, opener, run
from vera_local.run.identities import fingerprint, identity, judge_identity

MakePlan = Callable[..., Plan]


@pytest.fixture
def tiny_plan(tiny_model_folder: Path, tmp_path: Path) -> MakePlan:
    torch.set_num_threads(1)
    speaker = {"model": str(tiny_model_folder), "max_tokens": 12}

    def plan(**flags: Any) -> Plan:
        given = {"out": tmp_path / "run", "personas": 2, "turns": 4, "engine": "transformers", "seed": 5}
        roles = {"simulator": speaker, "chatbot": speaker, "judge": {"model": str(tiny_model_folder)}}
        return make_plan(load_config(None, given | roles | flags))

    return plan


async def test_a_whole_evaluation_ends_with_ratings(tiny_plan: MakePlan, watcher: Watcher) -> None:
    plan = tiny_plan()
    outcome = await run(plan, opener(plan.out / "engine.log"), watcher)
    assert len(outcome.conversations) == 2
    assert all(len(c.messages) == 4 and all(m.text.strip() for m in c.messages) for c in held(outcome))
    (scores,) = outcome.scores.values()
    assert scores.conversations == 2
    assert sum(total.total for total in scores.dimensions.values()) == 2 * len(plan.bundle.rubric.dimensions)
    assert all(total.unrated == 0 for total in scores.dimensions.values())
    identity = json.loads((plan.out / manifest.NAME).read_text())["identity"]
    assert identity["chatbot"]["host"] == identity["simulator"]["host"] == "transformers"


async def test_the_same_seed_gives_the_same_conversations(
    tiny_plan: MakePlan, watcher: Watcher, tmp_path: Path
) -> None:
    plans = [tiny_plan(out=tmp_path / name, seed=seed) for name, seed in (("a", 5), ("b", 5), ("c", 6))]
    told = []
    for plan in plans:
        outcome = await run(plan, opener(plan.out / "engine.log"), watcher, judge=False)
        told.append([m.text for c in held(outcome) for m in c.messages])
    assert told[0] == told[1] != told[2]


def test_the_engine_is_a_part_of_what_a_run_is(tiny_plan: MakePlan) -> None:
    here, there = tiny_plan(), tiny_plan(engine="vllm")
    assert key_of(here.judges[0].player) != key_of(there.judges[0].player)
    assert fingerprint(identity(here)) != fingerprint(identity(there))


def test_a_served_model_has_no_engine_of_ours(tiny_plan: MakePlan) -> None:
    served = {"model": "m", "url": "http://gpu-box:8000/v1"}
    here, there = (tiny_plan(judge=served, engine=engine) for engine in ("transformers", "vllm"))
    assert key_of(here.judges[0].player) == key_of(there.judges[0].player)
    assert judge_identity(here.judges[0]) == judge_identity(there.judges[0])


def test_an_unknown_engine_is_told() -> None:
    with pytest.raises(UserError, match="--engine mlx: must be 'vllm' or 'transformers'"):
        load_config(None, {"engine": "mlx"})


def test_without_vllm_the_other_engine_is_named(
    tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SWITCHES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("vera_local.engine.vllm._prepare_environment", lambda: None)
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(UserError, match=r"vLLM cannot be imported .* --engine transformers"):
        _start(find_profile(str(tiny_model_folder)), tiny_model_folder, tmp_path / "log", ANYWHERE)


def test_the_engine_is_imported_without_what_it_needs() -> None:
    code = (
        "import sys; import vera_local.engine.hf; "
        "print({'torch', 'transformers', 'outlines_core', 'vllm'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
