"""Runs over a real Ray cluster of two nodes on this machine, with engines that need no model."""

from __future__ import annotations

import asyncio
import random
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from tests import answers
from tests.run.cluster import raying
from tests.run.heard import Heard
from tests.run.test_side_by_side import contents
from tests.tiny import make_tiny_model
from vera_local.data import data_root
from vera_local.engine.machine import Machine
from vera_local.engine.profile import Source
from vera_local.errors import UserError
from vera_local.run import Plan, Watcher, evaluate, load_config, make_plan, manifest, run
from vera_local.run.cluster import latecomers
from vera_local.run.cluster import on_ray as started
from vera_local.run.cluster.fleet import Remote, WorkerLost
from vera_local.run.cluster.latecomers import Latecomers
from vera_local.run.cluster.machines import Node, nodes_of
from vera_local.run.cluster.nodes import Look, gpus_each, hosted, labels_of, look, must_match
from vera_local.run.cluster.on_ray import Actor, RayFleet, RayRemote, Shape, on_ray
from vera_local.run.cluster.shares import Share, most_workers, share_of
from vera_local.run.cluster.wire import CHECK, TALK, Line, Ready, Report
from vera_local.run.folder import prepare_folder
from vera_local.run.players import Player

ray = pytest.importorskip("ray", reason="Ray is an optional extra: bash scripts/setup.sh --ray")

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
HUB = "tiny/chat"
HOW = {"personas": 10, "turns": 6, "check_personas": True}


@dataclass
class TwoNodes:
    """A cluster whose second node can go and come back."""

    cluster: Any
    hub: Path
    second: Any = None

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def grow(self) -> None:
        if self.second is None:
            self.second = self.cluster.add_node(num_cpus=2, labels={"zone": "b"})
            self.cluster.wait_for_nodes()

    def shrink(self) -> None:
        if self.second is not None:
            self.cluster.remove_node(self.second, allow_graceful=False)
            self.second = None


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    """The first one has a model in its hub cache."""
    from ray.cluster_utils import Cluster

    hub = tmp_path_factory.mktemp("hub")
    snapshot = hub / f"models--{HUB.replace('/', '--')}" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    make_tiny_model(snapshot)
    for module in (answers, raying):
        ray.cloudpickle.register_pickle_by_value(module)
    head = {"num_cpus": 2, "include_dashboard": False, "env_vars": {"HF_HUB_CACHE": str(hub)}}
    started = TwoNodes(Cluster(initialize_head=True, head_node_args=head), hub)
    yield started
    started.cluster.shutdown()
    for module in (answers, raying):
        ray.cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture
def two(nodes: TwoNodes) -> TwoNodes:
    nodes.grow()
    return nodes


@pytest.fixture
async def undisturbed(make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path) -> dict[str, list[Any]]:
    plan = make(out=tmp_path / "alone", **HOW)
    await run(plan, answering(answers.at_random), watcher)
    return contents(plan)


def use(monkeypatch: pytest.MonkeyPatch, gather: Callable[..., Any]) -> None:
    monkeypatch.setattr(evaluate, "on_ray", gather)


@asynccontextmanager
async def with_fakes(plan: Plan, lines: Sequence[Line], jobs: int, watcher: Watcher) -> AsyncIterator[RayFleet]:
    async with on_ray(plan, lines, jobs, watcher, raying.make_opener) as fleet:
        yield fleet


async def test_two_nodes_give_the_same_results_as_one_process(
    make: MakePlan,
    answering: Answering,
    watcher: Watcher,
    monkeypatch: pytest.MonkeyPatch,
    undisturbed: dict[str, list[Any]],
    two: TwoNodes,
) -> None:
    use(monkeypatch, with_fakes)
    plan = make(ray=two.address, **HOW)
    outcome = await run(plan, answering(answers.at_random), watcher)
    assert contents(plan) == undisturbed
    assert all(scores.conversations == 10 for scores in outcome.scores.values())
    noted = manifest.read(plan.out)
    assert noted is not None
    assert noted["cluster"]["workers"] == len(noted["cluster"]["nodes"]) == 2
    assert "ray" not in noted["config"]
    # The same run, gone on with in this process, finds nothing left to do.
    opener = answering(answers.at_random)
    await run(replace(plan, config=plan.config.model_copy(update={"ray": None})), opener, watcher)
    assert opener.engines == []


@dataclass
class Losing:
    """A fleet of which workers, or the second node, go when so much was written in all."""

    fleet: RayFleet
    points: list[int]
    lose_node: Callable[[], None]
    written: int = 0
    lost: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return self.fleet.size

    async def start(self, number: int, lines: Sequence[Line]) -> Remote:
        return _Watched(await self.fleet.start(number, lines), self)

    def wrote(self, remote: RayRemote, report: Report) -> None:
        self.written += len(report.written)
        if not self.points or self.written < self.points[0]:
            return
        self.points.pop(0)
        if len(self.lost) == 1:
            self.lost.append("node")
            self.lose_node()
        else:
            self.lost.append("actor")
            ray.kill(remote._actor)


class _Watched:
    def __init__(self, remote: RayRemote, losing: Losing) -> None:
        self._remote, self._losing = remote, losing
        self.name, self.ready, self.give, self.stop = remote.name, remote.ready, remote.give, remote.stop

    async def report(self, pause: float) -> Report:
        report = await self._remote.report(pause)
        self._losing.wrote(self._remote, report)
        return report


@pytest.mark.parametrize("seed", range(5))
async def test_actors_and_nodes_that_are_killed_change_nothing_in_the_end(
    make: MakePlan,
    answering: Answering,
    watcher: Watcher,
    monkeypatch: pytest.MonkeyPatch,
    undisturbed: dict[str, list[Any]],
    two: TwoNodes,
    seed: int,
) -> None:
    """Four points a run: actors three times, and once the node."""
    whole = sum(map(len, (undisturbed["messages"], undisturbed["verdicts"])))
    points = sorted(random.Random(seed).sample(range(1, whole), 4))
    losings: list[Losing] = []

    @asynccontextmanager
    async def gather(plan: Plan, lines: Sequence[Line], jobs: int, watcher: Watcher) -> AsyncIterator[Losing]:
        async with on_ray(plan, lines, jobs, watcher, raying.make_opener) as fleet:
            losings.append(Losing(fleet, list(points), two.shrink))
            yield losings[-1]

    use(monkeypatch, gather)
    plan = make(ray=two.address, **HOW)
    await run(plan, answering(answers.at_random), watcher)
    assert contents(plan) == undisturbed
    assert losings[0].lost == ["actor", "node", "actor", "actor"]


async def test_a_model_s_labels_choose_the_machines(
    make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, two: TwoNodes
) -> None:
    use(monkeypatch, with_fakes)
    plan = labelled(make(ray=two.address, personas=3, turns=2, actors=2), {"zone": "b"})
    await run(plan, answering(answers.at_random), watcher)
    noted = manifest.read(plan.out)
    assert noted is not None
    assert len(noted["cluster"]["nodes"]) == 1
    with pytest.raises(UserError, match=r"no machine .* has room for a worker with no GPU, zone=c"):
        await run(labelled(make(ray=two.address, out=plan.out.parent / "c"), {"zone": "c"}), answering(None), watcher)


def labelled(plan: Plan, labels: dict[str, str]) -> Plan:
    """The plan whose models ask for machines with these labels."""
    return with_profile(plan, node_labels=labels)


def with_profile(plan: Plan, **changes: Any) -> Plan:
    """The plan with its models' profiles changed."""

    def of(player: Player) -> Player:
        return replace(player, profile=player.profile.model_copy(update=changes))

    (seat,) = plan.judges
    assert isinstance(plan.chatbot, Player)
    roles = {"simulators": (of(plan.simulators[0]),), "chatbot": of(plan.chatbot)}
    return replace(plan, judges=(replace(seat, player=of(seat.player)),), **roles)  # type: ignore[arg-type]


async def test_a_machine_that_lacks_the_model_is_named(
    make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, nodes: TwoNodes
) -> None:
    use(monkeypatch, with_fakes)
    monkeypatch.setenv("HF_HUB_CACHE", str(nodes.hub))
    nodes.shrink()
    nodes.second = nodes.cluster.add_node(num_cpus=2, env_vars={"HF_HUB_CACHE": "/nowhere"})
    nodes.cluster.wait_for_nodes()
    plan = with_profile(make(ray=nodes.address), source=Source(hub=HUB))
    try:
        with pytest.raises(UserError, match=rf"{nodes.second.node_id[:8]}\) lacks a model: .* /nowhere: fetch them"):
            await run(plan, answering(answers.at_random), watcher)
        await a_worker_there_is_refused(plan, nodes, monkeypatch)
    finally:
        nodes.shrink()
    await run(plan, answering(answers.at_random), watcher)


async def a_worker_there_is_refused(plan: Plan, nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that machine came after the start; workers take all cores of one, so that the second has to be there."""
    prepare_folder(plan.out)
    manifest.enter(plan)
    heard, second = Heard(), nodes.second.node_id
    with monkeypatch.context() as patch:
        patch.setattr(started, "nodes_of", lambda ray: [node for node in nodes_of(ray) if node.id != second])
        patch.setattr(Shape, "cpus", lambda *_: 2)
        async with on_ray(plan, (TALK,), 2, heard, raying.make_opener) as fleet:
            remotes = [await fleet.start(number, (TALK,)) for number in range(2)]
            outcomes = await asyncio.gather(*(remote.ready() for remote in remotes), return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {Ready, WorkerLost}, outcomes
            (told,) = [line for line in heard.lines if "no worker" in line]
            assert re.search(rf"{second[:8]}\) lacks a model: .* /nowhere: .*; no worker is started there$", told)
            # The machine that was refused has room at once, the other one when its worker has ended.
            last = await fleet.start(2, (TALK,))
            ready = asyncio.ensure_future(last.ready())
            for remote in remotes:
                await remote.stop()
            assert isinstance(await ready, Ready)
            await last.stop()


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("127.0.0.1:9", r"^--ray 127\.0\.0\.1:9: nothing answers there \([^\n]+\); see that the cluster is up"),
        ("127.0.0.1:99999", r"nothing answers there"),
        ("somewhere", r"^--ray somewhere: write HOST:PORT, auto or local"),
        ("a:b", r"^--ray a:b: write HOST:PORT, auto or local"),
    ],
)
async def test_a_wrong_address_is_one_sentence(
    make: MakePlan, answering: Answering, watcher: Watcher, address: str, told: str
) -> None:
    with pytest.raises(UserError, match=told):
        await run(make(ray=address), answering(answers.at_random), watcher)


@pytest.mark.parametrize("kind", ["OutOfMemoryError", "NodeDiedError", "RuntimeEnvSetupError"])
async def test_whatever_ends_an_actor_it_is_a_worker_that_is_lost(kind: str) -> None:
    """One that Ray itself ended since its machine's memory was full, too."""

    async def told(pause: float) -> Report:
        raise getattr(ray.exceptions, kind)("it was ended")

    actor = SimpleNamespace(report=SimpleNamespace(remote=told))
    with pytest.raises(WorkerLost, match="worker 3 is gone"):
        await RayRemote(ray, actor, "worker 3", late(Heard())).report(0.1)


def late(heard: Heard) -> Latecomers:
    """All that come have to have no model."""
    return Latecomers(ray, look(()), (), heard.say, seen={"old"})


async def test_a_machine_that_comes_and_lacks_what_starts_a_worker_gets_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def cannot(*_: Any) -> dict[str, Look]:
        raise UserError("new cannot take part: no vera_local; install vera-local there as here")

    async def dies() -> Any:
        raise ray.exceptions.ActorDiedError

    monkeypatch.setattr(latecomers, "nodes_of", lambda _: [Node(id, id, 0, 2, {}) for id in ("old", "new")])
    monkeypatch.setattr(latecomers, "looks", cannot)
    heard = Heard()
    machines = late(heard)
    actor = SimpleNamespace(place=SimpleNamespace(remote=dies))
    for _ in range(2):
        with pytest.raises(WorkerLost, match="worker 3 is gone"):
            await RayRemote(ray, actor, "worker 3", machines).ready()
    assert machines.labels == {"ray.io/node-id": "!in(new)"}
    assert await machines.take_part("old") and not await machines.take_part("new")
    assert heard.lines == [
        "new cannot take part: no vera_local; install vera-local there as here; no worker is started there"
    ]


def test_a_worker_is_in_its_driver_s_folder(make: MakePlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From which a chatbot's relative paths go; Ray starts it where the cluster was started."""
    monkeypatch.chdir("/")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for place, cwd in ((tmp_path, tmp_path), (tmp_path / "not here", tmp_path)):
        Actor(make(), (), raying.make_opener, {}, sys.maxsize, place)
        assert Path.cwd() == cwd


async def test_a_client_s_address_is_refused(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    with pytest.raises(UserError, match="run the command on a machine of the cluster"):
        await run(make(ray="ray://127.0.0.1:10001"), answering(answers.at_random), watcher)


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        (data_root() / ".venv", f"bash {data_root() / 'scripts/setup.sh'} --ray"),
        (Path("/a b"), "'/a b/bin/python' -m pip install 'vera-local[ray]'"),
    ],
)
async def test_without_ray_it_is_said_how_to_install_it(
    make: MakePlan,
    answering: Answering,
    watcher: Watcher,
    monkeypatch: pytest.MonkeyPatch,
    environment: Path,
    command: str,
) -> None:
    """By the script in the environment that it made, by pip in any other."""
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr(sys, "prefix", str(environment))
    monkeypatch.setattr(sys, "executable", str(environment / "bin/python"))
    with pytest.raises(UserError) as told:
        await run(make(ray="local"), answering(answers.at_random), watcher)
    assert str(told.value) == f"--ray needs Ray: install it with `{command}`, on every machine of the cluster"


async def test_a_cluster_of_another_version_is_told(
    make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def differs(**arguments: Any) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.0.0\n    Python: 3.8.1\n")

    monkeypatch.setattr(ray, "init", differs)
    with pytest.raises(UserError, match=r"^--ray auto: Version mismatch: .*started with: Ray: 2\.0\.0 Python: 3\.8\.1"):
        await run(make(ray="auto"), answering(answers.at_random), watcher)


CPU = Machine("cpu", "2 cores", 2**34, 0)


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (Look({"torch": "2.0"}, CPU, {"m": {"a": "1"}}), r"^b has torch 2\.0 and this machine 2\.13"),
        (Look({}, CPU, {"m": {"a": "1"}}), r"^b has torch none"),
        (Look({"torch": "2.13"}, CPU, {"m": "the files of m are not here"}), r"^b lacks a model: the files"),
        (Look({"torch": "2.13"}, CPU, {"m": {"a": "2"}}), r"^b has another a of m"),
        (Look({"torch": "2.13"}, CPU, {"m": {}}), r"^b has another a of m"),
    ],
)
def test_what_a_machine_has_must_be_what_the_driver_has(there: Look, told: str) -> None:
    with pytest.raises(UserError, match=told):
        must_match("b", Look({"torch": "2.13"}, CPU, {"m": {"a": "1"}}), there)


def test_a_machine_that_has_the_same_takes_part() -> None:
    here = Look({"torch": "2.13"}, CPU, {"m": {"a": "1"}})
    must_match("b", here, replace(here, machine=Machine("cuda", "H100", 80 * 2**30, 8)))


def test_workers_take_as_few_gpus_as_keep_their_models_awake(make: MakePlan) -> None:
    plan = make(simulator="qwen3-32b", chatbot="qwen3-32b", judge="mistral-small-24b-instruct-2501")
    h100 = Machine("cuda", "H100", 80 * 2**30, 8)
    assert gpus_each(plan, [h100], simulate=True, judge=True) == 2
    assert gpus_each(plan, [h100], simulate=True, judge=False) == 1
    assert gpus_each(plan, [replace(h100, memory_bytes=192 * 2**30)], simulate=True, judge=True) == 1
    assert gpus_each(plan, [CPU], simulate=True, judge=True) == 0
    assert gpus_each(plan, [replace(h100, gpus=1), CPU], simulate=True, judge=True) == 1, "they take turns"


def test_workers_need_no_model_but_those_of_what_they_do(make: MakePlan) -> None:
    """Conversations that were held elsewhere can be judged where their speakers' models are not."""
    speaker, rater = "qwen3-32b", "mistral-small-24b-instruct-2501"
    plan = make(simulator=speaker, chatbot=speaker, judge=rater)
    assert [its.profile.name for its in hosted(plan, simulate=False, judge=True)] == [rater]
    assert [its.profile.name for its in hosted(plan, simulate=True, judge=False)] == [speaker]
    h100 = Machine("cuda", "H100", 80 * 2**30, 8)
    assert gpus_each(plan, [h100], simulate=False, judge=True) == 1


def test_a_machine_holds_as_many_workers_as_its_gpus_and_labels_let_it() -> None:
    node = Node("id", "n", 8, 64, {"gpu": "h100"})
    assert Shape(3, {}).fits(node) == 2
    assert Shape(3, {"gpu": "h100"}).fits(node) == 2
    assert Shape(3, {"gpu": "a100"}).fits(node) == 0
    assert Shape(9, {}).fits(node) == 0
    assert Shape(0, {}).fits(replace(node, gpus=0)) == 1


@pytest.mark.parametrize(("gpus", "workers", "cpus"), [(1, 3, 1), (0, 1, 4), (0, 2, 4), (0, 3, 2), (0, 40, 1)])
def test_workers_without_gpus_share_the_cores(gpus: int, workers: int, cpus: int) -> None:
    nodes = [Node(name, name, 8, cores, {}) for name, cores in (("a", 4), ("b", 6))]
    assert Shape(gpus, {}).cpus(nodes, workers) == cpus


def test_labels_that_differ_are_told(make: MakePlan) -> None:
    plan = make(simulator="qwen3-32b", judge="mistral-small-24b-instruct-2501")
    differs = replace(labelled(plan, {"gpu": "h100"}), judges=labelled(plan, {"gpu": "a100"}).judges)
    with pytest.raises(UserError, match=r"asks for machines with gpu=h100 and .* for gpu=a100"):
        labels_of(hosted(differs, simulate=True, judge=True))


def test_workers_share_the_limits_of_chatbot_and_servers(tmp_path: Path) -> None:
    table = {
        "kind": "openai",
        "model": "m",
        "url": "http://127.0.0.1:9/v1",
        "concurrency": 8,
        "requests_per_minute": 60,
    }
    judge = {"model": "m", "url": ["http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1"], "requests": [9, 2]}
    plan = make_plan(load_config(None, {"out": tmp_path, "chatbot": table, "judge": [judge], "ray": "local"}))
    shared = [share_of(plan, 3, number) for number in (0, 1, 5)]
    assert [it.chatbot.concurrency for it in shared] == [2, 3, 3]  # type: ignore[union-attr]
    assert {it.chatbot.requests_per_minute for it in shared} == {20}  # type: ignore[union-attr]
    assert [[server.requests for server in it.judges[0].player.servers] for it in shared] == [[3, 1]] * 3
    assert most_workers(plan) == 8


@pytest.mark.parametrize("workers", [1, 3, 33, 64, 65])
def test_what_a_server_takes_is_dealt_out_to_the_last_request(workers: int) -> None:
    assert sum(Share(workers, place).of(64) for place in range(workers)) == max(64, workers)


async def test_that_a_chatbot_leaves_room_for_fewer_workers_is_said(
    make: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node("1", "here", 0, 2, {})
    parts = {
        "connected": lambda *told: nullcontext(),
        "nodes_of": lambda ray: [node],
        "looks": AsyncMock(return_value={"1": look([])}),
        "manifest": MagicMock(),
    }
    for name, part in parts.items():
        monkeypatch.setattr(sys.modules[on_ray.__module__], name, part)
    table = {"kind": "openai", "model": "m", "url": "http://127.0.0.1:9/v1", "name": "service"}
    served = {"simulator": "qwen3-14b@http://127.0.0.1:9/v1", "judge": "qwen3-14b@http://127.0.0.1:9/v1"}
    plan, told = make(chatbot=table, ray="local", actors=64, **served), MagicMock()
    for lines, size in (((TALK,), 8), ((CHECK,), 20)):
        async with on_ray(plan, lines, 20, told) as fleet:
            assert fleet.size == size
    first, second = (call.args[0] for call in told.say.call_args_list)
    assert first.endswith("no GPU. Not 20: each needs one of the 8 requests that service takes at once (concurrency).")
    assert second.endswith("no GPU.")


def test_workers_need_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--actors: holds for workers of a Ray cluster"):
        make_plan(load_config(None, {"out": tmp_path, "actors": 2}))
