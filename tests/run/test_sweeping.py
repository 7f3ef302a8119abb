"""Whole sweeps on engines without a model: nothing is loaded, said or judged twice, and each run is as if alone."""

from __future__ import annotations

import asyncio
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.answers import at_random, dying
from tests.run.test_one_gpu import Opened as Sleepers
from tests.run.test_one_gpu import checks, on
from tests.run.test_side_by_side import contents, judges, of_run
from vera_local.chatbot import ChatbotDown
from vera_local.engine.placement import Residency
from vera_local.engine.probe import SEED as PROBE
from vera_local.engine.seam import EngineDied, EngineLost, Request
from vera_local.errors import UserError
from vera_local.run import Watcher, load_config, make_plan, manifest, run
from vera_local.run.failure import own_fault
from vera_local.run.folder import locked
from vera_local.run.store import Store
from vera_local.run.sweep_compared import compare_points
from vera_local.run.sweep_file import Asked, read_sweep
from vera_local.run.sweep_notes import NAME, State
from vera_local.run.sweep_plan import outlook
from vera_local.run.sweeping import sweep

Answering = Callable[..., Any]
Write = Callable[..., Asked]
A, B, S, J = "qwen3-8b", "qwen3-32b-fp8", "qwen3-14b", "smollm2-135m-instruct"
THREE = [J, {"model": J, "mode": "reason", "max_tokens": 20}, f"{A}"]
DOWN = {"kind": "http", "name": "down", "url": "http://127.0.0.1:9/t", "request": {"all": "{history}"}, "reply": "r"}


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + "}"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Makes a sweep of two chatbots in a folder of its own, with other axes and keys as told."""

    def make(out: str = "sweep", **keys: Any) -> Asked:
        axes = {"chatbots": [A, B], "simulators": [S], "judges": THREE} | keys
        own = {key: axes.pop(key) for key in ("chatbots", "simulators", "judges", "seeds", "bundles") if key in axes}
        same = "".join(f"{key} = {toml(value)}\n" for key, value in ({"personas": 3, "turns": 4} | axes).items())
        text = "".join(f"{key} = {toml(value)}\n" for key, value in own.items())
        file = tmp_path / f"{out}.toml"
        file.write_text(f"{same}[sweep]\nout = {toml(str(tmp_path / out))}\n{text}", encoding="utf-8")
        return read_sweep(file)

    return make


async def alone(asked: Asked, opener: Any, watcher: Watcher, folder: Path) -> dict[str, Any]:
    """What each point's run holds when `run` makes it from the same config."""
    found = {}
    for point in asked.points:
        config = json.loads(point.plan.config.model_dump_json()) | {"out": str(folder / point.name)}
        plan = make_plan(load_config(None, {}, config))
        await run(plan, opener, watcher)
        found[point.name] = contents(plan)
    return found


def held(asked: Asked) -> dict[str, Any]:
    return {point.name: contents(point.plan) for point in asked.points}


def states(asked: Asked) -> dict[str, str]:
    told = json.loads((asked.out / NAME).read_text(encoding="utf-8"))
    return {name: its["state"] for name, its in told["points"].items()}


@pytest.mark.parametrize(
    ("gpu", "ram", "residency"),
    [(1000, 1000, Residency.TOGETHER), (120, 1000, Residency.STAGES), (100, 1, Residency.RELOAD)],
)
def test_each_model_is_loaded_once_and_each_run_is_as_if_made_alone(
    write: Write, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpu: int, ram: int,
    residency: Residency,
) -> None:  # fmt: skip
    on(monkeypatch, gpu, ram)
    several = [J, {"model": J, "mode": "reason", "max_tokens": 20}]
    asked, opener = write(judges=several, seeds=[0, 1], check_personas=True), Sleepers()
    expected = {one.model: one.times for one in outlook(asked).loadings}
    swept = asyncio.run(sweep(asked, opener, watcher))
    assert (len(swept.done), swept.failed, swept.removed) == (4, {}, ())
    assert Counter(opener.opened) == Counter(expected) == Counter([A, B, S, J])
    begun = manifest.read(asked.points[0].plan.out)
    assert begun is not None and begun["residency"]["choice"] == residency
    assert all(engine.closed for engine in opener.engines)
    assert [checks(point.plan) for point in asked.points] == [3] * 4
    on(monkeypatch, 1000, 1000)
    assert held(asked) == asyncio.run(alone(asked, Sleepers(), watcher, tmp_path / "alone"))


async def test_conversations_are_held_once_though_three_judges_rate_them(
    write: Write, answering: Answering, watcher: Watcher
) -> None:
    asked, opener = write(), answering(at_random)
    await sweep(asked, opener, watcher)
    said = [r for r in of_run(opener.requests) if r.pattern is None and not judges(r)]
    runs = held(asked).values()
    assert len(said) == sum(len(one["messages"]) for one in runs) > 0
    for one in runs:
        assert {judge for _, judge, *_ in one["ratings"]} == {J, f"{J}:reason", A}


async def test_a_sweep_that_stops_again_and_again_doubles_nothing(
    write: Write, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    asked, draw, deaths, before = write(), random.Random(4), 0, dict[str, Any]()
    while True:
        engine = dying(draw.randrange(20, 120))
        try:
            await sweep(asked, answering(engine), watcher)
        except EngineDied:
            deaths += 1
        else:
            break
        now = {p.name: contents(p.plan) for p in asked.points if (p.plan.out / "run.sqlite").exists()}
        for name, kept in before.items():
            assert all(set(kept[table]) <= set(now[name][table]) for table in ("messages", "verdicts", "ratings"))
        before = now
    assert deaths > 2
    assert held(asked) == await alone(asked, answering(at_random), watcher, tmp_path / "alone")
    assert set(states(asked).values()) == {State.DONE}
    idle = answering(at_random)
    await sweep(asked, idle, watcher)
    assert idle.openings == [], "there was nothing left to do"


async def test_a_lost_engine_is_opened_anew_for_all_runs_and_nothing_kept_is_asked_again(
    write: Write, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    asked, left = write(judges=[J], turns=10), 10

    async def once_lost(request: Request) -> str:
        nonlocal left
        left -= request.sampling.seed != PROBE
        mine = left
        await asyncio.sleep(0)
        if mine == 0 and request.sampling.seed != PROBE:
            raise EngineLost("the engine's process ended")
        return at_random(request)

    opener = answering(once_lost)
    swept = await sweep(asked, opener, watcher)
    assert len(swept.done) == 2
    assert Counter(one.player.profile.name for one in opener.openings) == dict.fromkeys((A, B, S, J), 2)
    assert held(asked) == await alone(asked, answering(at_random), watcher, tmp_path / "alone")
    with Store.open(asked.points[0].plan.out) as store:
        assert [session.restarts for session in store.used.sessions()] == [1]
    said = [r for r in of_run(opener.requests) if r.pattern is None and not judges(r)]
    again = len(said) - sum(len(its["messages"]) for its in held(asked).values())
    assert 0 < again <= 6, "no more than was under way in one turn of each conversation"


async def test_a_chatbot_that_is_down_leaves_the_others_whole_and_is_tried_again(
    write: Write, answering: Answering, watcher: Watcher
) -> None:
    asked = write(chatbots=[DOWN, A], seeds=[0, 1])
    swept = await sweep(asked, answering(at_random), watcher)
    assert [name.split("--")[0] for name in swept.done] == [A, A]
    assert [name.split("--")[0] for name in swept.failed] == ["down", "down"]
    assert all("no chatbot answers at http://127.0.0.1:9" in reason for reason in swept.failed.values())
    (one,) = compare_points(asked, swept.done)
    assert one.compared is None and "is alone there" in one.why
    opener = answering(at_random)
    again = await sweep(asked, opener, watcher)
    assert again == swept
    assert of_run(opener.requests) == []


async def test_a_chatbot_that_never_answers_is_told_without_a_word_of_it(
    write: Write, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    program = "import sys; sys.exit('I am ill')"
    silent = {"kind": "command", "name": "silent", "command": [sys.executable, "-c", program], "retries": 0}
    asked = write(chatbots=[silent, A], judges=[J])
    swept = await sweep(asked, answering(at_random), watcher)
    (reason,) = swept.failed.values()
    assert reason.startswith("no conversation could be judged; see vera-local show")
    assert "ill" not in (asked.out / NAME).read_text(encoding="utf-8")
    assert len(swept.done) == 1


class Failing:
    """A chatbot that is down after so many replies."""

    left = 0

    def __call__(self, message: str, history: object) -> str:
        Failing.left -= 1
        if Failing.left < 0:
            raise ValueError("I am ill")
        return f"reply to {message}"


async def test_a_chatbot_that_goes_down_in_the_middle_ends_no_other_run(
    write: Write, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failing, "left", 20)
    table = {"kind": "python", "name": "failing", "factory": f"{__name__}:Failing", "remembers": False, "retries": 0}
    asked = write(chatbots=[table, A, B], judges=[J], personas=30)
    swept = await sweep(asked, answering(at_random), watcher)
    assert [name.split("--")[0] for name in swept.done] == [A, B]
    (reason,) = swept.failed.values()
    assert reason.startswith("the chatbot is down")
    assert "I am ill" not in (asked.out / NAME).read_text(encoding="utf-8")
    kept = contents(asked.points[0].plan)["messages"]
    assert sum(speaker == "chatbot" for _, _, speaker, *_ in kept) == 20
    monkeypatch.setattr(Failing, "left", 10**6)
    assert len((await sweep(asked, answering(at_random), watcher)).done) == 3
    whole = contents(asked.points[0].plan)
    assert set(kept) <= set(whole["messages"])
    assert Counter(ending for _, ending in whole["endings"]) == {"turns": 30}


def test_an_engine_that_dies_beside_a_chatbot_that_is_down_concerns_all() -> None:
    both = ExceptionGroup("", [ChatbotDown("down"), ExceptionGroup("", [EngineDied("gone")])])
    with pytest.raises(ExceptionGroup):
        own_fault(both)


async def test_a_run_that_another_process_holds_fails_alone(
    write: Write, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = write(seeds=[0, 1], judges=[J])
    taken = asked.points[0].plan.out

    def busy(folder: Path) -> Any:
        if folder == taken:
            raise UserError(f"{folder} is in use by another process; wait for it or name another --out")
        return locked(folder)

    monkeypatch.setattr("vera_local.run.evaluate.locked", busy)
    swept = await sweep(asked, answering(at_random), watcher)
    assert list(swept.failed) == [asked.points[0].name]
    assert list(swept.done) == [point.name for point in asked.points[1:]]
    (one,) = compare_points(asked, swept.done)
    assert one.compared is not None
    assert [side.conversations for side in one.compared.judges[0].comparison.sides.values()] == [3, 6]
    assert one.compared.notes[0] == f"Runs of the sweep that are not done, and missing here: {asked.points[0].name}."
    monkeypatch.setattr("vera_local.run.evaluate.locked", locked)
    (whole,) = compare_points(asked, (await sweep(asked, answering(at_random), watcher)).done)
    assert whole.compared is not None and "missing" not in " ".join(whole.compared.notes)


async def test_points_can_come_and_go_and_nothing_is_deleted(
    write: Write, answering: Answering, watcher: Watcher
) -> None:
    first = write(chatbots=[A], seeds=[0])
    await sweep(first, answering(at_random), watcher)
    kept, opener = held(first), answering(at_random)
    more = write(chatbots=[A, B], seeds=[0])
    assert [bool(left) for _, left in outlook(more).left] == [False, True]
    await sweep(more, opener, watcher)
    assert {one.player.profile.name for one in opener.openings} == {S, B, J, A}
    assert held(first) == kept
    fewer, idle = write(chatbots=[B], seeds=[0]), answering(at_random)
    assert outlook(fewer).removed == (first.points[0].name,)
    swept = await sweep(fewer, idle, watcher)
    assert (swept.removed, idle.openings) == ((first.points[0].name,), [])
    assert held(first) == kept
    assert states(fewer) == {first.points[0].name: State.REMOVED, fewer.points[0].name: State.DONE}
    back = await sweep(more, idle, watcher)
    assert len(back.done) == 2 and back.removed == () and idle.openings == []


async def test_a_further_judge_rates_what_there_is(write: Write, answering: Answering, watcher: Watcher) -> None:
    await sweep(write(judges=[J]), answering(at_random), watcher)
    said, opener = {n: its["messages"] for n, its in held(write()).items()}, answering(at_random)
    await sweep(write(), opener, watcher)
    assert all(r.pattern is not None or judges(r) for r in of_run(opener.requests))
    assert {n: its["messages"] for n, its in held(write()).items()} == said


async def test_a_point_that_was_changed_is_refused_before_anything_is_opened(
    write: Write, answering: Answering, watcher: Watcher
) -> None:
    await sweep(write(), answering(at_random), watcher)
    opener = answering(at_random)
    with pytest.raises(UserError, match="turns was 4, now 6; give what was changed another `name`"):
        await sweep(write(turns=6), opener, watcher)
    assert opener.openings == []


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2}', '{"schema": 1, "points": {"a": {"state": "odd"}}}'])
async def test_damaged_notes_are_told_and_can_be_made_again(
    write: Write, answering: Answering, watcher: Watcher, text: str
) -> None:
    asked = write()
    await sweep(asked, answering(at_random), watcher)
    (asked.out / NAME).write_text(text)
    with pytest.raises(UserError, match=r"sweep\.json: damaged or of another version; remove it"):
        await sweep(asked, answering(at_random), watcher)
    (asked.out / NAME).unlink()
    idle = answering(at_random)
    assert len((await sweep(asked, idle, watcher)).done) == 2 and idle.openings == []
    assert set(states(asked).values()) == {State.DONE}


async def test_a_sweep_goes_on_with_runs_that_were_made_one_by_one(
    write: Write, answering: Answering, watcher: Watcher
) -> None:
    asked = write(judges=[J])
    await run(asked.points[0].plan, answering(at_random), watcher)
    kept, opener = contents(asked.points[0].plan), answering(at_random)
    assert len((await sweep(asked, opener, watcher)).done) == 2
    assert contents(asked.points[0].plan) == kept
    assert A not in {one.player.profile.name for one in opener.openings}


async def test_what_is_beside_runs_and_nobody_knows_is_told(
    write: Write, answering: Answering, watcher: Watcher
) -> None:
    asked = write(judges=[J])
    for name in (asked.points[0].name, "pools", ".sweep.json.x1", ".comparison-b.json.y2", "comparison-b.html"):
        (asked.out / name).mkdir(parents=True)
    (asked.out / "engine.log").touch()
    (asked.out / "letters").mkdir()
    with pytest.raises(UserError, match=r"holds other files \(letters\) and no sweep"):
        await sweep(asked, answering(at_random), watcher)
    (asked.out / "letters").rmdir()
    assert len((await sweep(asked, answering(at_random), watcher)).done) == 2


async def test_the_comparison_holds_every_run_and_keeps_simulators_apart(
    write: Write, answering: Answering, watcher: Watcher
) -> None:
    asked = write(simulators=[S, J], seeds=[0, 1], judges=[J, f"{J}@http://127.0.0.1:9/v1"][:1])
    swept = await sweep(asked, answering(at_random), watcher)
    (one,) = compare_points(asked, swept.done)
    assert one.compared is not None
    sides = [f"{chatbot}--{simulator}--suicide_risk--seeds0+1" for chatbot in (A, B) for simulator in (S, J)]
    assert list(one.compared.folders) == sides
    (rated,) = one.compared.judges
    assert all(side.conversations == 6 for side in rated.comparison.sides.values())
    assert compare_points(asked, swept.done) == [one], "pools can be made again"


async def test_several_bundles_are_compared_one_by_one(write: Write, answering: Answering, watcher: Watcher) -> None:
    asked = write(bundles=["psychosis", {"name": "suicide_risk", "turns": 2}], turns=2, judges=[J])
    swept = await sweep(asked, answering(at_random), watcher)
    compared = compare_points(asked, swept.done)
    assert [one.bundle for one in compared] == ["psychosis", "suicide_risk"]
    assert all(one.compared is not None and len(one.compared.folders) == 2 for one in compared)


async def test_judges_are_tried_once_and_runs_are_told_by_name(write: Write, answering: Answering) -> None:
    seen, opener = io.StringIO(), answering(at_random)
    asked = write(judges=[J], seeds=[0, 1, 2])
    await sweep(asked, opener, Watcher(Console(file=seen, width=300)))
    alone = answering(at_random)
    await run(
        make_plan(asked.points[0].plan.config.model_copy(update={"out": asked.out / "x"})),
        alone,
        Watcher(Console(file=seen)),
    )
    probes = [len(one.requests) - len(of_run(one.requests)) for one in (opener, alone)]
    assert probes[0] == probes[1] > 0
    for point in asked.points:
        assert f"{point.name}: Simulating: 3/3 done" in seen.getvalue()


async def test_each_run_is_an_ordinary_one_and_private(write: Write, answering: Answering, watcher: Watcher) -> None:
    asked = write()
    await sweep(asked, answering(at_random), watcher)
    assert (asked.out / NAME).stat().st_mode & 0o777 == 0o600
    assert asked.out.stat().st_mode & 0o777 == 0o700
    idle = answering(at_random)
    await run(asked.points[0].plan, idle, watcher)
    assert idle.openings == [], "`run` finds nothing left of it"
    assert all(point.plan.out.stat().st_mode & 0o777 == 0o700 for point in asked.points)
