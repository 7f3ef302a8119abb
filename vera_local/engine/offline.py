"""Switches telemetry and hub access off, before any heavy import. Knows nothing of what is imported later."""

from __future__ import annotations

import os

SWITCHES = {
    "DO_NOT_TRACK": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Where it would report that it is switched off.
    "RAY_USAGE_STATS_REPORT_URL": "http://127.0.0.1:9/",
    "DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # The hub's downloads in machine code, which no audit hook sees, and what they report.
    "HF_HUB_DISABLE_XET": "1",
    "HF_XET_TELEMETRY_ENABLED": "0",
    "OTEL_SDK_DISABLED": "true",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    # transformers would ask the hub in the background for a model's weights in another format.
    "DISABLE_SAFETENSORS_CONVERSION": "1",
    # Compiled kernels from the hub.
    "USE_HUB_KERNELS": "0",
    # Another hub than Hugging Face's.
    "VLLM_USE_MODELSCOPE": "0",
    # On a GPU vLLM asks NVIDIA's server whether FlashInfer could fetch kernels there: it shall find none.
    "FLASHINFER_CUBINS_REPOSITORY": "http://127.0.0.1:9/",
    "FLASHINFER_NO_DOWNLOAD": "1",
    # vLLM otherwise learns its own address by connecting a UDP socket to a public one.
    "VLLM_HOST_IP": "127.0.0.1",
    # The processes of one model talk over loopback, not over an interface that others can reach.
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_SOCKET_IFNAME": "lo",
}


def go_offline() -> None:
    """Set the environment of this process and its children; call it before vllm or transformers is imported."""
    os.environ.update(SWITCHES)
