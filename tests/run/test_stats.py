"""The work behind a run comes from its store and its manifest, and costs what is asked for nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vera_local.conversation import Conversation, Ending
from vera_local.errors import UserError
from vera_local.run.manifest import NAME as MANIFEST
from vera_local.run.manifest import SCHEMA
from vera_local.run.stats import cost_of, work_of
from vera_local.run.store import Store
from vera_local.run.used import Used


def make_run(folder: Path, sessions: int, **hardware: Any) -> Path:
    """A run of two conversations, one of which ended, in so many sessions."""
    begun = {"schema": SCHEMA, "identity": {}, "judges": {}, "config": {}, "hardware": hardware}
    (folder / MANIFEST).write_text(json.dumps(begun), encoding="utf-8")
    with Store.open(folder) as store:
        store.begin([Conversation("a-1", "a", 1), Conversation("b-1", "b", 1), Conversation("c-1", "c", 1)])
        store.end("a-1", Ending.TURNS, "")
        store.end("b-1", Ending.ERROR, "a hiccup")
        for _ in range(sessions):
            _ = store.used.begin("2026-01-01T00:00:00+00:00")
            store._db.execute("update sessions set wall_s = 1800")
    return folder


def test_gpus_are_those_of_the_run_s_machine_or_those_told(tmp_path: Path) -> None:
    work = work_of(make_run(tmp_path, 2, device="cuda", gpus=4))
    cost = cost_of(work, 2.0, None)
    assert (cost.hours, cost.gpus, cost.total, cost.conversations) == (1, 4, 8, 1)
    assert cost_of(work, 2.0, 1).total == 2


def test_no_cost_is_made_up_for_a_run_without_a_gpu(tmp_path: Path) -> None:
    work = work_of(make_run(tmp_path, 1, device="cpu", gpus=0))
    with pytest.raises(UserError, match=r"the price of one GPU for an hour, and .* names no GPU; .* --gpus"):
        cost_of(work, 2.0, None)
    assert cost_of(work, 2.0, 2).total == 2


def test_no_cost_is_made_up_for_a_run_without_a_record(tmp_path: Path) -> None:
    work = work_of(make_run(tmp_path, 0, device="cuda", gpus=1))
    assert work.sessions == ()
    with pytest.raises(UserError, match="kept no record of its time"):
        cost_of(work, 2.0, 1)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run"):
        work_of(tmp_path)


def test_a_store_tells_nothing_of_a_record_it_has_not(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        assert isinstance(store.used, Used)
        assert (store.used.sessions(), store.used.stages(), store.used.rows()) == ((), (), ())
