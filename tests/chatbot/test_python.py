"""Code of the user's own: sync, async, slow, wrong."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vera_local.chatbot import Answer, Chatbot, ChatbotFailed, make_chatbot
from vera_local.chatbot.settings import PythonSettings
from vera_local.conversation import Conversation, Message, Speaker
from vera_local.errors import UserError

NEW = Conversation("Ann-1", "Ann", 1)
HISTORY = (Message(Speaker.PERSONA, "hi"), Message(Speaker.CHATBOT, "yes?"), Message(Speaker.PERSONA, "no"))
KEY = "s3cret-key-of-the-bot"
closed: list[str] = []
made: list[int] = []


def echo() -> Callable[[str, list[dict[str, str]]], str]:
    return lambda message, history: f"{message} {history}"


async def gentle() -> Any:
    async def reply(message: str, history: Any) -> str:
        await asyncio.sleep(0)
        return message

    return reply


class Closing:
    """An object that is called, and closed."""

    async def __call__(self, message: str, history: Any) -> str:
        return threading.current_thread().name

    def close(self) -> None:
        closed.append("closed")


def thread() -> Callable[..., str]:
    made.append(1)
    return lambda message, history: threading.current_thread().name


def failing() -> Callable[..., str]:
    def reply(message: str, history: Any) -> str:
        made.append(1)
        raise ValueError(f"no  luck\nwith {KEY}")

    return reply


def stopping() -> Callable[..., str]:
    def reply(message: str, history: Any) -> str:
        raise StopIteration

    return reply


def leaving() -> Callable[..., str]:
    def reply(message: str, history: Any) -> str:
        raise SystemExit(3)

    return reply


async def cancelled_factory() -> Any:
    raise asyncio.CancelledError


def cancelled() -> Callable[..., Any]:
    """It waits for a task of its own that was cancelled."""

    async def reply(message: str, history: Any) -> str:
        other = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        other.cancel()
        await other
        return "not reached"

    return reply


begun = asyncio.Event()


def waiting() -> Callable[..., Any]:
    async def reply(message: str, history: Any) -> str:
        begun.set()
        await asyncio.sleep(3600)
        return "not reached"

    return reply


def hanging() -> Callable[..., str]:
    return lambda message, history: str(threading.Event().wait(3600))


def number() -> Any:
    return lambda message, history: 5


def nothing() -> None:
    return None


def chatbot(name: str, **settings: Any) -> Chatbot:
    plain = {"factory": f"{__name__}:{name}", "backoff": 0.001, "retries": 1, "timeout": 5}
    return make_chatbot(PythonSettings.model_validate(plain | settings))


async def once(bot: Chatbot) -> Answer:
    session = await bot.open(NEW, 1)
    answer = await session.reply(HISTORY, 1)
    await session.aclose()
    return answer


async def test_it_is_called_with_the_message_and_the_history() -> None:
    seen = [("user", "hi"), ("assistant", "yes?"), ("user", "no")]
    assert await once(chatbot("echo")) == Answer(f"no {[{'role': r, 'content': c} for r, c in seen]}")


async def test_async_code_is_awaited() -> None:
    assert await once(chatbot("gentle")) == Answer("no")


async def test_sync_code_runs_in_a_thread_and_async_code_in_ours() -> None:
    assert (await once(chatbot("thread"))).text == "chatbot"
    assert (await once(chatbot("Closing"))).text == threading.current_thread().name


async def test_each_conversation_has_one_of_its_own_which_is_closed() -> None:
    made.clear()
    closed.clear()
    bot = chatbot("thread")
    for _ in range(3):
        await once(bot)
    assert len(made) == 3
    await once(chatbot("Closing"))
    assert closed == ["closed"]


async def test_what_it_raises_is_told_with_its_place_and_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_API_KEY", KEY)
    made.clear()
    told = r"the chatbot's code raised ValueError \(no luck with \[BOT_API_KEY\]\) at test_python\.py, line \d+, in 2"
    with pytest.raises(ChatbotFailed, match=told):
        await once(chatbot("failing"))
    assert len(made) == 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stopping", "raised RuntimeError"),
        ("leaving", r"raised RuntimeError \(SystemExit 3\) at test_python\.py, line \d+, in 2 tries$"),
        ("cancelled", r"the chatbot's code raised CancelledError \(\) at \w+\.py, line \d+, in 2 tries$"),
        ("cancelled_factory", r"the factory raised CancelledError \(\) at test_python\.py"),
        ("hanging", r"no whole reply within 0\.05 s"),
        ("number", "gave something of type int instead of text$"),
        ("nothing", "the factory gave something of type NoneType, which cannot be called"),
    ],
)
async def test_what_gives_no_text_is_told(name: str, told: str) -> None:
    with pytest.raises(ChatbotFailed, match=told):
        await once(chatbot(name, timeout=0.05 if name == "hanging" else 5))


async def test_a_caller_that_is_told_to_end_ends() -> None:
    """Then it is no fault of the chatbot's."""
    asking = asyncio.create_task(once(chatbot("waiting", timeout=3600)))
    await asyncio.wait_for(begun.wait(), 5)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("no_such_module.x:make", "there is no module no_such_module; correct the name"),
        ("json:make", "json has nothing called make that can be called"),
        ("string:digits", "string has nothing called digits that can be called"),
    ],
)
def test_code_that_is_not_there_is_told(factory: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        make_chatbot(PythonSettings(factory=factory))


def test_code_that_cannot_be_imported_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_bot_of_a_test.py").write_text("import json\njson.nothing\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere", *__import__("sys").path])
    with pytest.raises(UserError, match=r"broken_bot_of_a_test cannot be imported \(AttributeError"):
        make_chatbot(PythonSettings(factory="broken_bot_of_a_test:make"))


def test_it_remembers_unless_told_otherwise() -> None:
    assert chatbot("echo").remembers
    assert not chatbot("echo", remembers=False).remembers
