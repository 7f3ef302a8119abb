"""How models mark where their reasoning ends and the answer begins. Knows no engine and no judge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thinking:
    """`end` is what the model writes when it has reasoned; `bridge` is what stands between that and its answer."""

    end: str
    bridge: str


_TAGS = Thinking("</think>", "\n\n")

FORMATS = {
    "deepseek_r1": _TAGS,
    "deepseek_v3": _TAGS,
    "glm45": _TAGS,
    "olmo3": _TAGS,
    "openai_gptoss": Thinking("<|end|>", "<|start|>assistant<|channel|>final<|message|>"),
    "qwen3": _TAGS,
    "seed_oss": Thinking("</seed:think>", "\n"),
}
"""Reasoning parser, by vLLM's name for it -> the marks that its models write."""
