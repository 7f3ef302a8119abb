"""kill -9 at any moment, then the same command: nothing finished is lost or asked again, and the result is the same."""

from __future__ import annotations

import itertools
import random
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request

from tests.chatbot.serving import Served
from tests.faults import Killed, KilledAnywhere
from tests.kept import Contents, contents, finished_seeds, must_be_the_same, must_hold
from tests.victims import Plot, Victims
from vera_local.seed import derive

SEED = 7
FLAGS = ("run", "--personas", "2", "--turns", "4", "--seed", str(SEED))
JUDGES = ("--judge", "smollm2-135m-instruct", "--judge", "second@http://127.0.0.1:9/v1", "--out")
KILLS = 100
TOGETHER = 2
"""Runs that are killed at the same time."""

MOMENTS = ("begins", "talks", "judges", "publishes")


@pytest.fixture
def undisturbed(tmp_path: Path) -> Path:
    """The folder of a run that nothing happens to, beside the number of its `events`."""
    folder = tmp_path / "calm" / "run"
    folder.parent.mkdir()
    assert Victims(folder.parent).run(KilledAnywhere(), *FLAGS, *JUDGES, str(folder)).code == 0
    return folder


def how_far(kept: Contents) -> str:
    """What was under way when a run with this in its store was killed."""
    if not kept["messages"]:
        return "begins"
    if not kept["verdicts"]:
        return "talks"
    return "judges" if len(kept["ratings"]) < 2 * 2 * 5 else "publishes"


def killed_until_it_ends(undisturbed: Path, place: Path, seed: int) -> Counter[str]:
    """Kill a run again and again, at events that the seed draws; what was under way each time."""
    folder, victims, draw, killed = place / "run", Victims(place), random.Random(seed), Counter[str]()
    events = int((undisturbed.parent / "events").read_text())
    ended = -signal.SIGKILL
    while ended == -signal.SIGKILL:
        before = contents(folder)
        ended = victims.run(KilledAnywhere(draw.randint(1, events // 2)), *FLAGS, *JUDGES, str(folder)).code
        asked = victims.seeds()
        assert len(asked) == len(set(asked)), "something was asked for twice"
        assert not finished_seeds(before, SEED) & set(asked), "what was finished was asked for again"
        must_hold(folder, before)
        killed[how_far(contents(folder))] += ended != 0
    assert ended == 0
    must_be_the_same(folder, undisturbed)
    return killed


def test_a_hundred_kills_lose_nothing_and_nothing_is_asked_twice(tmp_path: Path, undisturbed: Path) -> None:
    killed, seeds = Counter[str](), itertools.count()
    with ThreadPoolExecutor(TOGETHER) as together:
        while killed.total() < KILLS:
            some = [*itertools.islice(seeds, TOGETHER)]
            places = [tmp_path / str(seed) for seed in some]
            for place in places:
                place.mkdir()
            for found in together.map(partial(killed_until_it_ends, undisturbed), places, some):
                killed += found
    assert all(killed[moment] >= 5 for moment in MOMENTS), killed


def repeats_seeds(log: Path) -> FastAPI:
    """A service that remembers nothing and writes down every seed before it replies."""
    app = FastAPI()

    @app.post("/talk")
    async def talk(request: Request) -> Any:
        body = await request.json()
        with log.open("a") as file:
            file.write(f"{body['seed']}\n")
        return {"reply": f"reply {body['seed']} to {body['text']}"}

    return app


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What a service was asked."""
    (tmp_path / "log").touch()
    return tmp_path / "log"


@pytest.fixture
def service(log: Path, tmp_path: Path) -> Iterator[str]:
    """The file that tells of such a service."""
    served = Served(lambda: repeats_seeds(log))
    told = tmp_path / "service.toml"
    request = '{text = "{message}", all = "{history}", seed = "{seed}"}'
    told.write_text(f'kind = "http"\nurl = "{served.url}/talk"\nreply = "reply"\nrequest = {request}\n')
    yield str(told)
    served.stop()


def test_a_killed_run_with_a_service_asks_nothing_twice_and_loses_nothing(
    tmp_path: Path, log: Path, service: str
) -> None:
    calm, folder, victims, draw, kills = tmp_path / "calm", tmp_path / "run", Victims(tmp_path), random.Random(3), 0
    flags = (*FLAGS, "--chatbot", service, "--out")
    assert victims.run(Plot(), *flags, str(calm)).code == 0
    ended = -signal.SIGKILL
    while ended == -signal.SIGKILL:
        log.write_text("")
        before = contents(folder)
        done = {derive(SEED, id, turn) for id, turn, *_ in before["messages"] if turn % 2 == 0}
        ended = victims.run(Killed(draw.randint(2, 9)), *flags, str(folder)).code
        asked = [int(line) for line in log.read_text().split()]
        assert not done & set(asked), "a reply that was kept was asked for again"
        assert len(asked) == len(set(asked))
        must_hold(folder, before)
        kills += ended != 0
    assert ended == 0 and kills >= 2
    must_be_the_same(folder, calm)
