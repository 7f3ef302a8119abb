"""An event loop whose clock jumps to the next timer when nothing else is to be done. Knows not what it runs."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def virtually(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """What the work gives, and the seconds that it takes by its own clock: waiting costs none of ours."""
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work), loop.time()


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time begins at 0 and stands still while anything is ready. RuntimeError where nothing would ever happen."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        """Seconds since it was made, by its own clock."""
        return self.now


class _Jumping(selectors.BaseSelector):
    """Waits for no file: where one would wait, the clock goes on."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._files = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._files.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._files.unregister(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._files.select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("everything waits and no timer is set")
            self._loop.now += max(0.0, timeout)
        return ready

    def close(self) -> None:
        self._files.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._files.get_map()
