from __future__ import annotations

import re

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.probe import OPTIONS, probe_chat, probe_constraint
from vera_local.engine.seam import Finish, InvalidRequest, Reply, Request, Usage
from vera_local.errors import UserError


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
    with pytest.raises(UserError, match=r"own: the engine refuses constrained answers \(no regex here\)"):
        await probe_constraint(FakeEngine(_refuse), "own")


def _refuse(_: Request) -> str:
    raise InvalidRequest("no regex here")


async def test_the_chat_probe_uses_a_system_message_and_gives_the_answer() -> None:
    engine = FakeEngine(lambda _: Reply("Hello", Finish.LENGTH, Usage()))
    assert await probe_chat(engine) == "Hello"
    assert [m.role for m in engine.requests[0].messages] == ["system", "user"]
    assert engine.requests[0].pattern is None


async def test_a_template_that_fails_shows() -> None:
    with pytest.raises(InvalidRequest):
        await probe_chat(FakeEngine(_refuse))
