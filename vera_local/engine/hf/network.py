"""One causal language model in torch: token ids in, logits out. Knows no text and no request."""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vera_local.engine.hf.prefix import Kept, KeyValues, Prefixes
from vera_local.engine.profile import Profile
from vera_local.errors import UserError, first_line

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import DynamicCache

CHUNK = 2048
"""Prompt tokens computed at once: attention over a whole long prompt would take gigabytes for its mask alone."""

PLAIN_LAYERS = ("DynamicLayer", "DynamicSlidingWindowLayer")
"""Kinds of cache layers that can be kept whole: one key and one value for each token that was read."""


class Prompted(NamedTuple):
    """A prompt that was read: logits behind its last token, its cache, and how many tokens another prompt gave it."""

    logits: Tensor
    cache: DynamicCache
    reused: int


class Network:
    """Reads prompts one by one and writes in several rows at once.

    `rows`: how many sequences it can write at once; 1 for models whose memory of what they read is no plain list of
    keys and values, which can be neither cut nor padded.
    """

    def __init__(self, model: Any, rows: int) -> None:
        from transformers import DynamicCache

        self._model = model
        layers = DynamicCache(config=model.config).layers
        self._plain = all(type(layer).__name__ in PLAIN_LAYERS for layer in layers)
        self.rows = rows if self._plain else 1
        self._prefixes = Prefixes(self.rows if self._plain else 0)

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that the model's files name as ends of an answer."""
        config = self._model.config.get_text_config(decoder=True)
        named = (config.eos_token_id, getattr(self._model.generation_config, "eos_token_id", None))
        return tuple(t for group in named if group is not None for t in (group if isinstance(group, list) else [group]))

    @property
    def vocabulary(self) -> int:
        """How many tokens have a logit."""
        return int(self._model.get_output_embeddings().weight.shape[0])

    def read(self, ids: Sequence[int], wanted: Callable[[], bool]) -> Prompted | None:
        """Compute a prompt of at least one token; None where it stopped being wanted meanwhile."""
        import torch

        known = self._prefixes.longest(ids[:-1])
        cache, tensor = self._cache(known), torch.tensor([ids], device=self._model.device)
        for start in range(len(known.ids), len(ids), CHUNK):
            if not wanted():
                return None
            chunk = tensor[:, start : start + CHUNK]
            logits = self._forward(chunk, cache, [start + chunk.shape[1]])
        if self._plain:
            self._prefixes.keep(tuple(ids), _values(cache))
        return Prompted(logits[0], cache, len(known.ids))

    def write(self, tokens: Sequence[int], cache: DynamicCache, lengths: Sequence[int]) -> Tensor:
        """Append one token to each row of `cache`, of `lengths` tokens with it; logits of shape (rows, vocabulary)."""
        import torch

        return self._forward(torch.tensor(tokens, device=self._model.device)[:, None], cache, lengths)

    def forget(self) -> None:
        """Give the memory of kept prompts back."""
        self._prefixes.clear()

    def _cache(self, known: Kept) -> DynamicCache:
        from transformers import DynamicCache

        # Without the config no layer forgets what left its window, so that any beginning can be taken again.
        return DynamicCache(known.values or None) if self._plain else DynamicCache(config=self._model.config)

    def _forward(self, tokens: Tensor, cache: DynamicCache, lengths: Sequence[int]) -> Tensor:
        """Logits behind the last of `tokens` in each row. Rows end at the right; what is missing is at their left."""
        import torch

        width = max(lengths)
        blank = torch.tensor([width - length for length in lengths], device=tokens.device)[:, None]
        places = torch.arange(width, device=tokens.device)[None, :]
        with torch.inference_mode():
            output = self._model(
                input_ids=tokens,
                attention_mask=(places >= blank).long(),
                position_ids=(places - blank)[:, -tokens.shape[1] :],
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
        logits: Tensor = output.logits[:, -1]
        return logits


def joined(left: DynamicCache, right: DynamicCache) -> DynamicCache:
    """The rows of both, blanks at the left of the shorter ones."""
    import torch
    from torch.nn.functional import pad
    from transformers import DynamicCache

    width = max(left.get_seq_length(), right.get_seq_length())

    def both(one: Tensor, other: Tensor) -> Tensor:
        return torch.cat([pad(t, (0, 0, width - t.shape[-2], 0)) for t in (one, other)])

    pairs = zip(_values(left), _values(right), strict=True)
    return DynamicCache([(both(k, other_k), both(v, other_v)) for (k, v), (other_k, other_v) in pairs])


def selected(cache: DynamicCache, rows: Sequence[int], width: int) -> DynamicCache:
    """Some rows of a cache, cut to their last `width` tokens."""
    from transformers import DynamicCache

    return DynamicCache([(k[list(rows), :, -width:], v[list(rows), :, -width:]) for k, v in _values(cache)])


def _values(cache: DynamicCache) -> KeyValues:
    return [(layer.keys, layer.values) for layer in cache.layers]


def load(profile: Profile, folder: Path, log: Path, gpus: Sequence[int] = ()) -> Any:
    """The model of a folder on the first of `gpus`, else on the best device there is.

    Only safetensors are read, and no code of the folder is run unless its profile says so. `log` receives what
    transformers prints. Raises UserError where the model cannot be loaded.
    """
    import torch
    from transformers import AutoModelForCausalLM

    device = device_name(gpus)
    try:
        with _log_to(log):
            model = AutoModelForCausalLM.from_pretrained(
                str(folder),
                # 16-bit arithmetic is slow on most CPUs and differs between them.
                dtype=torch.float32 if device == "cpu" else profile.engine.dtype,
                device_map={"": device},
                use_safetensors=True,
                trust_remote_code=bool(profile.engine.trust_remote_code),
                local_files_only=True,
            )
    except Exception as error:
        reason = first_line(error)
        raise UserError(
            f"{profile.name}: transformers could not load the model on {device} ({reason}); choose another model, or "
            "host it with vLLM"
        ) from error
    return model.eval()


def device_name(gpus: Sequence[int] = ()) -> str:
    """Where torch computes on this machine: cuda (the first of `gpus`, where any is named), mps or cpu."""
    import torch

    if torch.cuda.is_available():
        return f"cuda:{gpus[0]}" if gpus else "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def free_memory() -> None:
    """Give what no model uses any more back to the device."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()


@contextlib.contextmanager
def _log_to(file: Path) -> Iterator[None]:
    """Have what transformers says while it loads in `file`, and no progress bars."""
    from transformers.utils import logging as own

    logger = logging.getLogger("transformers")
    handlers, propagate = logger.handlers, logger.propagate
    handler = logging.FileHandler(file)
    bars = own.is_progress_bar_enabled()
    own.disable_progress_bar()
    logger.handlers, logger.propagate = [handler], False
    try:
        yield
    finally:
        handler.close()
        logger.handlers, logger.propagate = handlers, propagate
        if bars:
            own.enable_progress_bar()
