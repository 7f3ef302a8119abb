"""What each probe takes for good, and what it says of an engine that fails it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.probe import (
    HISTORY,
    OPTIONS,
    probe_constraint,
    probe_history,
    probe_labels,
    probe_switch,
    probe_system,
    probe_thinking,
)
from vera_local.engine.profile import Template
from vera_local.engine.seam import ChatMessage, EngineDied, Finish, InvalidRequest, Reply, Request, Usage
from vera_local.errors import UserError

SWITCH = Template(system_role=True, thinking="switch", thinking_switch="enable_thinking", reasoning_parser="qwen3")
ALWAYS = Template(system_role=True, thinking="always", reasoning_parser="deepseek_r1", answer_prefix="</think>\n\n")
NEVER = Template(system_role=True, thinking="none")


def refusing(*roles: str) -> FakeEngine:
    """An engine whose template takes no prompt of these roles; without any, no request at all."""

    def handle(request: Request) -> str:
        if not roles or [m.role for m in request.messages][: len(roles)] == list(roles):
            raise InvalidRequest("not with me")
        return "Hello"

    return FakeEngine(handle)


class Counting(FakeEngine):
    """Counts tokens in its own way."""

    def __init__(self, count: Callable[[Sequence[ChatMessage], bool], int], handler: Any = lambda _: "Hello") -> None:
        super().__init__(handler)
        self._answers = handler
        self._count = count

    async def generate(self, request: Request) -> Reply:
        return await FakeEngine(self._answers).generate(request)

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        return self._count(messages, thinking)


def uncounted(messages: Sequence[ChatMessage], thinking: bool) -> int:
    raise InvalidRequest("no counting here")


@pytest.mark.parametrize("option", OPTIONS)
async def test_an_engine_that_answers_with_an_option_passes(option: str) -> None:
    engine = FakeEngine(lambda _: option)
    await probe_constraint(engine, "own")
    (asked,) = engine.requests
    assert asked.pattern is not None
    assert [bool(re.fullmatch(asked.pattern, text)) for text in (*OPTIONS, "Paris")] == [True, True, False]


async def test_the_options_stand_nowhere_in_the_prompt_and_have_room() -> None:
    engine = FakeEngine(lambda _: OPTIONS[0])
    await probe_constraint(engine, "own")
    (asked,) = engine.requests
    assert not any(word in m.content for m in asked.messages for option in OPTIONS for word in option.split())
    # A token holds a byte at least, and one more ends the answer.
    assert asked.sampling.max_tokens > max(len(option.encode()) for option in OPTIONS)


@pytest.mark.parametrize(
    "text", ["Paris", "", f"{OPTIONS[0]}\n", f" {OPTIONS[0]}", OPTIONS[0].upper(), OPTIONS[0][:-1]]
)
async def test_an_engine_that_ignores_the_constraint_is_told_with_what_it_wrote(text: str) -> None:
    with pytest.raises(UserError, match="own: the engine ignores the answer constraint") as caught:
        await probe_constraint(FakeEngine(lambda _: text), "own")
    assert repr(text) in str(caught.value) and "\n" not in str(caught.value)


async def test_an_engine_that_refuses_constraints_is_told() -> None:
    with pytest.raises(UserError, match=r"own: the engine refuses constrained answers \(not with me\)"):
        await probe_constraint(refusing(), "own")


async def test_a_system_message_that_is_taken_shows_what_the_model_said() -> None:
    engine = FakeEngine(lambda _: Reply("Hello", Finish.LENGTH, Usage()))
    assert await probe_system(engine, "own") == "a system message is taken; greeted with 'Hello'"
    assert [m.role for m in engine.requests[0].messages] == ["system", "user"]
    assert engine.requests[0].pattern is None


async def test_a_template_without_that_role_is_told_with_the_remedy() -> None:
    with pytest.raises(UserError, match=r"own: the chat template refuses a system message \(not with me\); set templ"):
        await probe_system(refusing("system"), "own")


async def test_a_template_that_leaves_the_system_message_out_is_told() -> None:
    engine = Counting(lambda messages, _: sum(len(m.content) for m in messages if m.role != "system"))
    with pytest.raises(UserError, match=r"own: the chat template leaves the system message out; set template.system"):
        await probe_system(engine, "own")


async def test_a_server_that_counts_nothing_is_believed() -> None:
    assert "is taken" in await probe_system(Counting(uncounted), "own")


async def test_a_history_is_tried_as_evidence_is_asked_for() -> None:
    engine = FakeEngine(lambda _: "Hello")
    assert await probe_history(engine, "own") == "a history of user and assistant messages is taken"
    assert engine.requests[0].messages == HISTORY
    assert [m.role for m in HISTORY] == ["system", "user", "assistant", "user"]


async def test_a_template_that_refuses_the_history_is_told_with_the_remedy() -> None:
    with pytest.raises(UserError, match=r"own: the chat template refuses a history .*; repair the template"):
        await probe_history(refusing("system", "user", "assistant"), "own")


@pytest.mark.parametrize("template", [SWITCH, ALWAYS])
async def test_a_model_that_answers_at_once_passes(template: Template) -> None:
    engine = FakeEngine(lambda r: "Hm. </think> Paris" if r.thinking else "Paris")
    assert await probe_switch(engine, "own", template) == "the model answers without reasoning first"
    assert not engine.requests[0].thinking


@pytest.mark.parametrize(
    ("template", "remedy"),
    [(SWITCH, r'template\.thinking_switch \("enable_thinking"\)'), (ALWAYS, r"template\.answer_prefix")],
)
async def test_a_model_that_reasons_all_the_same_is_told_with_the_remedy(template: Template, remedy: str) -> None:
    with pytest.raises(UserError, match=f"own: the model reasons although it was not let; correct {remedy}"):
        await probe_switch(FakeEngine(lambda r: "Hm. </think> Paris"), "own", template)


async def test_a_switch_that_changes_nothing_is_told() -> None:
    deaf = Counting(lambda messages, _: 7, lambda _: "Paris")
    with pytest.raises(UserError, match="own: the prompt is the same with and without reasoning; correct template"):
        await probe_switch(deaf, "own", SWITCH)


async def test_prompts_of_one_length_can_still_differ() -> None:
    marked = Counting(lambda messages, _: 7, lambda r: "Hm. </think> Paris" if r.thinking else "Paris")
    assert "without reasoning" in await probe_switch(marked, "own", SWITCH)


async def test_a_model_without_reasoning_is_asked_nothing() -> None:
    engine = refusing()
    assert await probe_switch(engine, "own", NEVER) == "the model has no reasoning to switch off"
    bare = ALWAYS.model_copy(update={"answer_prefix": ""})
    assert await probe_switch(engine, "own", bare) == "the model always reasons first"
    assert engine.requests == []


async def test_reasoning_that_ends_passes_within_its_budget() -> None:
    engine = FakeEngine(lambda r: "Let me see. </think> Paris")
    assert await probe_thinking(engine, "own", SWITCH, 300) == "reasoning ended with </think> after 4 tokens"
    (asked,) = engine.requests
    assert (asked.thinking, asked.stop, asked.sampling.max_tokens) == (True, "</think>", 300)


async def test_reasoning_that_does_not_end_is_told_with_its_budget() -> None:
    endless = FakeEngine(lambda r: Reply("Let me see", Finish.LENGTH, Usage()))
    with pytest.raises(
        UserError, match=r"own: the reasoning .* did not end within 300 tokens; raise the judge's max_t"
    ):
        await probe_thinking(endless, "own", SWITCH, 300)


async def test_an_answer_without_reasoning_is_told() -> None:
    with pytest.raises(UserError, match="own: the model answered without ending a reasoning with </think>; correct te"):
        await probe_thinking(FakeEngine(lambda r: "Paris"), "own", SWITCH, 300)


async def test_probabilities_that_can_be_read_pass() -> None:
    engine = FakeEngine(lambda _: "Yes")
    assert await probe_labels(engine, "own") == "probabilities of answers can be read"
    (asked,) = engine.requests
    assert asked.labels == (await engine.tokens("Yes"))[:1]
    assert (asked.pattern, asked.sampling.max_tokens) == (None, 1)


@pytest.mark.parametrize("read", [{}, {0: float("nan")}, {0: 0.7}])
async def test_something_else_than_a_log_probability_is_told(read: dict[int, float]) -> None:
    engine = FakeEngine(lambda _: Reply("Yes", Finish.LENGTH, Usage(), read))
    with pytest.raises(UserError, match=r"own: .* so verdicts have no confidence; use the vllm engine"):
        await probe_labels(engine, "own")


async def test_a_host_that_reads_no_probabilities_is_told() -> None:
    with pytest.raises(UserError, match=r"own: no probabilities of answers can be read \(not with me\), so verdicts"):
        await probe_labels(refusing(), "own")


@pytest.mark.parametrize(
    "probe",
    [
        probe_constraint,
        probe_system,
        probe_history,
        probe_labels,
        lambda engine, name: probe_switch(engine, name, SWITCH),
        lambda engine, name: probe_thinking(engine, name, SWITCH, 10),
    ],
)
async def test_a_lost_engine_is_never_taken_for_a_fault_of_the_model(probe: Any) -> None:
    def die(_: Request) -> str:
        raise EngineDied("gone")

    with pytest.raises(EngineDied):
        await probe(FakeEngine(die), "own")
