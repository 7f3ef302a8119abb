"""A program that answers lines: one process a conversation or one for all, its end, its faults, and ours."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from vera_local.chatbot import Answer, Chatbot, ChatbotFailed, make_chatbot
from vera_local.chatbot.settings import CommandSettings
from vera_local.conversation import Conversation, Message, Speaker
from vera_local.errors import UserError

NEW = Conversation("Ann-1", "Ann", 1)
HELLO = (Message(Speaker.PERSONA, "hi"),)
LONGER = (*HELLO, Message(Speaker.CHATBOT, "yes?"), Message(Speaker.PERSONA, "nö"))
KEY = "s3cret-key-of-the-bot"

LOOP = """
import json, os, sys, time
heard = 0
for line in sys.stdin:
    asked = json.loads(line)
    heard += 1
    message = asked["message"]
    {body}
"""
COUNTS = 'print(json.dumps({"reply": f"{os.getpid()} {heard} {message}"}))'


def program(tmp_path: Path, body: str) -> list[str]:
    file = tmp_path / "bot.py"
    file.write_text(LOOP.replace("{body}", textwrap.indent(body, "    ").strip()))
    return [sys.executable, str(file)]


def chatbot(command: list[str], **settings: Any) -> Chatbot:
    plain = {"command": command, "backoff": 0.001, "retries": 2, "timeout": 20}
    return make_chatbot(CommandSettings.model_validate(plain | settings))


async def talk(bot: Chatbot, *histories: tuple[Message, ...]) -> list[str]:
    session = await bot.open(NEW, 1)
    try:
        return [(await session.reply(history, 1)).text for history in histories]
    finally:
        await session.aclose()


async def test_a_process_holds_one_conversation_and_ends_with_it(tmp_path: Path) -> None:
    bot = chatbot(program(tmp_path, COUNTS))
    assert (bot.remembers, bot.places) == (True, 8)
    first = await talk(bot, HELLO, LONGER)
    other = await talk(bot, HELLO)
    assert [text.split()[1:] for text in (*first, *other)] == [["1", "hi"], ["2", "nö"], ["1", "hi"]]
    pids = [int(text.split()[0]) for text in (*first, *other)]
    assert pids[0] == pids[1] != pids[2]
    assert not any(psutil.pid_exists(pid) for pid in pids)


async def test_a_shared_process_holds_them_all_and_ends_with_the_run(tmp_path: Path) -> None:
    bot = chatbot(program(tmp_path, COUNTS), shared=True)
    assert bot.places is None
    both = await asyncio.gather(*(talk(bot, HELLO, LONGER) for _ in range(3)))
    pids = {int(text.split()[0]) for texts in both for text in texts}
    assert len(pids) == 1 and psutil.pid_exists(*pids)
    assert sorted(int(text.split()[1]) for texts in both for text in texts) == [1, 2, 3, 4, 5, 6]
    await bot.aclose()
    assert not psutil.pid_exists(*pids)


async def test_it_is_told_all_it_may_need(tmp_path: Path) -> None:
    (text,) = await talk(chatbot(program(tmp_path, 'print(json.dumps({"reply": json.dumps(asked)}))')), LONGER)
    assert '"message": "n\\u00f6"' in text and '"turn": 3' in text and '"seed": 1' in text
    assert '"history": [{"role": "user", "content": "hi"}, {"role": "assistant"' in text
    assert "Ann" not in text


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("print('loading')", "its reply is not a line of JSON, in 3 tries"),
        ("print(json.dumps([1]))", 'its reply is no {"reply": "text"}, in 3 tries'),
        ("sys.stdout.buffer.write(b'{\"reply\": \"\\xff\"}\\n'); sys.stdout.flush()", "not in UTF-8, in 3 tries"),
        ("print(json.dumps({'error': 'no  model'}))", "it reported an error: no model, in 3 tries"),
        ("print(json.dumps({'reply': 'x' * 2000}))", "larger than 1000 bytes, in 3 tries"),
        ("print('x' * 100_000)", "longer than a line may be, in 3 tries"),
        ("sys.exit('no weights for ' + os.environ['BOT_API_KEY'])",
         r"its process ended with code 1 \(no weights for \[BOT_API_KEY\]\), in 3 tries"),
        ("os.close(1); time.sleep(60)", "its process closed its output, in 3 tries"),
    ],
)  # fmt: skip
async def test_what_is_no_reply_is_tried_again_and_told(
    tmp_path: Path, body: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOT_API_KEY", KEY)
    monkeypatch.setattr("vera_local.chatbot.process.END_SECONDS", 0.5)
    with pytest.raises(ChatbotFailed, match=told.replace("{", r"\{")):
        await talk(chatbot(program(tmp_path, body), reply_limit=1000), HELLO)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("if heard == 1: print('loading')\nprint(json.dumps({'reply': f'{heard} {message}'}))", "not a line of JSON"),
        ("print(json.dumps({'reply': f'{heard} {message}'})); print(json.dumps({'reply': 'a line too many'}))",
         "it wrote a line that nobody had asked for"),
    ],
)  # fmt: skip
async def test_a_reply_is_never_that_to_an_earlier_message(tmp_path: Path, body: str, told: str) -> None:
    bot = chatbot(program(tmp_path, body), retries=0)
    session = await bot.open(NEW, 1)
    try:
        first = (await session.reply(HELLO, 1)).text
        assert first == "1 hi"
        # The line too many has come by then.
        await asyncio.sleep(0.2)
        with pytest.raises(ChatbotFailed, match=told):
            await session.reply(LONGER, 1)
    except ChatbotFailed as error:
        assert told in str(error)
    finally:
        await session.aclose()


async def test_a_process_that_ends_is_not_waited_for_because_of_what_it_started(tmp_path: Path) -> None:
    body = "if os.fork() == 0: time.sleep(300)\nsys.exit('no weights')"
    with pytest.raises(ChatbotFailed, match=r"ended with code 1 \(no weights\)$"):
        await talk(chatbot(program(tmp_path, body), retries=0, timeout=60), HELLO)


async def test_last_words_end_in_no_part_of_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_API_KEY", KEY)
    body = "sys.exit('no ' * 62 + os.environ['BOT_API_KEY'] + ' it is')"
    with pytest.raises(ChatbotFailed, match="ended with code 1") as caught:
        await talk(chatbot(program(tmp_path, body)), HELLO)
    assert KEY[:6] not in str(caught.value)


async def test_a_process_that_hangs_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    body = f"open({str(file)!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(3600)"
    with pytest.raises(ChatbotFailed, match="no whole reply within 1 s, in 2 tries"):
        await talk(chatbot(program(tmp_path, body), timeout=1, retries=1), HELLO)
    pids = [int(line) for line in file.read_text().split()]
    assert len(pids) == 2 and not any(map(alive, pids))


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


ENDS_AT_SECOND = f"if heard == 2: sys.exit(3)\n{COUNTS}"


async def test_a_conversation_is_lost_with_the_process_that_remembers_it(tmp_path: Path) -> None:
    with pytest.raises(ChatbotFailed, match="its process ended with code 3, and this conversation is lost with its"):
        await talk(chatbot(program(tmp_path, ENDS_AT_SECOND)), HELLO, LONGER)


async def test_a_program_that_remembers_nothing_is_started_again(tmp_path: Path) -> None:
    texts = await talk(chatbot(program(tmp_path, ENDS_AT_SECOND), remembers=False), HELLO, LONGER)
    assert [text.split()[1:] for text in texts] == [["1", "hi"], ["1", "nö"]]


async def test_a_shared_process_that_ends_takes_its_conversations_along(tmp_path: Path) -> None:
    bot = chatbot(program(tmp_path, ENDS_AT_SECOND), shared=True)
    session = await bot.open(NEW, 1)
    assert (await session.reply(HELLO, 1)).text.endswith("1 hi")
    assert (await talk(bot, HELLO))[0].endswith("1 hi"), "one that has just begun loses nothing"
    with pytest.raises(ChatbotFailed, match="this conversation is lost with its process"):
        await session.reply(LONGER, 1)
    await bot.aclose()


async def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(UserError, match="there is no program no-such-program; correct the command"):
        await chatbot(["no-such-program"]).check()
    await chatbot([sys.executable]).check()


async def test_a_program_that_does_not_end_by_itself_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vera_local.chatbot.process.END_SECONDS", 0.1)
    body = f"{COUNTS}\nwhile True: time.sleep(60)"
    (text,) = await talk(chatbot(program(tmp_path, body)), HELLO)
    assert not alive(int(text.split()[0]))


OURS = """
import asyncio, sys
from vera_local.chatbot import make_chatbot
from vera_local.chatbot.settings import CommandSettings
from vera_local.conversation import Conversation, Message, Speaker

async def main():
    bot = make_chatbot(CommandSettings(command=tuple(sys.argv[1:])))
    session = await bot.open(Conversation("A-1", "A", 1), 1)
    print((await session.reply((Message(Speaker.PERSONA, "hi"),), 1)).text, flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent")
def test_it_dies_with_us_even_by_kill_9(tmp_path: Path) -> None:
    command = program(tmp_path, f"{COUNTS}\nwhile True: time.sleep(60)")
    ours = subprocess.Popen([sys.executable, "-c", OURS, *command], stdout=subprocess.PIPE, text=True, env=os.environ)
    assert ours.stdout is not None
    pid = int(ours.stdout.readline().split()[0])
    assert alive(pid)
    ours.send_signal(signal.SIGKILL)
    ours.wait()
    for _ in range(1000):
        if not alive(pid):
            break
        time.sleep(0.01)
    assert not alive(pid)


async def test_an_answer_is_what_the_program_wrote(tmp_path: Path) -> None:
    session = await chatbot(program(tmp_path, 'print(json.dumps({"reply": " a\\n🙂 "}))')).open(NEW, 1)
    assert await session.reply(HELLO, 1) == Answer(" a\n🙂 ")
    await session.aclose()
