"""A chatbot that is Python code of the user's own. Knows only how to call it."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vera_local.chatbot.keyring import Keyring
from vera_local.chatbot.local import seen_by_chatbot
from vera_local.chatbot.manners import Fault
from vera_local.chatbot.protocol import Answer, ChatbotFailed
from vera_local.chatbot.settings import PythonSettings
from vera_local.conversation import Message
from vera_local.errors import UserError
from vera_local.together import told_to_end


class PythonKind:
    """Calls the factory for each conversation, and what it gives with (message, history) for each reply.

    Both may be sync or async; sync ones run in threads. What the factory gives may have a `close` or `aclose`.
    """

    def __init__(self, settings: PythonSettings, keyring: Keyring) -> None:
        self._settings = settings
        self._keyring = keyring
        # The code reads its keys by itself, and what it says when it fails is told.
        keyring.watch()
        self._factory = find(settings.factory)

    @property
    def remembers(self) -> bool:
        return self._settings.remembers

    @property
    def places(self) -> int | None:
        return None

    async def check(self) -> None:
        return None

    async def begin(self) -> PythonLine:
        bot = await self._call("the factory", self._factory)
        if not callable(bot):
            raise ChatbotFailed(f"the factory gave something of type {type(bot).__name__}, which cannot be called")
        return PythonLine(bot, self._call)

    async def aclose(self) -> None:
        return None

    async def _call(self, who: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """What a call of the user's code gives; Fault where it raises."""
        try:
            given = call(*arguments) if _is_async(call) else await _in_thread(lambda: call(*arguments))
            return await given if inspect.isawaitable(given) else given
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and told_to_end():
                raise
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}, line {place.lineno}"
            told = self._keyring.told(str(error))
            raise Fault(f"{who} raised {type(error).__name__} ({told}) at {where}") from error


class PythonLine:
    """One conversation with one callable. `call` gives what a call of it gives."""

    def __init__(self, bot: Callable[..., Any], call: Callable[..., Awaitable[Any]]) -> None:
        self._bot = bot
        self._call = call

    async def ask(self, history: Sequence[Message], seed: int) -> Answer:
        seen = [asdict(seen_by_chatbot(m)) for m in history]
        text = await self._call("the chatbot's code", self._bot, history[-1].text, seen)
        if not isinstance(text, str):
            raise ChatbotFailed(f"the chatbot's code gave something of type {type(text).__name__} instead of text")
        return Answer(text)

    async def end(self) -> None:
        close = getattr(self._bot, "aclose", None) or getattr(self._bot, "close", None)
        if close is not None:
            await self._call("the chatbot's code", close)


def find(target: str) -> Callable[..., Any]:
    """What "package.module:name" names, looked for in the current folder, too; UserError where there is nothing."""
    module, _, name = target.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(
            f"chatbot {target}: there is no module {error.name}; correct the name, or start from the folder it is in"
        ) from None
    except Exception as error:
        raise UserError(f"chatbot {target}: {module} cannot be imported ({type(error).__name__}: {error})") from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise UserError(f"chatbot {target}: {module} has nothing called {name} that can be called; correct the name")
    call: Callable[..., Any] = found
    return call


def _is_async(call: Callable[..., Any]) -> bool:
    # Not whether it can be called, which B004 suspects, but what its method is: objects can have an async one.
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004


async def _in_thread(work: Callable[[], Any]) -> Any:
    """`work` in a thread that nobody waits for when it hangs, neither the pool's others nor the end of the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: Exception | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = _carried(raised)
        # The loop may be gone by then.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True, name="chatbot").start()
    return await done


def _carried(raised: BaseException) -> Exception:
    """What a thread raised, as an error that a future takes and that ends nothing but the call: no StopIteration, no
    SystemExit."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):
        return raised
    told = f"{type(raised).__name__} {raised}".strip()
    return RuntimeError(told).with_traceback(raised.__traceback__)
