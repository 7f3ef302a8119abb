"""Prompts of both sides in the chat templates of ten families, written here in their public forms."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from vera_local.bundle import Persona, load_bundle
from vera_local.chatbot import STUB, LocalChatbot
from vera_local.conversation import Message, Speaker
from vera_local.engine.fake import FakeEngine
from vera_local.engine.profile import Template as Facts
from vera_local.engine.seam import Draw
from vera_local.engine.template import ChatTemplate
from vera_local.simulate import Simulator

ALTERNATES = (
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
)
CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"

TEMPLATES: dict[str, tuple[str, Facts]] = {
    "ChatML, as of SmolLM2": (
        CHATML + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
        Facts(system_role=True, thinking="none"),
    ),
    "Qwen3, with a thinking switch": (
        CHATML + "{% if add_generation_prompt %}<|im_start|>assistant\n"
        "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}",
        Facts(system_role=True, thinking="switch", thinking_switch="enable_thinking", reasoning_parser="qwen3"),
    ),
    "Llama 3": (
        "{% for m in messages %}{% if loop.first %}<|begin_of_text|>{% endif %}"
        "<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>{% endfor %}"
        "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
        Facts(system_role=True, thinking="none"),
    ),
    "Llama 2, strict": (
        "{% if messages[0].role == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0].content %}"
        "{% else %}{% set rest = messages %}{% set system = false %}{% endif %}"
        "{% for m in rest %}" + ALTERNATES + "{% if m.role == 'user' %}<s>[INST] "
        "{% if loop.first and system %}<<SYS>>\n{{ system }}\n<</SYS>>\n\n{% endif %}{{ m.content | trim }} [/INST]"
        "{% else %} {{ m.content | trim }} </s>{% endif %}{% endfor %}",
        Facts(system_role=True, thinking="none"),
    ),
    "Mistral 7B, strict and without a system role": (
        "<s>{% for m in messages %}" + ALTERNATES + "{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
        "{% elif m.role == 'assistant' %}{{ m.content }}</s>"
        "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}",
        Facts(system_role=False, thinking="none"),
    ),
    "Mistral Small, strict behind its system prompt": (
        "{% if messages[0].role == 'system' %}<s>[SYSTEM_PROMPT]{{ messages[0].content }}[/SYSTEM_PROMPT]"
        "{% set rest = messages[1:] %}{% else %}<s>{% set rest = messages %}{% endif %}{% for m in rest %}"
        + ALTERNATES
        + "{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}{{ m.content }}</s>{% endif %}{% endfor %}",
        Facts(system_role=True, thinking="none"),
    ),
    "Gemma 1 and 2, strict and refusing a system role": (
        "<bos>{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for m in messages %}" + ALTERNATES + "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
        "{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
        "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
        Facts(system_role=False, thinking="none"),
    ),
    "Gemma 3, which folds a system message itself": (
        "<bos>{% if messages[0].role == 'system' %}{% set before = messages[0].content + '\n\n' %}"
        "{% set rest = messages[1:] %}{% else %}{% set before = '' %}{% set rest = messages %}{% endif %}"
        "{% for m in rest %}" + ALTERNATES + "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
        "{{ before if loop.first else '' }}{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
        "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
        Facts(system_role=True, thinking="none"),
    ),
    "Phi 3": (
        "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
        Facts(system_role=True, thinking="none"),
    ),
    "gpt-oss, which always reasons": (
        "<|start|>system<|message|>You are a model.<|end|>{% for m in messages %}{% if m.role == 'system' %}"
        "<|start|>developer<|message|># Instructions\n\n{{ m.content }}<|end|>{% elif m.role == 'user' %}"
        "<|start|>user<|message|>{{ m.content }}<|end|>{% else %}"
        "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}",
        Facts(
            system_role=True,
            thinking="always",
            reasoning_parser="openai_gptoss",
            answer_prefix="<|channel|>final<|message|>",
        ),
    ),
    "DeepSeek R1, distilled": (
        "<begin>{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% elif m.role == 'user' %}"
        "<user>{{ m.content }}{% else %}<assistant>{{ m.content.split('</think>')[-1] }}<end>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<assistant><think>\n{% endif %}",
        Facts(system_role=True, thinking="always", reasoning_parser="deepseek_r1", answer_prefix="\n</think>\n\n"),
    ),
}


class Written:
    """A tokenizer of which only the template is known."""

    def __init__(self, source: str) -> None:
        def refuse(reason: str) -> None:
            raise jinja2.TemplateError(reason)

        # The settings under which these templates are written and run.
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = refuse
        self._template = environment.from_string(source)

    def apply_chat_template(self, messages: list[dict[str, str]], **given: Any) -> str:
        return self._template.render(messages=messages, **given)


BUNDLE = load_bundle("suicide_risk")
PERSONA = BUNDLE.personas[0]
DRAW = Draw(temperature=0.0, top_p=1.0, max_tokens=10)
SIDES = (Speaker.PERSONA, Speaker.CHATBOT)


def simulator() -> Simulator:
    prompts = BUNDLE.prompts.persona
    assert prompts is not None
    opening = prompts.opening.render({})
    return Simulator(FakeEngine(str), DRAW, prompts.simulator, opening, prompts.reminder, BUNDLE.end_signal)


def said(turns: int, first: int) -> tuple[Message, ...]:
    return tuple(Message(SIDES[(first + turn) % 2], f"<message {turn}>") for turn in range(turns))


@pytest.mark.parametrize("family", TEMPLATES)
@pytest.mark.parametrize("first", [0, 1], ids=["persona first", "chatbot first"])
@pytest.mark.parametrize("system", ["Be kind.", ""])
def test_every_history_has_a_prompt_for_whose_turn_it_is(family: str, first: int, system: str) -> None:
    source, facts = TEMPLATES[family]
    template = ChatTemplate(Written(source), facts)
    for turns in range(31):
        history = said(turns, first)
        if SIDES[(first + turns) % 2] is Speaker.PERSONA:
            messages = simulator().prompt(PERSONA, history)
        else:
            shown = (STUB, *history) if first else history
            messages = LocalChatbot(FakeEngine(str), DRAW, system).prompt(shown)
        prompt = template.text(messages)
        places = [prompt.index(message.text) for message in history]
        assert places == sorted(places), "everything said is there, in order"
        assert messages[0].content in prompt.replace("\r", "")
        assert prompt.endswith(facts.answer_prefix)


@pytest.mark.parametrize("family", TEMPLATES)
def test_the_persona_still_sees_its_own_opening_behind_the_request_for_it(family: str) -> None:
    source, facts = TEMPLATES[family]
    prompt = ChatTemplate(Written(source), facts).text(simulator().prompt(PERSONA, said(2, 0)))
    request = simulator().opening
    assert prompt.index(request) < prompt.index("<message 0>") < prompt.index("<message 1>")


def test_a_chatbot_that_began_is_answered_without_a_request_for_a_first_message() -> None:
    messages = simulator().prompt(PERSONA, said(1, 1))
    assert [m.role for m in messages] == ["system", "user"]
    assert simulator().opening not in messages[1].content
    assert "<message 0>" in messages[1].content


@pytest.mark.parametrize("turns", [0, 1, 2, 7])
def test_a_persona_is_told_its_language_in_every_prompt(turns: int) -> None:
    told = Persona("Ann", "Low", dict(PERSONA.fields), language="日本語")
    messages = simulator().prompt(told, said(turns, turns % 2))
    assert "日本語" in messages[0].content
    assert "日本語" in messages[-1].content
    assert all("日本語" not in m.content for m in messages[1:-1])


def test_a_template_that_wants_the_user_first_refuses_what_it_must() -> None:
    """So that the templates above are as strict as they say."""
    source, _ = TEMPLATES["Gemma 1 and 2, strict and refusing a system role"]
    with pytest.raises(jinja2.TemplateError):
        Written(source).apply_chat_template([{"role": "assistant", "content": "hi"}])
    with pytest.raises(jinja2.TemplateError):
        Written(source).apply_chat_template([{"role": "system", "content": "hi"}])
