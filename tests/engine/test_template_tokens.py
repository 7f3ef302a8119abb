"""The ids of texts within an answer, with small tokenizers of the kinds that models have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from vera_local.engine.profile import Template
from vera_local.engine.template import ChatTemplate

PLAIN = Template(system_role=True, thinking="none")
CONTROL = ("<s>", "<|im_start|>", "<|im_end|>")
JINJA = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
BARE = "{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}<|im_end|>"
"""Like JINJA, or with a prompt that ends in a control token."""

CORPUS = ["Immediate risk now\n\nAnswer: Yes. No, Not Relevant\n", "the user\nis at  risk.\n\n\nThe end assistant"] * 20
TEXTS = ["Yes", " Yes", "Not Relevant", "\n\nAnswer:\n", "\nYes", "<|im_end|>\n", "Ärger 日本 🙂", ". No", "  ", "\n"]


def byte_level() -> Tokenizer:
    """As Llama 3, Qwen and most others have it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=list(CONTROL), initial_alphabet=alphabet)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def sentence_piece(prepend: str) -> Tokenizer:
    """As Llama 2, Mistral and Gemma have it: a blank is put in front of what is tokenised."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<0x00>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend, split=False)
    letters = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*letters, decoders.Strip(" ", 1, 0)] if prepend != "never" else letters)
    special = [*CONTROL, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=600, special_tokens=special))
    # Bytes are pieces of text.
    tokenizer = Tokenizer.from_str(_without_bytes(tokenizer.to_str()))
    return tokenizer


def _without_bytes(saved: str) -> str:
    import json

    state = json.loads(saved)
    state["added_tokens"] = [token for token in state["added_tokens"] if not token["content"].startswith("<0x")]
    return json.dumps(state)


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "bytes": byte_level,
    "sentencepiece, first": partial(sentence_piece, "first"),
    "sentencepiece, always": partial(sentence_piece, "always"),
    "sentencepiece, never": partial(sentence_piece, "never"),
}


@pytest.fixture(scope="module", params=[(kind, jinja) for kind in KINDS for jinja in (JINJA, BARE)], ids=str)
def tokenizer(request: pytest.FixtureRequest) -> Any:
    kind, jinja = request.param
    found = PreTrainedTokenizerFast(tokenizer_object=KINDS[kind](), bos_token="<s>", eos_token="<|im_end|>")
    found.chat_template = jinja
    return found


@pytest.fixture(scope="module")
def template(tokenizer: Any) -> ChatTemplate:
    return ChatTemplate(tokenizer, PLAIN)


def said(tokenizer: Any, ids: tuple[int, ...]) -> str:
    """What ids say in the middle of an answer, blanks after control tokens included."""
    before = tokenizer.encode("a", add_special_tokens=False)
    text: str = tokenizer.decode([*before, *ids], clean_up_tokenization_spaces=False)
    return text.removeprefix("a")


@pytest.mark.parametrize("text", TEXTS)
def test_the_ids_say_the_text_and_no_blank_before_it(tokenizer: Any, template: ChatTemplate, text: str) -> None:
    assert said(tokenizer, template.tokens(text)) == text


def test_a_text_of_no_letters_has_no_ids(template: ChatTemplate) -> None:
    assert template.tokens("") == ()


def test_a_control_token_in_a_text_is_one_id(tokenizer: Any, template: ChatTemplate) -> None:
    (end,) = template.tokens("<|im_end|>")
    assert end == template.control("<|im_end|>") == tokenizer.eos_token_id
    assert template.tokens("<|im_end|>\n")[0] == end
    assert template.control("Yes") is None and template.control("") is None


def test_written_text_shows_no_control_tokens(template: ChatTemplate) -> None:
    ids = (*template.tokens(" so it is"), *template.tokens("<|im_end|>"))
    assert template.written(ids) == " so it is"
    assert template.written(()) == ""


@pytest.mark.parametrize("text", ["so it is.\n\nAnswer: Yes", " so it is", "日本"])
def test_a_beginning_has_the_ids_it_was_written_with(tokenizer: Any, template: ChatTemplate, text: str) -> None:
    ids = template.tokens(text)
    for end in range(len(text) + 1):
        kept = template.beginning(ids, text[:end])
        assert said(tokenizer, kept) == text[:end]
        whole = [n for n in range(len(ids) + 1) if text[:end].startswith(template.written(ids[:n]))]
        assert kept[: max(whole)] == ids[: max(whole)]


@given(st.text(st.sampled_from("aY .\n▁<日"), max_size=12))
def test_bytes_say_every_text(text: str) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=BYTES, eos_token="<|im_end|>")
    tokenizer.chat_template = JINJA
    assert said(tokenizer, ChatTemplate(tokenizer, PLAIN).tokens(text)) == text


BYTES = byte_level()


def test_the_markers_are_the_control_tokens_of_tokenizer_template_and_profile() -> None:
    fast = byte_level()
    fast.add_tokens([AddedToken(t, special=False) for t in ("<think>", "</think>", "\n\n", "zq", "|")])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=fast, bos_token="<s>", eos_token="<|im_end|>")
    tokenizer.chat_template = JINJA + "{% if enable_thinking is false %}<think>\n\n</think>|{% endif %}"
    facts = Template(
        system_role=True,
        thinking="switch",
        thinking_switch="enable_thinking",
        reasoning_parser="seed_oss",
        markers=("[INST]", "#"),
    )
    template = ChatTemplate(tokenizer, facts)
    found = template.markers
    expected = {*CONTROL, "<think>", "</think>", "[INST]", "</seed:think>"}
    assert set(found) == expected
    assert list(found) == sorted(found, key=len, reverse=True)
    controls = {text for text in (*expected, "\n\n", "zq", "|", "#") if template.control(text) is not None}
    assert controls == {*CONTROL, "<think>", "</think>"}
