"""The work behind a run comes from its store and its manifest, and costs what is asked for nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.simulate.test_converse import ANN, NEW, SIGNAL, Stage, lines
from vera_local.conversation import Conversation, Ending
from vera_local.engine.seam import Usage
from vera_local.errors import UserError
from vera_local.report.usage import SessionRow, UsageRow
from vera_local.run.ledger import Ledger
from vera_local.run.manifest import NAME as MANIFEST
from vera_local.run.manifest import SCHEMA
from vera_local.run.stats import cost_of, work_of
from vera_local.run.store import Store
from vera_local.run.used import Used
from vera_local.simulate import Said, Simulator, converse


def make_run(folder: Path, sessions: int, **hardware: Any) -> Path:
    """A run of two conversations, one of which ended, in so many sessions."""
    identity = {"bundle": {"name": "b", "version": "1", "files": {}}}
    begun = {"schema": SCHEMA, "identity": identity, "judges": {}, "config": {}, "hardware": hardware}
    (folder / MANIFEST).write_text(json.dumps(begun), encoding="utf-8")
    with Store.open(folder) as store:
        store.begin([Conversation("a-1", "a", 1), Conversation("b-1", "b", 1), Conversation("c-1", "c", 1)])
        store.end("a-1", Ending.TURNS, "")
        store.end("b-1", Ending.ERROR, "a hiccup")
        for _ in range(sessions):
            session = SessionRow(store.used.begin("2026-01-01"), "2026-01-01", 1800, 900, None, None)
            row = UsageRow(session.session, "judge", "judge", "m", 1, 0, 0, Usage(4, 0, 3), 4, Usage(4, 0, 3), 900)
            store.used.save(session, (), (row,))
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
    folder = make_run(tmp_path, 0, device="cuda", gpus=1)
    with Store.open(folder) as store:
        store.used.begin("a session that found nothing left to do")
    work = work_of(folder)
    assert work.rows == ()
    with pytest.raises(UserError, match="kept no record of its time"):
        cost_of(work, 2.0, 1)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run"):
        work_of(tmp_path)


def test_a_store_tells_nothing_of_a_record_it_has_not(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        assert isinstance(store.used, Used)
        assert (store.used.sessions(), store.used.stages(), store.used.rows()) == ((), (), ())


async def test_tries_that_left_no_message_are_in_the_record(tmp_path: Path) -> None:
    """Of a persona that first speaks as a helper, then goes without a word: the store has no place for a goodbye."""
    stage = Stage(lines("How can I help you today?", "I feel low.", SIGNAL), lines("I hear you."))
    identity = {"bundle": {"name": "b", "version": "1", "files": {}}}
    begun = {"schema": SCHEMA, "identity": identity, "judges": {}, "config": {}}
    (tmp_path / MANIFEST).write_text(json.dumps(begun), encoding="utf-8")
    with Store.open(tmp_path) as store, Ledger(store) as ledger, ledger.stage("simulate"):
        store.begin([NEW])

        def record(turn: int, said: Said) -> None:
            store.add_message(NEW.id, turn, said)
            if turn % 2:
                ledger.kept("simulate", "simulator", "m", said.usage)

        assert isinstance(stage.setting.simulator, Simulator)
        metered = ledger.metered(stage.simulator_engine, "simulate", "simulator", "m")
        simulator = replace(stage.setting.simulator, engine=metered)
        ended = await converse(replace(stage.setting, simulator=simulator), ANN, NEW, record)
        assert ended.conversation.ending is Ending.PERSONA
    work = work_of(tmp_path)
    (simulator_s,) = work.places
    helper, goodbye = 6, len(SIGNAL.split())
    assert simulator_s.requests == 3
    assert simulator_s.usage.output - simulator_s.kept.output == helper + goodbye
    assert simulator_s.unused == simulator_s.usage.prompt - simulator_s.kept.prompt + helper + goodbye
    assert work.stored["simulator"].output == 3, "what the messages alone tell"
