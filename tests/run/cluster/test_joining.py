"""What the guard lets Ray's own processes do; nothing is started."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from vera_local.engine import guard
from vera_local.errors import UserError
from vera_local.run import Watcher
from vera_local.run.cluster import joining


@pytest.mark.parametrize(("address", "is_open"), [("local", True), ("192.0.2.7:6379", False)])
def test_ray_itself_may_listen_to_other_machines_and_workers_may_not(
    monkeypatch: pytest.MonkeyPatch, watcher: Watcher, address: str, is_open: bool
) -> None:
    told: list[object] = []

    def init(**_: Any) -> None:
        told.append("Ray starts")
        raise OSError

    ray = ModuleType("ray")
    monkeypatch.setattr(ray, "init", init, raising=False)
    monkeypatch.setattr(ray, "shutdown", lambda: None, raising=False)
    monkeypatch.setattr(joining, "_must_answer", lambda address: None)
    monkeypatch.setattr(guard, "configure", lambda **changes: told.append(changes))
    with pytest.raises(UserError), joining.connected(ray, address, watcher):
        pass
    assert told == [{"open": is_open}, "Ray starts", {"open": False}]
