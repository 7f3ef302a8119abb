"""Small questions to an engine that show whether it does what it is trusted with. Knows nothing clinical."""

from __future__ import annotations

from vera_local.engine.grammar import pattern_of
from vera_local.engine.seam import ChatMessage, Engine, EngineDied, EngineError, Request, Sampling
from vera_local.errors import UserError

OPTIONS = ("zq-17 amber", "zq-42 basalt")
"""Answers that no model gives unless it is made to."""

QUESTION = (ChatMessage("user", "What is the capital of France? Answer with the name of the city."),)


async def probe_constraint(engine: Engine, name: str) -> None:
    """Make sure that a constrained answer is one of the options; UserError where the engine ignores the constraint."""
    sampling = Sampling(temperature=0.0, top_p=1.0, max_tokens=32, seed=0)
    try:
        reply = await engine.generate(Request(QUESTION, sampling, pattern_of(OPTIONS)))
    except EngineDied:
        raise
    except EngineError as error:
        raise UserError(f"{name}: the engine refuses constrained answers ({error}); a judge needs them") from error
    if reply.text not in OPTIONS:
        raise UserError(
            f"{name}: the engine ignores the answer constraint (it wrote {reply.text[:60]!r}); "
            "use vLLM 0.31 or later with the outlines backend"
        )


async def probe_chat(engine: Engine) -> str:
    """What the model says to a greeting with a system message; EngineError or ValueError where the template fails."""
    messages = (ChatMessage("system", "You are brief."), ChatMessage("user", "Say hello."))
    reply = await engine.generate(Request(messages, Sampling(temperature=0.0, top_p=1.0, max_tokens=16, seed=0)))
    return reply.text
