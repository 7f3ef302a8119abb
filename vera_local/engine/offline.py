"""Switches telemetry and hub access off, before any heavy import. Knows nothing of what is imported later."""

from __future__ import annotations

import os

SWITCHES = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # vLLM otherwise learns its own address by connecting a UDP socket to a public one.
    "VLLM_HOST_IP": "127.0.0.1",
}


def go_offline() -> None:
    """Set the environment of this process and its children; call it before vllm or transformers is imported."""
    os.environ.update(SWITCHES)
