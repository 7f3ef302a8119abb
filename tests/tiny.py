"""A chat model of some hundred thousand random weights, made in a second: it says nothing, in every way asked for."""

from __future__ import annotations

from pathlib import Path

from vera_local.data import data_root

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
THINKING = ("<think>", "</think>")
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def make_tiny_model(folder: Path) -> Path:
    """Write config, weights, tokenizer and chat template of a model of the Qwen3 family, thinking switch included."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    _write_tokenizer(folder)
    config = Qwen3Config(
        vocab_size=2048,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=16384,
        # Wide enough that no two tokens are equally likely.
        initializer_range=0.2,
        bos_token_id=None,
        eos_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder


def _write_tokenizer(folder: Path) -> None:
    """Byte-level, so that it can write every text, with the words of the rubrics among its tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2046,
        special_tokens=list(CONTROL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [path.read_text(encoding="utf-8") for path in sorted((data_root() / "rubric").rglob("*.yaml"))]
    fast.train_from_iterator(texts, trainer)
    fast.add_tokens([AddedToken(text, special=False, normalized=False) for text in THINKING])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=fast, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder)
