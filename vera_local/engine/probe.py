"""Small questions to an engine that show whether it does what it is trusted with. Knows nothing clinical.

Each probe tells what it saw, or raises UserError with what is wrong and the remedy in one sentence. EngineDied passes.
"""

from __future__ import annotations

import math

from vera_local.engine.grammar import pattern_of
from vera_local.engine.profile import Template
from vera_local.engine.seam import ChatMessage, Engine, EngineDied, EngineError, Finish, Request, Sampling
from vera_local.errors import UserError

OPTIONS = ("zq-17 amber", "zq-42 basalt")
"""Answers that no model gives unless it is made to."""

QUESTION = (ChatMessage("user", "What is the capital of France? Answer with the name of the city."),)

BRIEF = ChatMessage("system", "You are brief.")

LESS_BRIEF = ChatMessage("system", "You are brief, and you never write more than one sentence, whatever you are asked.")

HISTORY = (BRIEF, ChatMessage("user", "Say hello."), ChatMessage("assistant", "Hello."), ChatMessage("user", "Again."))

SEED = 0
"""Every probe's seed; that of any other request is derived from its place."""

SHORT = 16
"""Tokens that are enough to see that an answer begins."""

HELD = 128
"""Tokens that are enough to see that an answer is no reasoning: a simple question takes few of either."""


def _sampling(tokens: int) -> Sampling:
    return Sampling(temperature=0.0, top_p=1.0, max_tokens=tokens, seed=SEED)


async def probe_constraint(engine: Engine, name: str) -> str:
    """A constrained answer is one of the options."""
    try:
        reply = await engine.generate(Request(QUESTION, _sampling(32), pattern_of(OPTIONS)))
    except EngineDied:
        raise
    except EngineError as error:
        raise UserError(f"{name}: the engine refuses constrained answers ({error}); a judge needs them") from error
    if reply.text not in OPTIONS:
        raise UserError(
            f"{name}: the engine ignores the answer constraint (it wrote {reply.text[:60]!r}); "
            "use vLLM 0.31 or later with the outlines backend"
        )
    return "answers are held to the options"


async def probe_system(engine: Engine, name: str) -> str:
    """A system message is taken, by itself or within the first user message, and reaches the model."""
    asked = ChatMessage("user", "Say hello.")
    try:
        reply = await engine.generate(Request((BRIEF, asked), _sampling(SHORT)))
    except EngineDied:
        raise
    except EngineError as error:
        raise UserError(
            f"{name}: the chat template refuses a system message ({error}); "
            "set template.system_role = false in a profile of the model"
        ) from error
    if await _grown(engine, (BRIEF, asked), (LESS_BRIEF, asked)) == 0:
        raise UserError(
            f"{name}: the chat template leaves the system message out; "
            "set template.system_role = false in a profile of the model"
        )
    return f"a system message is taken; greeted with {reply.text!r}"


async def probe_history(engine: Engine, name: str) -> str:
    """A history of user, assistant and user is taken: conversations need it, and a judge's account of its evidence.

    It begins with a user message always: a simulator's does with the request for its opening.
    """
    try:
        await engine.generate(Request(HISTORY, _sampling(SHORT)))
    except EngineDied:
        raise
    except EngineError as error:
        raise UserError(
            f"{name}: the chat template refuses a history of user and assistant messages ({error}); "
            "repair the template in the model's folder, or choose another model"
        ) from error
    return "a history of user and assistant messages is taken"


async def probe_switch(engine: Engine, name: str, template: Template) -> str:
    """A model that can reason first does not, unless it is let."""
    if template.thinking == "none":
        return "the model has no reasoning to switch off"
    if template.thinking == "always" and not template.answer_prefix:
        return "the model always reasons first"
    end = template.thinks.end if template.thinks else ""
    held = await engine.generate(Request(QUESTION, _sampling(HELD), stop=end))
    if held.finish is Finish.MARK or (end and end in held.text):
        raise UserError(f"{name}: the model reasons although it was not let; correct {_switch(template)}")
    if await _grown(engine, QUESTION, QUESTION, thinking=True) == 0:
        # Two marks of one token each make prompts of one length.
        let = await engine.generate(Request(QUESTION, _sampling(HELD), thinking=True, stop=end))
        if let.text == held.text:
            raise UserError(f"{name}: the prompt is the same with and without reasoning; correct {_switch(template)}")
    return "the model answers without reasoning first"


async def probe_thinking(engine: Engine, name: str, template: Template, budget: int) -> str:
    """A model that is let reason ends its reasoning with the mark that its profile names, within `budget` tokens."""
    end = template.thinks.end if template.thinks else ""
    reply = await engine.generate(Request(QUESTION, _sampling(budget), thinking=True, stop=end))
    if reply.finish is Finish.MARK:
        return f"reasoning ended with {end} after {reply.usage.output} tokens"
    if reply.finish is Finish.LENGTH:
        raise UserError(
            f"{name}: the reasoning about a simple question did not end within {budget} tokens; "
            "raise the judge's max_tokens, or judge in mode direct or reason"
        )
    raise UserError(
        f"{name}: the model answered without ending a reasoning with {end}; "
        "correct template.think_end in its profile, or judge in mode direct or reason"
    )


async def probe_labels(engine: Engine, name: str) -> str:
    """The probability of a token can be read."""
    try:
        (label, *_) = await engine.tokens("Yes")
        reply = await engine.generate(Request(QUESTION, _sampling(1), labels=(label,)))
        read = reply.label_logprobs.get(label, math.nan)
    except EngineDied:
        raise
    except EngineError as error:
        raise UserError(
            f"{name}: no probabilities of answers can be read ({error}), so verdicts have no confidence; "
            "use the vllm engine, or --no-confidence to leave it out"
        ) from error
    if math.isnan(read) or read > 0:
        raise UserError(
            f"{name}: what comes back as a token's log-probability is none ({read}), so verdicts have no confidence; "
            "use the vllm engine, or --no-confidence to leave it out"
        )
    return "probabilities of answers can be read"


def _switch(template: Template) -> str:
    """What in a profile decides whether the model reasons."""
    if template.thinking == "switch":
        return f'template.thinking_switch ("{template.thinking_switch}") in its profile'
    return f'template.answer_prefix ("{template.answer_prefix}") in its profile'


async def _grown(
    engine: Engine, first: tuple[ChatMessage, ...], second: tuple[ChatMessage, ...], *, thinking: bool = False
) -> int | None:
    """Tokens by which the second prompt (with `thinking`) is longer than the first; None where nothing counts them."""
    try:
        return await engine.count_tokens(second, thinking=thinking) - await engine.count_tokens(first)
    except EngineDied:
        raise
    except EngineError:
        return None
