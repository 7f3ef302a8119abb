"""What goes to vLLM's server as token ids."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.engine.http_server import CHAT, COUNT, MESSAGES, PLAIN, SAMPLING, Server, completion, opened, status
from vera_local.engine.openai import ONLY_VLLM, OpenAIEngine
from vera_local.engine.profile import Template
from vera_local.engine.seam import (
    ContextOverflow,
    EngineDied,
    EngineError,
    Finish,
    InvalidRequest,
    Refused,
    Reply,
    Request,
    Usage,
)

WRITE, READ_BACK = "/v1/completions", "/detokenize"
SWITCH = Template(system_role=True, thinking="switch", thinking_switch="let_think", reasoning_parser="qwen3")
ALWAYS = Template(system_role=True, thinking="always", reasoning_parser="openai_gptoss", answer_prefix="<final>")


class Vllm(Server):
    """Tokenises by words, each with the blank before it, and by marks like <end>; writes what it was told to."""

    def __init__(self, *words: str, finish: str = "stop", stopped_by: str | None = None, shown: str = "") -> None:
        super().__init__()
        self.words: list[str] = []
        self.answers |= {
            COUNT: self._tokenize,
            READ_BACK: lambda r: reply({"prompt": self.text(json.loads(r.content)["tokens"])}),
            WRITE: lambda _: reply(written(shown or "".join(words), finish, stopped_by, self.ids("".join(words)))),
        }

    def ids(self, text: str) -> list[int]:
        found = re.findall(r"<\w+>|\s?[\w.:]+|\s", text)
        self.words += [word for word in dict.fromkeys(found) if word not in self.words]
        return [self.words.index(word) for word in found]

    def text(self, ids: list[int]) -> str:
        return "".join(self.words[i] for i in ids)

    def _tokenize(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if "prompt" in body:
            assert body["add_special_tokens"] is False
            text = body["prompt"]
        else:
            thinks = "<think>" if body.get("chat_template_kwargs", {}).get("let_think") else ""
            text = "".join(f"<{m['role']}>{m['content']}" for m in body["messages"]) + f"<assistant>{thinks}"
        ids = self.ids(text)
        return reply({"tokens": ids, "count": len(ids)})

    @property
    def asked(self) -> dict[str, Any]:
        """The one request for text."""
        assert self.bodies(CHAT) == []
        (body,) = self.bodies(WRITE)
        return body

    @property
    def prompt(self) -> str:
        return self.text(self.asked["prompt"])


def reply(answer: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json=answer)


def written(text: str, finish: str, stopped_by: str | None, ids: list[int]) -> dict[str, Any]:
    choice = {"text": text, "finish_reason": finish, "stop_reason": stopped_by, "token_ids": ids}
    return {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": len(ids)}}


PROMPT = "<system>be kind<user>hello<assistant>"


async def test_an_answer_goes_on_behind_the_prompt_and_what_was_begun() -> None:
    server = Vllm(" it is", "<end>", shown=" it is")
    engine = await opened(server)
    begun = await engine.tokens("because:\n")
    asked = Request(MESSAGES, SAMPLING, "Yes|No", begun=begun)
    assert await engine.generate(asked) == Reply(
        " it is", Finish.STOP, Usage(9, 0, 3), tokens=tuple(server.ids(" it is"))
    )
    assert server.prompt == f"{PROMPT}because:\n"
    body = {key: value for key, value in server.asked.items() if key != "prompt"}
    assert body == {
        "model": "org/own",
        "add_special_tokens": False,
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 40,
        "seed": 123,
        "repetition_penalty": 1.1,
        "top_k": 0,
        "min_p": 0.0,
        "return_token_ids": True,
        "structured_outputs": {"regex": "Yes|No"},
    }


async def test_a_model_may_think_where_the_request_lets_it() -> None:
    server = Vllm(" hm", finish="length")
    engine = await opened(server, SWITCH)
    told = await engine.generate(Request(MESSAGES, SAMPLING, thinking=True))
    assert (told.finish, told.tokens) == (Finish.LENGTH, tuple(server.ids(" hm")))
    assert server.prompt == f"{PROMPT}<think>"
    counted = [await engine.count_tokens(MESSAGES, thinking=thinking) for thinking in (True, False)]
    assert counted == [len(server.ids(f"{PROMPT}<think>")), len(server.ids(PROMPT))]


@pytest.mark.parametrize(
    ("asked", "end"),
    [
        (Request(MESSAGES, SAMPLING, thinking=True), ""),
        (Request(MESSAGES, SAMPLING, stop="."), "<final>"),
        (Request(MESSAGES, SAMPLING, "Yes|No"), "<final>"),
    ],
)
async def test_the_answer_prefix_ends_the_prompt_unless_the_model_may_think(asked: Request, end: str) -> None:
    server = Vllm(" yes")
    await (await opened(server, ALWAYS)).generate(asked)
    assert server.prompt == PROMPT + end


async def test_a_stop_of_one_token_ends_the_answer_by_its_id() -> None:
    server = Vllm(" I think so", "<think>", shown=" I think so")
    engine = await opened(server)
    told = await engine.generate(Request(MESSAGES, SAMPLING, stop="<think>"))
    assert (server.asked["stop"], server.text(server.asked["stop_token_ids"])) == (["<think>"], "<think>")
    assert (told.text, told.finish, server.text(list(told.tokens))) == (" I think so", Finish.MARK, " I think so")


async def test_an_answer_that_ends_by_itself_met_no_stop() -> None:
    told = await (await opened(Vllm(" so", "<end>"))).generate(Request(MESSAGES, SAMPLING, stop="<think>"))
    assert told.finish is Finish.STOP


@pytest.mark.parametrize(
    ("words", "stop", "text"),
    [
        ((" it is", "\n", "Answer: now"), "Answer: now", " it is\n"),
        ((" it is", " Answer: now"), "nswer: now", " it is A"),
        ((" it is", " Answer: now"), "it is Answer: now", " "),
        ((" it is", "<user>", " Answer: now"), "is Answer: now", " it "),
    ],
)
async def test_a_stop_text_is_cut_from_the_tokens(words: tuple[str, ...], stop: str, text: str) -> None:
    server = Vllm(*words, stopped_by=stop, shown=text)
    told = await (await opened(server)).generate(Request(MESSAGES, SAMPLING, stop=stop))
    assert server.asked["stop_token_ids"] == []
    assert (told.text, told.finish, server.text(list(told.tokens))) == (text, Finish.MARK, text)
    assert told.usage.output > len(told.tokens)


async def test_labels_are_read_without_temperature_and_penalty() -> None:
    server = Vllm()
    labels = {"token_id:3": -0.5, "token_id:5": -9999.0, "token_id:8": -0.1}
    read = written("x", "length", None, [8])
    read["choices"][0]["logprobs"] = {"top_logprobs": [labels]}
    server.answers[WRITE] = read
    told = await (await opened(server)).generate(Request(MESSAGES, replace(SAMPLING, max_tokens=1), labels=(3, 5)))
    assert told.label_logprobs == {3: -0.5, 5: -9999.0}
    settings = {"temperature": 0.0, "top_p": 1.0, "repetition_penalty": 1.0, "max_tokens": 1, "logprobs": 1}
    labelled = {"logprob_token_ids": [3, 5], "return_tokens_as_token_ids": True}
    assert server.asked.items() >= (settings | labelled).items()


async def test_what_does_not_fit_is_not_sent() -> None:
    server = Vllm()
    engine = await opened(server)
    with pytest.raises(ContextOverflow) as caught:
        await engine.generate(Request(MESSAGES, SAMPLING, begun=(0,) * 960))
    assert (caught.value.prompt_tokens, caught.value.context) == (960 + len(server.ids(PROMPT)), 1000)
    assert server.bodies(WRITE) == []


ASKED_BY_IDS = [
    Request(MESSAGES, SAMPLING, begun=(1,)),
    Request(MESSAGES, SAMPLING, labels=(1,)),
    Request(MESSAGES, SAMPLING, thinking=True),
    Request(MESSAGES, SAMPLING, stop="Answer:"),
]


@pytest.mark.parametrize("asked", ASKED_BY_IDS)
@pytest.mark.parametrize("tokenizer", [status(404), status(405), {"count": 3}, {"tokens": "many"}])
async def test_any_other_server_is_told_that_it_cannot(asked: Request, tokenizer: Any) -> None:
    engine = await opened(Server(**{COUNT: tokenizer}))
    with pytest.raises(InvalidRequest, match=re.escape(ONLY_VLLM)):
        await engine.generate(asked)
    assert (await engine.generate(Request(MESSAGES, SAMPLING))).text == "good day"


@pytest.mark.parametrize("tokenizer", [status(400, "no such role"), status(500)])
async def test_a_fault_of_the_tokenizer_is_not_taken_for_its_absence(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vera_local.engine.server.PAUSES", ())
    with pytest.raises(EngineError) as caught:
        await (await opened(Server(**{COUNT: tokenizer}))).generate(ASKED_BY_IDS[0])
    assert not isinstance(caught.value, EngineDied) and ONLY_VLLM not in str(caught.value)


@pytest.mark.parametrize("missing", ["text", "finish_reason", "token_ids", "logprobs"])
async def test_a_completion_that_lacks_something_fails_alone(missing: str) -> None:
    server = Vllm()
    answer = written("x", "length", None, [1])
    answer["choices"][0] |= {"logprobs": {"top_logprobs": [{"token_id:1": -1.0}]}}
    del answer["choices"][0][missing]
    server.answers[WRITE] = answer
    with pytest.raises(EngineError, match="lacks what a completion by vLLM has") as caught:
        await (await opened(server)).generate(Request(MESSAGES, SAMPLING, labels=(1,)))
    assert not isinstance(caught.value, EngineDied)


@pytest.mark.parametrize("path", [WRITE, READ_BACK])
async def test_half_of_a_surrogate_pair_is_no_text(path: str) -> None:
    server = Vllm(" Begin.", " Answer:", " Yes.", stopped_by="Answer:", shown=" Begin.")
    half = written("\ud800", "length", None, [1]) if path == WRITE else {"prompt": "\ud800 Answer:"}
    server.answers[path] = lambda _: httpx.Response(200, content=json.dumps(half))
    with pytest.raises(EngineError, match="holds half of a surrogate pair"):
        await (await opened(server)).generate(Request(MESSAGES, SAMPLING, stop="Answer:", begun=(1,)))


@pytest.mark.parametrize(
    "answer",
    [
        completion("", finish="content_filter"),
        completion(None) | {"choices": [{"finish_reason": "stop", "message": {"content": None, "refusal": "no."}}]},
    ],
)
async def test_an_answer_that_was_kept_back_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=r"kept the answer back \((its model refused|content filter)\)"):
        await (await opened(Server(**{CHAT: answer}))).generate(Request(MESSAGES, SAMPLING))


@pytest.mark.parametrize(
    ("finish", "message", "tokens"),
    [
        ("stop", {"content": "good day"}, (4, 5)),
        ("length", {"content": "good day"}, (4, 5, 6)),
        ("stop", {"content": "good day", "reasoning": "a greeting"}, ()),
    ],
)
async def test_a_chat_s_tokens_are_those_of_its_text(
    finish: str, message: dict[str, Any], tokens: tuple[int, ...]
) -> None:
    answer = completion() | {"choices": [{"finish_reason": finish, "message": message, "token_ids": [4, 5, 6]}]}
    assert (await (await opened(Server(**{CHAT: answer}))).generate(Request(MESSAGES, SAMPLING))).tokens == tokens


async def test_the_ids_of_a_text_are_asked_for_once() -> None:
    server = Vllm()
    engine = await opened(server)
    first = await engine.tokens("Not Relevant")
    asked = len(server.requests)
    assert await engine.tokens("Not Relevant") == first == tuple(server.ids("Not Relevant"))
    assert len(server.requests) == asked
    assert await engine.tokens("") == ()


async def test_control_tokens_in_a_text_are_read_as_such() -> None:
    server = Vllm()
    engine = await opened(server)
    assert [server.text([i]) for i in await engine.tokens("<end>\nYes")] == ["<end>", "\nYes"]


@pytest.mark.parametrize(
    ("facts", "markers"),
    [
        (PLAIN, ()),
        (PLAIN.model_copy(update={"markers": ("[INST]", "<|x|>", "|", " ")}), ("[INST]", "<|x|>")),
        (SWITCH, ("</think>",)),
    ],
)
async def test_the_markers_are_those_that_the_profile_knows(facts: Template, markers: tuple[str, ...]) -> None:
    engine: OpenAIEngine = await opened(Server(), facts)
    assert engine.markers == markers
