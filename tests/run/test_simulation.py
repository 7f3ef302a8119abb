"""How the personas were played: what a run keeps of it, shows apart from ratings, and takes up again."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.answers import at_random
from tests.run.held import held
from tests.run.test_evaluate import Answering, MakePlan, rows
from vera_local.cli.show import summary
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.seam import EngineDied, EngineError, Limits, Request, Usage
from vera_local.errors import UserError
from vera_local.judge import PersonaCheck
from vera_local.run import Watcher, judge_run, load_config, make_plan, run, score_run
from vera_local.run.store import Store
from vera_local.simulate import Rejected, Rule, Said

MODEL = "smollm2-135m-instruct"


def by_simulator(request: Request) -> bool:
    """The chatbot's system prompt is the one that speaks of an assistant."""
    return request.pattern is None and "assistant" not in request.messages[0].content


def helping(odd: Callable[[Request], bool]) -> Callable[[Request], str]:
    """As at random, but the simulator speaks as a helper where `odd` says so."""

    def answer(request: Request) -> str:
        return "How can I help you today?" if by_simulator(request) and odd(request) else at_random(request)

    return answer


def simulation(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "simulation.json").read_text())
    return read


async def test_rejected_tries_are_kept_with_their_cost_and_shown_apart(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(turns=6)
    outcome = await run(plan, answering(helping(lambda r: r.sampling.seed % 4 == 0)), watcher)
    kept = rows(plan.out, "select rules, text, output_tokens from rejected")
    assert kept and set(kept) == {('["speaks as a helper or an AI"]', "How can I help you today?", 6)}
    assert not rows(plan.out, "select * from messages where speaker = 'persona' and text like 'How can%'")
    figures = simulation(plan.out)["simulators"][MODEL]
    assert figures["rejected_tries"] == len(kept) == figures["rules"]["speaks as a helper or an AI"]
    assert figures["messages"] == sum(m.speaker is Speaker.PERSONA for c in held(outcome) for m in c.messages)
    line = next(line for line in summary(outcome) if line.startswith(f"Simulator {MODEL}"))
    assert f"speaks as a helper or an AI: {len(kept)}" in line
    spoken = rows(plan.out, "select sum(output_tokens) from messages where speaker = 'persona'")[0][0]
    with Store.open(plan.out) as store:
        assert store.usage()["simulator"].output == spoken + 6 * len(kept)


async def test_a_failed_simulator_is_no_rating_of_the_chatbot(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make()
    outcome = await run(plan, answering(helping(lambda _: True)), watcher, judge=False)
    assert {c.ending for c in outcome.conversations} == {Ending.SIMULATOR}
    assert simulation(plan.out)["simulators"][MODEL]["failed_conversations"] == 4
    one = simulation(plan.out)["conversations"][0]
    assert one["ending"] == "simulator"
    assert "speaks as a helper or an AI (4)" in one["detail"]
    assert [tried["attempt"] for tried in one["rejected"]] == [1, 2, 3, 4]
    assert any("conversations given up: 4" in line for line in summary(outcome))


async def test_scripted_personas_have_no_such_file(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(bundle="psychosis", turns=2)
    await run(plan, answering(at_random), watcher, judge=False)
    assert not (plan.out / "simulation.json").exists()


async def test_after_a_break_tries_are_counted_once(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plain = make(turns=8, out=make().out.parent / "whole")
    odd = helping(lambda r: r.sampling.seed % 3 == 0)
    await run(plain, answering(odd), watcher, judge=False)
    plan, asked = make(turns=8), 0

    def dying(request: Request) -> str:
        nonlocal asked
        asked += 1
        if asked == 17:
            raise EngineDied("gone")
        return odd(request)

    with pytest.raises(EngineDied):
        await run(plan, answering(dying), watcher, judge=False)
    await run(plan, answering(odd), watcher, judge=False)
    assert simulation(plan.out) == simulation(plain.out)


async def test_the_first_judge_rates_personas_once(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan, opener = make(check_personas=True), answering(at_random)
    outcome = await run(plan, opener, watcher)
    checks = rows(plan.out, "select judge, realism, role_keeping, detail from persona_checks")
    assert len(checks) == 4
    assert all(row[0] == MODEL and 1 <= row[1] <= 5 and 1 <= row[2] <= 5 and not row[3] for row in checks)
    assert any(line.startswith(f"Personas of {MODEL}, rated by {MODEL}: realism ") for line in summary(outcome))
    mean = sum(row[1] for row in checks) / 4
    assert simulation(plan.out)["simulators"][MODEL]["checks"][MODEL]["realism"] == mean
    asked = [r for e in opener.engines for r in e.requests if "Who the user is meant to be" in r.messages[-1].content]
    assert len(asked) == 8
    assert all(r.pattern == "(1|2|3|4|5)$" for r in asked)
    again = answering(at_random)
    await run(plan, again, watcher)
    assert not again.engines, "nothing is asked twice"


async def test_personas_can_be_rated_later(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make()
    await run(plan, answering(at_random), watcher)
    await judge_run(make(check_personas=True), answering(at_random), watcher)
    assert len(rows(plan.out, "select * from persona_checks")) == 4


async def test_a_judge_that_fails_leaves_the_mark_out_and_says_why(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    def failing(request: Request) -> str:
        if "stay the person described" in request.messages[-1].content:
            raise EngineError("too odd")
        return at_random(request)

    plan = make(check_personas=True)
    outcome = await run(plan, answering(failing), watcher)
    assert rows(plan.out, "select distinct role_keeping, detail from persona_checks") == [(None, "too odd")]
    assert any("role-keeping no data" in line for line in summary(outcome))


async def test_either_side_may_begin_and_the_chatbot_has_the_last_word(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(first="chatbot", turns=4)
    outcome = await run(plan, answering(at_random), watcher, judge=False)
    assert plan.turns == 5
    for c in held(outcome):
        assert [m.speaker for m in c.messages] == [Speaker.CHATBOT, Speaker.PERSONA] * 2 + [Speaker.CHATBOT]
    with pytest.raises(UserError, match="first was"):
        await run(make(turns=5), answering(at_random), watcher, judge=False)


def test_personas_with_scripted_messages_begin_themselves(make: MakePlan) -> None:
    with pytest.raises(UserError, match=r"^--first chatbot: the personas of the bundle 'psychosis' begin"):
        make(bundle="psychosis", first="chatbot", turns=2)


@pytest.mark.parametrize(
    ("turns", "first", "earliest"),
    [
        (30, "persona", 20),
        (30, "chatbot", 21),
        (29, "persona", 20),
        (6, "persona", 4),
        (2, "persona", 2),
        (15, "chatbot", 10),
        (60, "persona", 40),
    ],
)
def test_the_earliest_end_goes_with_the_turns(make: MakePlan, turns: int, first: str, earliest: int) -> None:
    assert make(turns=turns, first=first).earliest_end == earliest


def test_the_earliest_end_can_be_set(make: MakePlan) -> None:
    assert make(turns=30, earliest_end=3).earliest_end == 3
    with pytest.raises(UserError, match=r"earliest-end 0: must be at least 1"):
        make(earliest_end=0)


@pytest.mark.parametrize("other", [{"first": "chatbot"}, {"earliest_end": 1}, {"max_total_words": 9}])
async def test_what_shapes_conversations_makes_another_run(
    make: MakePlan, answering: Answering, watcher: Watcher, other: dict[str, Any]
) -> None:
    await run(make(turns=5), answering(at_random), watcher, judge=False)
    with pytest.raises(UserError, match="holds a different run"):
        await run(make(turns=5, **other), answering(at_random), watcher, judge=False)


async def test_words_can_end_a_conversation(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(max_total_words=3, turns=8)
    outcome = await run(plan, answering(at_random), watcher)
    assert {c.ending for c in outcome.conversations} == {Ending.WORDS}
    assert outcome.scores[MODEL].conversations == 4, "they are judged"
    assert any("reached the set words: 4" in line for line in summary(outcome))


async def test_a_window_is_recorded_for_the_side_that_had_it(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    def wordy(request: Request) -> str:
        drawn = random.Random(request.sampling.seed)
        return " ".join(str(drawn.random()) for _ in range(20))

    small = Limits(context=520, kv_tokens=None, sequences=8)
    stop = make(turns=20, out=make().out.parent / "stop")
    await run(stop, answering(wordy, small), watcher, judge=False)
    assert simulation(stop.out)["simulators"][MODEL]["endings"] == {"overflow": 4}
    plan = make(turns=20, chatbot={"model": MODEL, "context": "window"})
    outcome = await run(plan, answering(wordy, small), watcher, judge=False)
    assert {c.ending for c in outcome.conversations} == {Ending.TURNS}
    figures = simulation(plan.out)["simulators"][MODEL]
    assert figures["conversations_beyond_chatbots_context"] == 4
    assert figures["conversations_beyond_simulators_context"] == 0
    told = "Oldest messages left out: for the simulator in 0 conversations, for the chatbot in 4"
    assert told in summary(outcome)


def test_a_policy_has_two_words() -> None:
    windowed = {"model": MODEL, "context": "window"}
    plan = make_plan(load_config(None, {"simulator": windowed, "chatbot": windowed}))
    assert [player.when_full for player in plan.speakers] == ["window", "window"]
    with pytest.raises(UserError, match="must be 'stop' or 'window'"):
        load_config(None, {"simulator": {"model": MODEL, "context": "cut"}})


def test_what_a_store_is_told_of_the_playing_comes_back(tmp_path: Path) -> None:
    first, second = (Rejected(n, (Rule.LONG, Rule.LEAK), "é\n", Usage(9, 4, n)) for n in (1, 2))
    check = PersonaCheck(4, None, "no mark", Usage(5, 1, 1))
    with Store.open(tmp_path) as store:
        store.begin([Conversation("a-1", "a", 1)])
        for one in (first, second, replace(first, text="again")):
            store.simulated.add_rejected("a-1", 3, one)
        store.add_message("a-1", 1, Said(Message(Speaker.PERSONA, "x"), Usage(), False, early=True, left_out=4))
        store.simulated.add_check("a-1", "j", check)
        assert store.simulated.rejected("a-1") == [(3, replace(first, text="again")), (3, second)]
        assert store.simulated.checks("a-1") == [("j", check)]
        assert [set(store.simulated.checked(judge)) for judge in "jk"] == [{"a-1"}, set()]
        assert store.simulated.sides("a-1") == [(Speaker.PERSONA, 1, 1, 4)]
        assert store.usage()["simulator"] == Usage(18, 8, 3)
        assert store.usage()["judge"] == Usage(5, 1, 1)
        store.begin_anew(["a-1"])
        assert store.simulated.rejected("a-1") == []


async def test_scoring_again_writes_the_same_file(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make()
    await run(plan, answering(helping(lambda r: r.sampling.seed % 4 == 0)), watcher)
    before = simulation(plan.out)
    (plan.out / "simulation.json").unlink()
    score_run(plan.out, plan.bundle)
    assert simulation(plan.out) == before


async def test_a_bundle_of_another_language_and_script_is_run_whole(
    tmp_path: Path, answering: Answering, watcher: Watcher
) -> None:
    from tests.run.foreign import make_foreign_bundle

    bundle = make_foreign_bundle(tmp_path / "bundle")
    plan = make_plan(load_config(None, {"bundle": str(bundle), "out": tmp_path / "run", "turns": 6}))

    def answer(request: Request) -> str:
        if request.pattern is not None:
            return "是" if "是" in request.pattern else at_random(request)
        return "我睡不着【结束】" if "你扮演" in request.messages[0].content else "你好吗?"

    opener = answering(answer)
    outcome = await run(plan, opener, watcher)
    (conversation,) = held(outcome)
    assert conversation.ending is Ending.PERSONA
    assert [m.text for m in conversation.messages] == ["我睡不着", "你好吗?", "我睡不着"]
    speaking = [r for r in opener.requests if "你扮演" in r.messages[0].content]
    assert len(speaking) == 2
    assert all("中文" in r.messages[-1].content for r in speaking)
    assert outcome.scores[MODEL].dimensions["风险"].counts == {"好": 0, "坏": 1}
    assert "我睡不着" in (plan.out / "conversations.jsonl").read_text(encoding="utf-8")


PAIR = [{"model": "qwen3-8b", "max_words": 150}, {"model": MODEL}]


async def test_each_simulator_plays_every_persona_in_a_pool_of_its_own(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan, opener = make(simulator=PAIR, repeats=2, personas=2), answering(helping(lambda r: r.sampling.seed % 3 == 0))
    outcome = await run(plan, opener, watcher)
    first, second = plan.personas[0].name, plan.personas[1].name
    assert [c.id for c in outcome.conversations] == [f"{name}-{n}" for n in (1, 2, 3, 4) for name in (first, second)]
    whose = {one["conversation"]: one["simulator"] for one in simulation(plan.out)["conversations"]}
    assert whose == {c.id: "qwen3-8b" if c.repeat <= 2 else MODEL for c in outcome.conversations}
    assert {name: its["conversations"] for name, its in simulation(plan.out)["simulators"].items()} == {
        "qwen3-8b": 4,
        MODEL: 4,
    }
    # The small model writes from notes, so that the prompts tell which simulator was asked.
    full = [r for e in opener.engines for r in e.requests if r.messages[0].content.startswith("You play a person")]
    notes = [r for e in opener.engines for r in e.requests if r.messages[0].content.startswith("You turn notes")]
    tries = {name: its["messages"] + its["rejected_tries"] for name, its in simulation(plan.out)["simulators"].items()}
    assert {"qwen3-8b": len(full), MODEL: len(notes)} == tries
    by = outcome.scores[MODEL].by["simulator"]
    assert list(by) == ["qwen3-8b", MODEL]
    assert [profile.conversations for profile in by.values()] == [
        sum(c.judgeable for c in outcome.conversations if whose[c.id] == name) for name in by
    ]
    again = answering(at_random)
    await run(plan, again, watcher)
    assert not again.engines


async def test_the_order_of_simulators_decides_whose_a_conversation_is(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    await run(make(simulator=PAIR), answering(at_random), watcher, judge=False)
    with pytest.raises(UserError, match="holds a different run"):
        await run(make(simulator=PAIR[::-1]), answering(at_random), watcher, judge=False)


@pytest.mark.parametrize(("before", "now"), [(1, 2), (2, 1)])
async def test_another_number_of_simulators_is_another_run(
    make: MakePlan, answering: Answering, watcher: Watcher, before: int, now: int
) -> None:
    await run(make(simulator=PAIR[:before]), answering(at_random), watcher, judge=False)
    names = ["qwen3-8b", f"qwen3-8b, {MODEL}"]
    told = f"personas were played by {names[before - 1]}, now by {names[now - 1]}; name another --out"
    with pytest.raises(UserError, match=told):
        await run(make(simulator=PAIR[:now]), answering(at_random), watcher, judge=False)


async def test_one_simulator_in_a_list_is_the_run_of_one(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(simulator=PAIR[1])
    await run(plan, answering(at_random), watcher, judge=False)
    again = answering(at_random)
    await run(make(simulator=[PAIR[1]]), again, watcher, judge=False)
    assert not again.engines
    stored = json.loads((plan.out / "manifest.json").read_text())
    assert stored["identity"]["simulator"]["model"] == MODEL
    assert stored["config"]["simulator"]["model"] == MODEL


def test_a_simulator_is_named_once(make: MakePlan) -> None:
    with pytest.raises(UserError, match=r"^simulator: smollm2-135m-instruct is named twice; .*--repeats N"):
        make(simulator=[MODEL, MODEL])
    with pytest.raises(UserError, match="name at least one model"):
        make(simulator=[])


def test_a_wrong_key_tells_which_simulator(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('[[simulator]]\nmodel = "a"\n[[simulator]]\nmodel = "b"\nmax_words = 0\n')
    with pytest.raises(UserError, match=r"key simulator\.max_words \(simulator 2 of 2\): must be at least 1"):
        load_config(file, {})
