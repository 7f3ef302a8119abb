"""Models of several kinds of memory, against what the library itself generates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GptOssConfig,
    GptOssForCausalLM,
    Lfm2Config,
    Lfm2ForCausalLM,
    Qwen3ForCausalLM,
)

from vera_local.engine.hf.network import Network, joined, load, selected
from vera_local.engine.profile import find_profile
from vera_local.errors import UserError

SHAPE = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "eos_token_id": [1, 2],
}
WINDOW = 8
PROMPTS = [list(range(10, 40)), list(range(10, 30)) + list(range(100, 109)), [5], list(range(200, 217))]


def sliding() -> Any:
    types = ["sliding_attention", "full_attention"]
    return Gemma3ForCausalLM(Gemma3TextConfig(**SHAPE, num_hidden_layers=2, layer_types=types, sliding_window=WINDOW))


def with_sinks_and_experts() -> Any:
    types = ["sliding_attention", "full_attention"]
    more = {"num_hidden_layers": 2, "layer_types": types, "sliding_window": WINDOW}
    return GptOssForCausalLM(GptOssConfig(**SHAPE, **more, num_local_experts=2, num_experts_per_tok=1))


def hybrid() -> Any:
    return Lfm2ForCausalLM(Lfm2Config(**SHAPE, num_hidden_layers=2, layer_types=["conv", "full_attention"]))


@pytest.fixture(params=[sliding, with_sinks_and_experts])
def plain(request: pytest.FixtureRequest) -> Any:
    return made(request.param)


def made(kind: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return kind().float().eval()


def by_library(model: Any, ids: Sequence[int], count: int) -> list[int]:
    """The likeliest tokens, each from the whole text anew."""
    written = list(ids)
    with torch.inference_mode():
        for _ in range(count):
            written.append(int(model(torch.tensor([written]), use_cache=False).logits[0, -1].argmax()))
    return written[len(ids) :]


def always() -> bool:
    return True


def test_rows_of_different_lengths_are_written_together(plain: Any) -> None:
    """Longer than the window, so that what slides out of it is out for every row."""
    network = Network(plain, 4)
    assert network.rows == 4
    written: list[list[int]] = []
    cache = None
    for ids in PROMPTS:
        prompted = network.read(ids, always)
        assert prompted is not None
        cache = prompted.cache if cache is None else joined(cache, prompted.cache)
        written.append([int(prompted.logits.argmax())])
    for _ in range(12):
        lengths = [len(ids) + len(row) for ids, row in zip(PROMPTS, written, strict=True)]
        logits = network.write([row[-1] for row in written], cache, lengths)
        for row, one in zip(written, logits, strict=True):
            row.append(int(one.argmax()))
    assert written == [by_library(plain, ids, 13) for ids in PROMPTS]
    assert network.read(PROMPTS[1], always).reused == len(PROMPTS[1]) - 1  # type: ignore[union-attr]


def test_rows_that_leave_take_their_blanks_along(plain: Any) -> None:
    network = Network(plain, 4)
    first, second = (network.read(ids, always) for ids in (PROMPTS[0], PROMPTS[3]))
    assert first is not None and second is not None
    cache = selected(joined(first.cache, second.cache), [1], len(PROMPTS[3]))
    assert cache.get_seq_length() == len(PROMPTS[3])
    token = int(second.logits.argmax())
    logits = network.write([token], cache, [len(PROMPTS[3]) + 1])
    assert [token, int(logits.argmax())] == by_library(plain, PROMPTS[3], 2)


def test_a_beginning_that_another_prompt_had_is_not_computed_again(plain: Any) -> None:
    network = Network(plain, 4)
    network.read(PROMPTS[0], always)
    prompted = network.read(PROMPTS[1], always)
    assert prompted is not None and prompted.reused == 20
    assert torch.allclose(prompted.logits, Network(plain, 1).read(PROMPTS[1], always).logits, atol=1e-4)  # type: ignore[union-attr]


def test_a_model_with_another_memory_reads_and_writes_one_row(plain: Any) -> None:
    model = made(hybrid)
    network = Network(model, 4)
    assert network.rows == 1
    for ids in (PROMPTS[0], PROMPTS[1]):
        prompted = network.read(ids, always)
        assert prompted is not None and prompted.reused == 0
        written = [int(prompted.logits.argmax())]
        for _ in range(4):
            logits = network.write(written[-1:], prompted.cache, [len(ids) + len(written)])
            written.append(int(logits.argmax()))
        assert written == by_library(model, ids, 5)


def test_a_prompt_that_nobody_wants_any_more_is_left(plain: Any) -> None:
    network = Network(plain, 4)
    assert network.read(PROMPTS[0], lambda: False) is None
    read = network.read(PROMPTS[0], always)
    assert read is not None and read.reused == 0


def test_the_ends_are_those_of_the_files(plain: Any) -> None:
    assert set(Network(plain, 4).ends) == {1, 2}
    assert Network(plain, 4).vocabulary == 300


def test_16_bit_weights_are_computed_in_32_on_a_cpu(tiny_model_folder: Path, tmp_path: Path) -> None:
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("this machine computes on a GPU")
    model = Qwen3ForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.bfloat16)
    folder = copied(tiny_model_folder, tmp_path / "half")
    model.save_pretrained(folder)
    assert load(find_profile(str(folder)), folder, tmp_path / "log").dtype is torch.float32


def copied(folder: Path, target: Path) -> Path:
    target.mkdir()
    for file in folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def test_weights_that_are_no_safetensors_are_refused(tiny_model_folder: Path, tmp_path: Path) -> None:
    folder = copied(tiny_model_folder, tmp_path / "pickled")
    profile = find_profile(str(folder))
    torch.save(Qwen3ForCausalLM.from_pretrained(folder).state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"could not load the model on .*; choose another model") as caught:
        load(profile, folder, tmp_path / "log")
    assert "\n" not in str(caught.value)


def test_code_in_a_model_folder_is_not_run(tiny_model_folder: Path, tmp_path: Path) -> None:
    folder = copied(tiny_model_folder, tmp_path / "coded")
    profile = find_profile(str(folder))
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "unheard_of", "auto_map": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(UserError, match="could not load the model"):
        load(profile, folder, tmp_path / "log")
    assert not (tmp_path / "ran").exists()
