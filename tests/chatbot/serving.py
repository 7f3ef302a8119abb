"""Real services in a thread of this process, which can be stopped and started again at the same port."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse


class Served:
    """An app made anew at each start, so that a restart forgets all sessions."""

    def __init__(self, make: Callable[[], FastAPI]) -> None:
        self._make = make
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        config = uvicorn.Config(self._make(), port=self.port, log_level="critical", timeout_graceful_shutdown=0)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the port is taken"
            time.sleep(0.005)

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()


class Sessions:
    """A service that keeps its sessions; `heard` has all that was said to it, restarts included."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.ended: list[str] = []
        self.keys: set[str | None] = set()

    def app(self) -> FastAPI:
        app, held = FastAPI(), dict[str, list[str]]()

        @app.post("/start")
        async def start(request: Request) -> Any:
            self.keys.add(request.headers.get("x-api-key"))
            held[session := str(uuid4())] = []
            return {"id": session}

        @app.post("/talk")
        async def talk(request: Request) -> Any:
            self.keys.add(request.headers.get("x-api-key"))
            body = await request.json()
            if body["session"] not in held:
                raise HTTPException(404, "no such session")
            said = held[body["session"]]
            said.append(body["text"])
            self.heard.append((body["session"], body["text"]))
            return {"out": [{"text": f"reply {len(said)} to {body['text']}"}]}

        @app.delete("/talks/{session}")
        async def end(session: str) -> Any:
            self.ended.append(session)
            del held[session]
            return {}

        return app


def counts_history() -> FastAPI:
    """A service that keeps nothing, so that it may restart at any moment."""
    app = FastAPI()

    @app.post("/talk")
    async def talk(request: Request) -> Any:
        return {"reply": str(len((await request.json())["all"]))}

    return app


def completions(model: str, key: str, asked: list[Any]) -> FastAPI:
    """Chat completions as strict as a hosted service: a key, and no field that only one server knows."""
    app = FastAPI()
    known = {"model", "messages", "temperature", "top_p", "max_tokens", "seed", "stream"}

    def must_have_key(request: Request) -> None:
        if request.headers.get("authorization") != f"Bearer {key}":
            raise HTTPException(401, f"wrong key {request.headers.get('authorization')}")

    @app.get("/v1/models")
    async def models(request: Request) -> Any:
        must_have_key(request)
        return {"data": [{"id": model}]}

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> Any:
        must_have_key(request)
        body = await request.json()
        asked.append(body)
        if unknown := body.keys() - known:
            raise HTTPException(400, f"unknown fields {sorted(unknown)}")
        text = f"I heard: {body['messages'][-1]['content']}"
        if body.get("stream"):
            return StreamingResponse(_events(text), media_type="text/event-stream")
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}

    return app


async def _events(text: str) -> AsyncIterator[str]:
    for piece in (text[:3], text[3:]):
        yield f"data: {json.dumps({'choices': [{'delta': {'content': piece}, 'finish_reason': None}]})}\n\n"
    yield f"data: {json.dumps({'choices': [{'delta': {}, 'finish_reason': 'length'}]})}\n\n"
    yield "data: [DONE]\n\n"
