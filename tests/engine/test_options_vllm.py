"""Probabilities of options on the real vLLM engine, beside those that transformers gives over whole option texts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import EMBEDDED
from vera_local.engine.options import NEGLIGIBLE, option_probabilities
from vera_local.engine.profile import find_profile
from vera_local.engine.seam import ChatMessage, Request, Sampling
from vera_local.engine.source import locate
from vera_local.engine.vllm import VllmEngine

pytestmark = [pytest.mark.vllm, pytest.mark.asyncio(loop_scope="session")]

SAMPLING = Sampling(temperature=1.3, top_p=0.4, max_tokens=20, seed=3, repetition_penalty=1.4)
ECHO = 'Repeat after me, and write nothing else: "{}"'


@pytest.fixture(scope="module")
def model() -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(str(locate(find_profile(EMBEDDED))), local_files_only=True).eval()


def begins(model: Any, prompt: list[int], option: tuple[int, ...]) -> float:
    """The probability that the model's text begins with these tokens, from one pass over prompt and option."""
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *option]])).logits[0, len(prompt) - 1 : -1]
    every = logits.float().log_softmax(-1)
    return float(sum(every[i, token] for i, token in enumerate(option)).exp())


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ("Is the sky blue? Answer Yes or No.", ("Yes", "No")),
        (ECHO.format("Not Relevant"), ("Yes", "No", "Not Relevant")),
        (ECHO.format("Immediate risk now"), ("Low risk", "Immediate risk", "Immediate risk now", "No risk")),
        (ECHO.format("The user is at risk"), ("The user", "The user is", "The user is at risk", "The chatbot")),
        (ECHO.format("Ärger 日本"), ("Ärger", "Ärger 日本", "日本")),
    ],
)
@pytest.mark.parametrize("reasons", ["", "I look at the words first.\n\nAnswer:\n"])
async def test_probabilities_of_options_are_those_of_whole_texts(
    vllm_engine: VllmEngine, model: Any, asked: str, options: tuple[str, ...], reasons: str
) -> None:
    messages = (ChatMessage("user", asked),)
    begun = await vllm_engine.tokens(reasons)
    found, _ = await option_probabilities(vllm_engine, Request(messages, SAMPLING, begun=begun), options)
    prompt = [*vllm_engine._template.ids(messages), *begun]
    tokens = {option: await vllm_engine.tokens(option) for option in options}
    whole = {option: begins(model, prompt, tokens[option]) for option in options}
    for option in options:
        # The options here that begin with another one are a chain, so that the next longer one is the likeliest.
        longer = [o for o in options if o != option and tokens[o][: len(tokens[option])] == tokens[option]]
        expected = whole[option] - max((whole[o] for o in longer), default=0.0)
        assert found[option] == pytest.approx(expected, abs=1e-3)
    assert max(whole.values()) > 10 * NEGLIGIBLE
