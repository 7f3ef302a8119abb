"""vLLM in-process, on CUDA and on CPU, without a listening port. Knows nothing clinical."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vera_local.engine.child import HOST_VARIABLE, be_loaded
from vera_local.engine.gpus import find_gpu, ridge
from vera_local.engine.labels import check_labels
from vera_local.engine.machine import Machine, loaded_bytes, this_machine
from vera_local.engine.offline import go_offline
from vera_local.engine.placement import ANYWHERE, Place
from vera_local.engine.profile import Profile
from vera_local.engine.seam import (
    ChatMessage,
    ContextOverflow,
    EngineDied,
    EngineError,
    EngineLost,
    Finish,
    InvalidRequest,
    Limits,
    Reply,
    Request,
    Usage,
)
from vera_local.engine.shortage import Written, shortage
from vera_local.engine.sockets import make_sockets_folder
from vera_local.engine.surroundings import on_gpus, output_to
from vera_local.engine.template import ChatTemplate
from vera_local.engine.weights import bytes_per_weight
from vera_local.errors import UserError, first_line

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.outputs import CompletionOutput, RequestOutput
    from vllm.v1.engine.async_llm import AsyncLLM

CPU_BLOCK = 32
"""Tokens per KV block on CPU. vLLM's default there is 128; the unfilled rest of a block is prefilled again by each
question on a shared transcript, and 32 is the smallest size its CPU attention takes well."""

CPU_RIDGE = 24
"""Measured with the embedded model on two cores: a step takes 0.04 s for up to 4 tokens, 0.058 s for 16 and 0.109 s for
32 sequences, and prefill 0.0014 s for each token."""

UNKNOWN_RIDGE = 128
"""For a GPU whose data sheet, or a model whose number of weights, is not known here."""

SHUTDOWN_SECONDS = 1.0
"""Time the engine core gets to end by itself before it is killed; it holds nothing worth keeping."""


class VllmEngine:
    """One model in one AsyncLLM. Open it from the main thread: its processes end with the thread that started them."""

    def __init__(self, llm: AsyncLLM, template: ChatTemplate, context: int, ridge: int, log: Path) -> None:
        self._llm: AsyncLLM | None = llm
        self._log = log
        self._written = Written(log)
        self._template = template
        self._ids = itertools.count()
        cache, scheduler = llm.vllm_config.cache_config, llm.vllm_config.scheduler_config
        self._limits = Limits(
            context=context,
            kv_tokens=(cache.num_gpu_blocks or 0) * cache.block_size or None,
            sequences=scheduler.max_num_seqs,
            block=cache.block_size,
            ridge=ridge,
        )

    @classmethod
    def open(cls, profile: Profile, folder: Path, log: Path, place: Place = ANYWHERE) -> VllmEngine:
        """Load the model (20 s and more) and be ready to generate.

        `log` receives all that vLLM and its processes print. `place`: its GPUs, its KV cache, and whether it will be
        put to sleep. Raises UserError, naming `log`, where vLLM is absent or cannot start.
        """
        template = ChatTemplate.load(folder, profile.template, code=bool(profile.engine.trust_remote_code))
        with output_to(log), on_gpus(place.gpus):
            llm = _start(profile, folder, log, place)
        return cls(llm, template, profile.context, _ridge(profile, this_machine()), log)

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def markers(self) -> tuple[str, ...]:
        return self._template.markers

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        return len(self._template.ids(messages, thinking))

    async def tokens(self, text: str) -> tuple[int, ...]:
        return self._template.tokens(text)

    async def generate(self, request: Request) -> Reply:
        from vllm.exceptions import VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        check_labels(request)
        ids = [*self._template.ids(request.messages, request.thinking), *request.begun]
        if len(ids) + request.sampling.max_tokens > self._limits.context:
            raise ContextOverflow(len(ids), self._limits.context)
        mark = self._template.control(request.stop)
        try:
            output = await self._final(ids, _sampling(request, mark))
        except EngineDeadError as error:
            raise self._lost() from error
        except EngineGenerateError as error:
            raise EngineError(f"vLLM gave no reply ({first_line(error.__cause__ or error)})") from error
        except (VLLMClientError, ValueError) as error:
            raise InvalidRequest(str(error)) from error
        return self._reply(output, request, mark)

    def _lost(self) -> EngineLost:
        short = shortage(self._written.text())
        return EngineLost(
            f"vLLM's engine process ended since {short}" if short else f"vLLM's engine process ended (see {self._log})"
        )

    def _reply(self, output: RequestOutput, request: Request, mark: int | None) -> Reply:
        completion = output.outputs[0]
        finish = _finish(completion, request.stop, mark)
        tokens = tuple(completion.token_ids)
        if completion.stop_reason == request.stop and finish is Finish.MARK:
            # The stop may begin within a token.
            tokens = self._template.beginning(tokens, completion.text)
        elif finish is not Finish.LENGTH:
            tokens = tokens[:-1]
        return Reply(completion.text, finish, _usage(output), _labels(completion, request), tokens)

    async def _final(self, ids: list[int], sampling: SamplingParams) -> RequestOutput:
        if self._llm is None:
            raise EngineDied("the engine was closed")
        last: RequestOutput | None = None
        async for output in self._llm.generate({"prompt_token_ids": ids}, sampling, f"r{next(self._ids)}"):
            last = output
        if last is None:
            raise EngineError("vLLM ended a request without an output")
        return last

    async def sleep(self) -> None:
        """Move the weights to host memory and give up the KV cache. Never run here: a CPU engine cannot sleep."""
        if self._llm is not None:
            await self._llm.sleep(level=1)

    async def wake(self) -> None:
        """Take the GPU's memory again. Never run here. Raises EngineDied where that is not to be had."""
        if self._llm is None or not await self._llm.wake_up():
            raise EngineDied("the engine did not get its memory back")

    async def aclose(self) -> None:
        llm, self._llm = self._llm, None
        if llm is not None:
            llm.shutdown(timeout=SHUTDOWN_SECONDS)
            # Its destructor calls this again when Python ends and half of vLLM is gone.
            llm.shutdown = lambda timeout=None: None


def _arguments(profile: Profile, folder: Path, place: Place, on_cpu: bool) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": str(folder),
        # Its default would read pickles where it finds no safetensors.
        "load_format": "safetensors",
        "trust_remote_code": False,
        "max_model_len": profile.context,
        "enable_prefix_caching": True,
        "structured_outputs_config": {"backend": "outlines"},
        "generation_config": "vllm",
        # Labels are read from the model itself, before temperature, penalties and the like.
        "logprobs_mode": "raw_logprobs",
        "seed": 0,
        "disable_log_stats": True,
        # They hold transcripts.
        "enable_log_requests": False,
    }
    if on_cpu:
        # With a seed of its own a request may not be prefilled in chunks on CPU: vLLM 0.32 then rewinds a CUDA
        # generator, which a CPU has not, and its engine dies ("CPU Generator does not use offset").
        arguments |= {
            "block_size": CPU_BLOCK,
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": profile.context,
        }
    arguments |= profile.engine_arguments()
    if place.kv_bytes is not None:
        arguments["kv_cache_memory_bytes"] = place.kv_bytes
    if place.kv_bytes is not None and not on_cpu:
        # Of no weight then, but a start fails where this part of a GPU is not free.
        arguments["gpu_memory_utilization"] = _part(profile, place.kv_bytes)
    if place.sleeps:
        arguments["enable_sleep_mode"] = True
    return arguments


def _ridge(profile: Profile, machine: Machine) -> int:
    """See Limits; on a GPU by its data sheet."""
    if machine.device == "cpu":
        return CPU_RIDGE
    gpu, each = find_gpu(machine.name), bytes_per_weight(profile)
    return UNKNOWN_RIDGE if gpu is None or each is None else ridge(gpu, each)


def _part(profile: Profile, kv_bytes: int) -> float:
    """What weights and KV cache take of a GPU."""
    weights = loaded_bytes(profile) / (profile.engine.tensor_parallel_size or 1)
    return round(min(1.0, (weights + kv_bytes) / this_machine().memory_bytes), 3)


def _start(profile: Profile, folder: Path, log: Path, place: Place) -> AsyncLLM:
    _prepare_environment()
    try:
        from vllm import AsyncEngineArgs
        from vllm.platforms import current_platform
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError as error:
        raise UserError(
            f"vLLM cannot be imported ({error}); install it with scripts/setup.sh, or use --engine transformers, which "
            "is slower and runs anywhere"
        ) from error
    arguments, written = _arguments(profile, folder, place, on_cpu=current_platform.is_cpu()), Written(log)
    try:
        return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
    except Exception as error:
        raise not_started(profile.name, error, written.text(), log) from error


def not_started(name: str, error: Exception, written: str, log: Path) -> UserError:
    """What to tell where vLLM raised `error` at its start, and its processes have `written` this meanwhile."""
    short = shortage(f"{error}\n{written}")
    if short is not None:
        return UserError(f"{name}: vLLM could not start, since {short} (vLLM's own words are in {log})")
    return UserError(f"{name}: vLLM could not start ({first_line(error)}); the whole reason is in {log}")


def _prepare_environment() -> None:
    go_offline()
    be_loaded()
    os.environ["VLLM_RPC_BASE_PATH"] = str(make_sockets_folder())
    os.environ[HOST_VARIABLE] = str(os.getpid())
    os.environ.setdefault("VLLM_CPU_NUM_OF_RESERVED_CPU", "0")
    # Its processes are ended, not asked, so Python's tracker would complain about what they left to the kernel.
    os.environ["PYTHONWARNINGS"] = "ignore::UserWarning:multiprocessing.resource_tracker"
    warnings.filterwarnings("ignore", category=UserWarning, module="multiprocessing.resource_tracker")


def _sampling(request: Request, mark: int | None) -> SamplingParams:
    """`mark` is the control token that the request's `stop` is: no text shows it, so its id has to end the answer."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    s = request.sampling
    return SamplingParams(
        temperature=s.temperature,
        top_p=s.top_p,
        max_tokens=s.max_tokens,
        seed=s.seed,
        repetition_penalty=s.repetition_penalty,
        stop=[request.stop] if request.stop and mark is None else None,
        stop_token_ids=None if mark is None else [mark],
        structured_outputs=StructuredOutputsParams(regex=request.pattern) if request.pattern is not None else None,
        logprob_token_ids=list(request.labels) or None,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _finish(completion: CompletionOutput, stop: str, mark: int | None) -> Finish:
    match completion.finish_reason:
        case "length":
            return Finish.LENGTH
        # Where the mark is also what ends every answer, vLLM names no reason.
        case "stop" if completion.stop_reason == stop or (mark is not None and completion.token_ids[-1] == mark):
            return Finish.MARK
        case "stop":
            return Finish.STOP
        case other:
            raise EngineError(f"vLLM ended the request with {other!r}")


def _usage(output: RequestOutput) -> Usage:
    return Usage(
        prompt=len(output.prompt_token_ids or ()),
        cached=output.num_cached_tokens or 0,
        output=len(output.outputs[0].token_ids),
    )


def _labels(completion: CompletionOutput, request: Request) -> dict[int, float]:
    first = completion.logprobs[0] if request.labels and completion.logprobs else {}
    return {token: first[token].logprob for token in request.labels}
