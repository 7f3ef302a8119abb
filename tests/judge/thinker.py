"""A model made for tests: bytes as tokens, thinking marks in its template, and the same odds behind any prompt."""

from __future__ import annotations

import json
from pathlib import Path

MARKS = ("<|begin|>", "<|end|>", "<think>", "</think>")
TEMPLATE = (
    "{% for m in messages %}<|begin|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|begin|>assistant\n{% if enable_thinking is false %}<think></think>{% endif %}"
    "{% endif %}"
)
HIDDEN = 64


def make_thinker(folder: Path) -> Path:
    """Write the model: one token in 30 is the end of thinking, and every other is as likely as the next."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bare = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    bare.add_special_tokens(list(MARKS))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bare, eos_token="<|end|>", pad_token="<|end|>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(str(folder))
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        intermediate_size=HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=HIDDEN,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.convert_tokens_to_ids("<|begin|>"),
        eos_token_id=tokenizer.convert_tokens_to_ids("<|end|>"),
    )
    model = LlamaForCausalLM(config).to(torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        # Every token has the same embedding and no layer changes it, so that the last layer's rows alone are the odds.
        model.model.embed_tokens.weight.fill_(1.0)
        model.model.norm.weight.fill_(1.0)
        for token, logit in (("</think>", 2.2), ("<think>", -9.0), ("<|begin|>", -9.0), ("<|end|>", -9.0)):
            model.lm_head.weight[tokenizer.convert_tokens_to_ids(token)].fill_(logit / HIDDEN)
    model.save_pretrained(str(folder), safe_serialization=True)
    config_file = folder / "config.json"
    config_file.write_text(json.dumps(json.loads(config_file.read_text()) | {"dtype": "float32"}))
    return folder
