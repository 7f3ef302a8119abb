from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateError
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from vera_local.engine.profile import Template
from vera_local.engine.seam import ChatMessage, InvalidRequest
from vera_local.engine.template import ChatTemplate, fold_system
from vera_local.errors import UserError

PLAIN = Template(system_role=True, thinking="none")
WITHOUT_SYSTEM = Template(system_role=False, thinking="none")
SYSTEM, USER, ANSWER = ChatMessage("system", "be kind"), ChatMessage("user", "hello"), ChatMessage("assistant", "hi")
WORDS = ["<s>", "<unk>", "<system>", "<user>", "<assistant>", "<think>", "</think>", "be", "kind", "hello", "hi"]
JINJA = (
    "{{ bos_token }}"
    "{% for m in messages %}"
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('system comes first') }}{% endif %}"
    "<{{ m.role }}> {{ m.content }} "
    "{% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% if enable_thinking is false %}<think> </think> {% endif %}{% endif %}"
)
MESSAGES = st.lists(st.builds(ChatMessage, st.sampled_from(["system", "user", "assistant"]), st.text()), max_size=5)


class StandIn:
    """Tokenizes by words and keeps what it was asked."""

    def __init__(self) -> None:
        self.template_calls: list[tuple[Any, dict[str, Any]]] = []
        self.token_calls: list[tuple[str, dict[str, Any]]] = []

    def apply_chat_template(self, messages: list[dict[str, str]], **arguments: Any) -> str:
        self.template_calls.append((messages, arguments))
        return "".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>"

    def __call__(self, text: str, **arguments: Any) -> dict[str, list[int]]:
        self.token_calls.append((text, arguments))
        return {"input_ids": [len(word) for word in text.split()]}


@given(MESSAGES)
def test_folding_leaves_no_leading_system_message_and_loses_no_text(messages: list[ChatMessage]) -> None:
    folded = fold_system(messages)
    if messages and messages[0].role == "system":
        assert folded[0].role == "user"
        assert messages[0].content in folded[0].content
        expected = len(messages) - (len(messages) > 1 and messages[1].role == "user")
        assert len(folded) == expected
        assert folded[1:] == tuple(messages[len(messages) - expected + 1 :])
    else:
        assert folded == tuple(messages)


def test_the_system_text_stands_before_the_first_user_text() -> None:
    assert fold_system([SYSTEM, USER, ANSWER]) == (ChatMessage("user", "be kind\n\nhello"), ANSWER)
    assert fold_system([SYSTEM, ANSWER]) == (ChatMessage("user", "be kind"), ANSWER)
    assert fold_system([SYSTEM]) == (ChatMessage("user", "be kind"),)


def test_folding_changes_nothing_that_was_given() -> None:
    given_messages = [SYSTEM, USER]
    fold_system(given_messages)
    assert given_messages == [SYSTEM, USER]


def test_a_template_with_a_system_role_gets_it() -> None:
    tokenizer = StandIn()
    ChatTemplate(tokenizer, PLAIN).text([SYSTEM, USER])
    messages, arguments = tokenizer.template_calls[0]
    assert messages == [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
    assert arguments == {"tokenize": False, "add_generation_prompt": True}


def test_a_template_without_a_system_role_gets_it_folded() -> None:
    tokenizer = StandIn()
    ChatTemplate(tokenizer, WITHOUT_SYSTEM).text([SYSTEM, USER])
    assert tokenizer.template_calls[0][0] == [{"role": "user", "content": "be kind\n\nhello"}]


@pytest.mark.parametrize("thinking", [False, True])
def test_the_thinking_switch_is_turned_by_its_name(thinking: bool) -> None:
    tokenizer = StandIn()
    facts = Template(system_role=True, thinking="switch", thinking_switch="reason_first", reasoning_parser="qwen3")
    ChatTemplate(tokenizer, facts).ids([USER], thinking)
    assert tokenizer.template_calls[0][1]["reason_first"] is thinking


def test_the_answer_prefix_ends_the_prompt_unless_the_model_may_think() -> None:
    facts = Template(system_role=True, thinking="always", reasoning_parser="p", answer_prefix="<final>")
    assert ChatTemplate(StandIn(), facts).text([USER]) == "<user>hello<assistant><final>"
    assert ChatTemplate(StandIn(), facts).text([USER], thinking=True) == "<user>hello<assistant>"


def test_ids_are_those_of_the_text_without_added_tokens() -> None:
    tokenizer = StandIn()
    template = ChatTemplate(tokenizer, PLAIN)
    assert template.ids([ChatMessage("user", "a bcd")]) == [len("<user>a"), len("bcd<assistant>")]
    assert tokenizer.token_calls == [(template.text([ChatMessage("user", "a bcd")]), {"add_special_tokens": False})]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with a real tokenizer that puts <s> before every text it is given."""
    fast = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=fast, bos_token="<s>", unk_token="<unk>")
    tokenizer.chat_template = JINJA
    home = tmp_path_factory.mktemp("model")
    tokenizer.save_pretrained(home)
    return home


def words(template: ChatTemplate, messages: list[ChatMessage]) -> str:
    return " ".join(WORDS[i] for i in template.ids(messages))


def test_a_real_tokenizer_begins_once_and_ends_where_the_answer_begins(folder: Path) -> None:
    spoken = words(ChatTemplate.load(folder, PLAIN), [SYSTEM, USER, ANSWER, USER])
    assert spoken == "<s> <system> be kind <user> hello <assistant> hi <user> hello <assistant>"


def test_a_real_tokenizer_gets_the_folded_system_text(folder: Path) -> None:
    spoken = words(ChatTemplate.load(folder, WITHOUT_SYSTEM), [SYSTEM, USER])
    assert spoken == "<s> <user> be kind hello <assistant>"


def test_a_real_template_takes_the_thinking_switch_and_the_prefix_comes_last(folder: Path) -> None:
    switch = Template(system_role=True, thinking="switch", thinking_switch="enable_thinking", reasoning_parser="p")
    prefix = Template(system_role=True, thinking="always", reasoning_parser="p", answer_prefix="<think> </think> hi")
    assert words(ChatTemplate.load(folder, switch), [USER]).endswith("<assistant> <think> </think>")
    assert words(ChatTemplate.load(folder, prefix), [USER]).endswith("<assistant> <think> </think> hi")


def test_messages_that_a_template_refuses_are_an_invalid_request(folder: Path) -> None:
    template = ChatTemplate.load(folder, PLAIN)
    with pytest.raises(InvalidRequest, match="system comes first") as caught:
        template.ids([USER, SYSTEM])
    assert isinstance(caught.value.__cause__, TemplateError)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"tokenizer.json": "{"},
        {"tokenizer.json": "{}"},
        {"tokenizer.json": '{"version": "1.0", "added_tokens": [], "model": {"type": "Unheard"}}'},
        {"tokenizer.json": "\x00", "tokenizer_config.json": '{"tokenizer_class": "PreTrainedTokenizerFast"}'},
        {"config.json": '{"model_type": "unheard_of"}'},
    ],
)
def test_a_folder_without_a_readable_tokenizer_is_told_in_one_line(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="no tokenizer could be read") as caught:
        ChatTemplate.load(tmp_path, PLAIN)
    told = str(caught.value)
    assert told.startswith(f"{tmp_path}: ") and "fetch the complete model folder" in told
    assert "\n" not in told and "()" not in told


def test_a_tokenizer_without_a_chat_template_is_told(folder: Path, tmp_path: Path) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.chat_template = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UserError, match="has no chat template; choose an instruction-tuned model"):
        ChatTemplate.load(tmp_path, PLAIN)
