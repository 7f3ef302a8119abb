"""A service of any shape, real on loopback: what it is asked, how its session is known, and every way it can fail."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from tests.chatbot import faulty
from tests.chatbot.faulty import ERROR, Act, Asked, Raw, said, sent, serving
from vera_local.chatbot import Answer, Chatbot, ChatbotDown, ChatbotFailed, make_chatbot
from vera_local.chatbot.settings import HttpSettings
from vera_local.chatbot.web import wait_of
from vera_local.conversation import Conversation, Message, Speaker
from vera_local.errors import UserError

NEW = Conversation("Ann-1", "Ann", 1)
HELLO = (Message(Speaker.PERSONA, 'hi "there" {session} {message}\n'),)
LONGER = (*HELLO, Message(Speaker.CHATBOT, "yes?"), Message(Speaker.PERSONA, "no"))
FAST = {"backoff": 0.001, "retries": 2, "timeout": 30, "connect_timeout": 10}
KEY = "s3cret-key-of-the-bot"
PLAIN = {"request": {"text": "{message}", "id": "{session}"}, "reply": "reply"}


def chatbot(raw: Raw, **settings: Any) -> Chatbot:
    return make_chatbot(HttpSettings.model_validate(PLAIN | {"url": f"{raw.url}/talk"} | FAST | settings))


async def once(bot: Chatbot, history: tuple[Message, ...] = HELLO, seed: int = 1) -> Answer:
    session = await bot.open(NEW, seed)
    answer = await session.reply(history, seed)
    await session.aclose()
    return answer


def answers(*contents: Any) -> faulty.Decide:
    """These acts, or JSON contents, in turn; the last one for ever."""
    left = list(contents)

    def decide(asked: Asked) -> Act:
        act = left.pop(0) if len(left) > 1 else left[0]
        return act if callable(act) else said(act)

    return decide


async def test_the_request_holds_values_as_json_and_only_what_the_template_says() -> None:
    item = {"who": "{role}", "text": "{text}"}
    template = {"m": "{message}", "all": "{history}", "before": "{earlier}", "n": "{turn}", "k": [True, None]}
    async with serving(answers({"reply": "ok"})) as raw:
        bot = chatbot(raw, request=template, history_item=item, user_role="human", chatbot_role="bot")
        assert not bot.remembers, "it is told the whole history"
        assert await once(bot, LONGER) == Answer("ok")
    hello = {"who": "human", "text": HELLO[0].text}
    before = [hello, {"who": "bot", "text": "yes?"}]
    assert raw.asked[0].json == {
        "m": "no", "all": [*before, {"who": "human", "text": "no"}], "before": before, "n": 3, "k": [True, None],
    }  # fmt: skip
    assert "Ann" not in raw.asked[0].body.decode()


async def test_a_service_without_a_history_remembers() -> None:
    async with serving(answers({"reply": "ok"})) as raw:
        assert chatbot(raw).remembers


async def test_a_get_request_has_parameters() -> None:
    async with serving(answers({"reply": "ok"})) as raw:
        await once(chatbot(raw, method="GET", request={"q": "{message}", "n": "{turn}"}), LONGER)
    assert raw.asked[0].method == "GET"
    assert raw.asked[0].target == "/talk?q=no&n=3"


async def test_an_id_of_ours_is_new_for_each_conversation_and_tells_nothing() -> None:
    async with serving(answers({"reply": "ok"})) as raw:
        bot = chatbot(raw)
        session = await bot.open(NEW, 1)
        for history in (HELLO, LONGER):
            await session.reply(history, 1)
        await once(bot)
    first, second, other = (asked.json["id"] for asked in raw.asked)
    assert first == second != other
    assert "Ann" not in first


async def test_an_id_from_the_first_reply() -> None:
    async with serving(answers({"reply": "ok", "s": {"id": 7}})) as raw:
        session = await chatbot(raw, session="s.id").open(NEW, 1)
        for history in (HELLO, LONGER):
            await session.reply(history, 1)
    assert [asked.json["id"] for asked in raw.asked] == [None, 7]


async def test_calls_that_begin_and_end_a_conversation() -> None:
    async with serving(answers({"made": ["a/b?"]}, {"reply": "ok"}, {})) as raw:
        start = {"url": f"{raw.url}/start", "session": "made.0", "request": {"new": True}}
        end = {"url": f"{raw.url}/talks/{{session}}", "method": "DELETE"}
        await once(chatbot(raw, url=f"{raw.url}/{{session}}/talk", start=start, end=end, request={"t": "{message}"}))
    assert [(a.method, a.target) for a in raw.asked] == [
        ("POST", "/start"), ("POST", "/a%2Fb%3F/talk"), ("DELETE", "/talks/a%2Fb%3F"),
    ]  # fmt: skip


async def test_an_end_that_fails_harms_nothing() -> None:
    async with serving(answers({"reply": "ok"}, sent(b"no", 500))) as raw:
        assert await once(chatbot(raw, end={"url": f"{raw.url}/end"})) == Answer("ok")
        assert len(raw.asked) == 2


async def test_a_message_that_is_sent_again_can_be_known_by_its_id() -> None:
    async with serving(answers(sent(b"", 500), {"reply": "ok"})) as raw:
        session = await chatbot(raw, request={"t": "{message}", "id": "{message_id}"}).open(NEW, 1)
        for history in (HELLO, LONGER):
            await session.reply(history, 1)
    first, again, next_one = (asked.json["id"] for asked in raw.asked)
    assert first == again != next_one


async def test_cookies_belong_to_one_conversation() -> None:
    async with serving(answers(sent(b'{"reply": "ok"}', Set_Cookie="sid=1"), {"reply": "ok"})) as raw:
        bot = chatbot(raw)
        session = await bot.open(NEW, 1)
        for history in (HELLO, LONGER):
            await session.reply(history, 1)
        await once(bot)
    assert [asked.headers.get("cookie") for asked in raw.asked] == [None, "sid=1", None]


async def test_keys_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_KEY", KEY)
    async with serving(answers({"reply": "ok"})) as raw:
        await once(
            chatbot(
                raw,
                url=f"{raw.url}/talk?key=env:BOT_KEY",
                headers={"Authorization": "Bearer env:BOT_KEY", "X-Session": "{session}"},
                request={"t": "{message}", "key": "env:BOT_KEY"},
            ),
            (Message(Speaker.PERSONA, "env:HOME"),),
        )
    (asked,) = raw.asked
    assert asked.target == f"/talk?key={KEY}"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert len(asked.headers["x-session"]) == 36
    assert asked.json == {"t": "env:HOME", "key": KEY}


async def test_a_missing_key_is_told_before_anything_is_sent() -> None:
    async with serving(answers({"reply": "ok"})) as raw:
        with pytest.raises(UserError, match="the environment variable NO_SUCH_KEY is empty"):
            await chatbot(raw, headers={"Authorization": "env:NO_SUCH_KEY"}).check()
    assert raw.asked == []


async def test_a_service_that_is_not_there_is_told() -> None:
    async with serving(answers({})) as raw:
        await chatbot(raw).check()
    assert raw.asked == [], "nothing is sent to see that it is there"
    with pytest.raises(UserError, match=rf"no chatbot answers at {raw.url} \(.*start it or correct the URL"):
        await chatbot(raw).check()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("500", "status 500"),
        ("503", "status 503"),
        ("429", "status 429"),
        ("429 with a date", "status 429"),
        ("hang", r"no whole reply within 0\.3 s"),
        ("reset", "the connection failed"),
        ("broken off", "the connection failed"),
        ("half", "not whole JSON"),
        ("huge", "larger than 1000000 bytes"),
        ("wrong type", "content type 'text/html' where json belongs"),
        ("invalid UTF-8", "not in UTF-8"),
        ("no reply", "not as agreed: it has no reply"),
    ],
)
async def test_a_fault_is_tried_again_and_then_told_with_its_cause(fault: str, told: str) -> None:
    act, patience = faulty.faults()[fault], {"timeout": 0.3} if fault == "hang" else {}
    async with serving(answers(act, {"reply": "ok"})) as raw:
        # A good answer may take longer than a hang is waited for, where the machine is busy.
        assert await once(chatbot(raw, retries=20, **patience)) == Answer("ok")
        assert len(raw.asked) >= 2
    async with serving(answers(act)) as raw:
        with pytest.raises(ChatbotFailed, match=f"{told}.*, in 3 tries$") as caught:
            await once(chatbot(raw, **patience))
        assert len(raw.asked) == 3 or fault == "hang"
        assert ERROR not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"reply": 5}', "what it has at reply is no text"),
        (b'{"reply": "\\ud800"}', "half of a surrogate pair"),
        (b"[" * 100_000, "not whole JSON"),
        (b"[]", "it has no reply"),
        (b'{"reply": null, "error": "no  model"}', "it reported an error: no model, in 3 tries$"),
        (b'{"reply": "", "error": {"code": 5}}', r'it reported an error: \{"code": 5\}, in 3 tries$'),
    ],
)
async def test_a_reply_that_is_none_is_a_fault(content: bytes, told: str) -> None:
    async with serving(answers(sent(content))) as raw:
        with pytest.raises(ChatbotFailed, match=told):
            await once(chatbot(raw))


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (sent(b'{"detail": "no  such\\n field"}', 422), r"it refused a request with status 422: \{.detail.: .no such"),
        (sent(KEY.encode(), 404), r"status 404: \[BOT_KEY\]$"),
        (sent(KEY.encode(), 401), "it refuses access with status 401; see to its key$"),
        (sent(KEY.encode(), 403), "it refuses access with status 403; see to its key$"),
        (sent(b"", 302, Location="http://elsewhere/"), "status 302 and no reply; correct its URL$"),
    ],
)
async def test_what_is_refused_is_not_sent_again(act: Act, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_KEY", KEY)
    async with serving(answers(act)) as raw:
        with pytest.raises(ChatbotFailed, match=told) as caught:
            await once(chatbot(raw, headers={"Authorization": "Bearer env:BOT_KEY"}))
    assert len(raw.asked) == 1
    assert KEY not in str(caught.value)


async def test_a_long_refusal_is_one_and_ends_in_no_part_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_KEY", KEY)
    words = b"no " * 60 + KEY.encode() * 200_000
    async with serving(answers(sent(words, 400))) as raw:
        with pytest.raises(ChatbotFailed, match="status 400: no no") as caught:
            await once(chatbot(raw, headers={"Authorization": "Bearer env:BOT_KEY"}))
    assert len(raw.asked) == 1
    assert KEY[:8] not in str(caught.value)


async def test_a_key_in_the_address_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_KEY", "secret-host.invalid")
    bot = make_chatbot(HttpSettings.model_validate(PLAIN | FAST | {"url": "http://env:BOT_KEY:9/talk"}))
    with pytest.raises(UserError, match=r"no chatbot answers at http://\[BOT_KEY\]:9") as caught:
        await bot.check()
    assert "secret-host" not in str(caught.value)


async def test_a_packed_reply_is_unpacked_and_never_beyond_its_limit() -> None:
    reply = json.dumps({"reply": "yes"}).encode()
    bomb = gzip.compress(b'{"reply": "' + b"x" * 50_000_000 + b'"}')
    for packed in (gzip.compress(reply), zlib.compress(reply)):
        async with serving(answers(sent(packed, Content_Encoding="gzip"))) as raw:
            assert (await once(chatbot(raw))).text == "yes"
    for packed, coding, told in (
        (bomb, "gzip", "larger than 1000000 bytes"),
        (gzip.compress(bomb), "gzip, gzip", "packed as 'gzip, gzip'"),
        (b"no gzip", "gzip", "packed in a broken way"),
    ):
        async with serving(answers(sent(packed, Content_Encoding=coding))) as raw:
            tracemalloc.start()
            with pytest.raises(ChatbotFailed, match=f"{told}.* in 3 tries"):
                await once(chatbot(raw))
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < 10_000_000


async def test_a_reply_without_end_is_cut_off() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"reply": "')
        while True:
            writer.write(b"x" * 100_000)
            await writer.drain()

    async with serving(answers(endless)) as raw:
        with pytest.raises(ChatbotFailed, match="larger than 1000000 bytes, in 3 tries"):
            await once(chatbot(raw))


async def test_the_call_that_ends_a_conversation_keeps_to_the_pace_and_to_the_number_at_once() -> None:
    busy, most = 0, 0

    async def slow(writer: asyncio.StreamWriter) -> None:
        nonlocal busy, most
        busy, most = busy + 1, max(most, busy + 1)
        await asyncio.sleep(0.02)
        busy -= 1
        await said({"reply": "yes"})(writer)

    async with serving(answers(slow)) as raw:
        bot = chatbot(raw, concurrency=1, requests_per_minute=3000, end={"url": f"{raw.url}/end"})
        began = time.monotonic()
        await asyncio.gather(*(once(bot) for _ in range(4)))
        assert time.monotonic() - began >= 7 * 0.02
    assert [a.target for a in raw.asked].count("/end") == 4
    assert most == 1


async def test_a_key_in_a_reply_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_KEY", KEY)
    async with serving(answers({"reply": f"my key is {KEY}"})) as raw:
        answer = await once(chatbot(raw, headers={"Authorization": "Bearer env:BOT_KEY"}))
    assert answer.text == "my key is [BOT_KEY]"


@pytest.mark.parametrize(("empty_retries", "asked"), [(0, 1), (2, 3)])
@pytest.mark.parametrize("empty", ["", " \n", None])
async def test_an_empty_reply_is_a_reply(empty_retries: int, asked: int, empty: str | None) -> None:
    async with serving(answers({"reply": empty})) as raw:
        assert await once(chatbot(raw, empty_retries=empty_retries)) == Answer(empty or "")
    assert len(raw.asked) == asked


async def test_an_empty_reply_is_asked_for_again_with_another_seed() -> None:
    async with serving(answers({"reply": ""}, {"reply": "ok"})) as raw:
        answer = await once(chatbot(raw, empty_retries=3, request={"t": "{message}", "seed": "{seed}"}))
    assert answer == Answer("ok")
    first, second = (asked.json["seed"] for asked in raw.asked)
    assert first != second


async def test_retry_after_is_obeyed() -> None:
    moments: list[float] = []

    def decide(asked: Asked) -> Act:
        moments.append(time.monotonic())
        return sent(b"", 429, Retry_After="1") if len(moments) == 1 else said({"reply": "ok"})

    async with serving(decide) as raw:
        await once(chatbot(raw))
    assert [later - sooner >= 1.0 for sooner, later in pairwise(moments)] == [True]


NOON = 1_767_182_400.0  # 2025-12-31 12:00:00 GMT


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "120"}, 120.0),
        ({"retry-after": "Wed, 31 Dec 2025 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 31 Dec 2025 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_service_asks_for(headers: Mapping[str, str], wait: float | None) -> None:
    assert wait_of(headers, now=NOON) == wait


async def test_a_service_that_is_down_stops_everything() -> None:
    async with serving(answers(sent(b"", 500))) as raw:
        bot = chatbot(raw, give_up_after=3, retries=0)
        for _ in range(2):
            with pytest.raises(ChatbotFailed):
                await once(bot)
        with pytest.raises(ChatbotDown, match=r"3 conversations in a row got no reply .*status 500; see to it"):
            await once(bot)


def test_json_text_and_a_table_are_the_same_request() -> None:
    table = {"text": "{message}", "options": {"n": None}}
    plain = {"url": "http://h", "reply": "reply"}
    as_text = HttpSettings.model_validate(plain | {"request": json.dumps(table)})
    assert as_text == HttpSettings.model_validate(plain | {"request": table})
