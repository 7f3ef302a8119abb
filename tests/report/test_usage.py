"""What the record of a run's work comes to, in numbers and in words."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping

import pytest
from rich.console import Console

from vera_local.engine.seam import NO_USAGE, Usage
from vera_local.report.usage import SessionRow, StageRow, UsageRow, Work, as_json
from vera_local.report.usage_terminal import recorded, short, unrecorded

SESSIONS = (
    SessionRow(1, "2026-01-01T00:00:00+00:00", 100, 70, 3_000_000_000, None),
    SessionRow(2, "", 20, 5, None, 5 * 10**9),
)
STAGES = (StageRow(1, "simulate", 60, 45), StageRow(1, "judge", 30, 30), StageRow(2, "judge", 10, 5))


def row(session: int, stage: str, role: str, usage: Usage, kept: Usage, **others: int) -> UsageRow:
    counts = {"requests": 10, "failed": 1, "aborted": 2, "distinct": 100, "busy_s": 5} | others
    return UsageRow(session=session, stage=stage, role=role, model="m", usage=usage, kept=kept, **counts)


ROWS = (
    row(1, "simulate", "simulator", Usage(400, 200, 100), Usage(400, 200, 100)),
    row(1, "simulate", "chatbot", NO_USAGE, Usage(70, 0, 30), requests=0, failed=0, aborted=0, distinct=0, busy_s=0),
    row(1, "judge", "judge", Usage(1000, 700, 60), Usage(800, 650, 50)),
    row(2, "judge", "judge", Usage(100, 0, 6), Usage(100, 0, 6), failed=0, aborted=0, distinct=50),
)
STORED = {"simulator": Usage(400, 200, 100), "chatbot": Usage(70, 0, 30), "judge": Usage(900, 650, 56)}


def work(rows: tuple[UsageRow, ...] = ROWS, stored: Mapping[str, Usage] = STORED) -> Work:
    return Work(SESSIONS, STAGES, rows, stored, ended=4, gpus=0)


def shown(*parts: object) -> str:
    console = Console(file=io.StringIO(), width=80)
    for part in parts:
        console.print(part, markup=False, soft_wrap=isinstance(part, str))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_sessions_are_added_up() -> None:
    judge = work().places[2]
    assert (judge.requests, judge.failed, judge.aborted, judge.distinct, judge.busy_s) == (20, 1, 2, 150, 10)
    assert (judge.usage, judge.kept) == (Usage(1100, 700, 66), Usage(900, 650, 56))
    assert [(s.stage, s.wall_s, s.busy_s) for s in work().whole_stages] == [("simulate", 60, 45), ("judge", 40, 35)]
    assert (work().wall_s, work().peak_memory_bytes, work().peak_gpu_bytes) == (120, 3 * 10**9, 5 * 10**9)
    assert (work().total.requests, work().total.busy_s) == (30, 75), "engines that work at once are busy once"


def test_the_order_is_that_of_the_work_whatever_was_entered_first() -> None:
    """Judges are tried before the first conversation begins."""
    turned = Work(SESSIONS, STAGES[::-1], ROWS[::-1], STORED, ended=4, gpus=0)
    assert [(r.stage, r.role) for r in turned.places] == [
        ("simulate", "simulator"),
        ("simulate", "chatbot"),
        ("judge", "judge"),
    ]
    assert [s.stage for s in turned.whole_stages] == ["simulate", "judge"]


def test_what_was_asked_and_not_kept_is_unused() -> None:
    """Cached tokens were not worked for, so they are not lost either."""
    simulator, chatbot, judge = work().places
    assert judge.unused == (400 + 66) - (250 + 56)
    assert simulator.unused == 0
    assert (chatbot.tokens, chatbot.unused) == (Usage(70, 0, 30), 0), "what another's chatbot told of"


def test_ratios_of_nothing_are_none() -> None:
    simulator, chatbot, judge = work().places
    assert judge.amplification == pytest.approx(400 / 150)
    assert judge.rate == pytest.approx(466 / 10)
    assert (chatbot.amplification, chatbot.rate) == (None, None)
    assert (simulator.amplification, simulator.rate) == (2, 60)


def test_the_tables_hold_every_number() -> None:
    text = shown(*recorded(work()))
    for cells in (
        "judge: judge 20 1 2 1100 63.6% 66 160",
        "simulate: simulator 10 1 2 400 50.0% 100 0",
        "simulate: chatbot - - - 70 0.0% 30 0",
        "all 30 2 4 1500",
        "judge: judge 400 150 2.67 10 s 25.0% 47",
        "all 600 250 2.40 1 min 15 s 62.5% 10",
        "Wall time: 2 min 00 s in 2 sessions",
        "simulate: 1 min 00 s, engines busy 75.0% of it",
        "judge: 40 s, engines busy 87.5% of it",
        "Peak memory: 3.00 GB",
        "Peak GPU memory: 5.00 GB",
    ):
        assert cells in " ".join(text.split()), cells
    assert "No cached tokens were told" not in text
    assert "without a record" not in text
    assert all(len(line) <= 80 for line in text.splitlines() if "%" in line and "  " in line)


def test_a_host_that_tells_no_cached_tokens_is_named() -> None:
    silent = work((row(1, "judge", "judge", Usage(100, 0, 66), NO_USAGE),))
    assert "No cached tokens were told of by the host of judge (m)" in shown(*recorded(silent))


def test_what_was_done_before_there_was_a_record_is_told_by_the_store() -> None:
    old = shown(*recorded(work(ROWS[2:])))
    assert "without a record" in old
    assert "simulator: 400 prompt tokens (200 cached), 100 written" in old
    text = shown(*unrecorded(work(())))
    assert "No usage was recorded: this run was made by a version that kept no account of it" in text
    assert "judge: 900 prompt tokens (650 cached), 56 written" in text


def test_another_s_chatbot_without_a_record_is_no_gap() -> None:
    assert work(ROWS[:1] + ROWS[2:]).gaps == ()
    assert work(ROWS[:1]).gaps == ("judge",)


def test_json_holds_each_session_and_all_together() -> None:
    told = json.loads(json.dumps(as_json(work())))
    assert [s["session"] for s in told["sessions"]] == [1, 2]
    assert [len(s["usage"]) for s in told["sessions"]] == [3, 1]
    assert [s["stage"] for s in told["sessions"][1]["stages"]] == ["judge"]
    judge = told["usage"][2]
    assert judge["tokens"] == {"prompt": 1100, "cached": 700, "output": 66}
    assert judge["kept"] == {"prompt": 900, "cached": 650, "output": 56}
    assert (judge["unused"], judge["busy_s"], told["total"]["requests"], told["wall_s"]) == (160, 10, 30, 120)
    assert told["conversations"] == 4


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (9_999, "9999"), (10_000, "10 k"), (999_400, "999 k"), (1_234_567, "1.2 M")]
)
def test_counts_are_short(count: int, text: str) -> None:
    assert short(count) == text
