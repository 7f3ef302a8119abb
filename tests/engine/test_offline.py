from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vera_local.engine.offline import go_offline

SWITCHES = {
    "DO_NOT_TRACK": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_REPORT_URL": "http://127.0.0.1:9/",
    "DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_XET": "1",
    "HF_XET_TELEMETRY_ENABLED": "0",
    "OTEL_SDK_DISABLED": "true",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    "DISABLE_SAFETENSORS_CONVERSION": "1",
    "USE_HUB_KERNELS": "0",
    "VLLM_USE_MODELSCOPE": "0",
    "FLASHINFER_CUBINS_REPOSITORY": "http://127.0.0.1:9/",
    "FLASHINFER_NO_DOWNLOAD": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_SOCKET_IFNAME": "lo",
}

COMMAND_LINE = """
import json, os, sys

HEAVY = ("vllm", "transformers", "torch", "huggingface_hub")
switches = json.loads(sys.argv.pop())
left_on = {}

class Watch:
    # Asked for every module before it is imported; finds none itself.
    def find_spec(self, name, path=None, target=None):
        if name in (*HEAVY, "vera_local.cli.app"):
            left_on.setdefault(name, [key for key in switches if os.environ.get(key) != switches[key]])

sys.meta_path.insert(0, Watch())
from vera_local.cli import main

early = list(left_on)
sys.argv = ["vera-local", "--help"]
try:
    main()
except SystemExit as end:
    code = end.code
# As the engines do once a command needs them; these are the modules that read the switches.
import huggingface_hub.constants
print()
print(json.dumps({
    "code": code,
    "early": early,
    "left_on": left_on,
    "hub_offline": huggingface_hub.constants.HF_HUB_OFFLINE,
}))
"""
"""The command line in a fresh process, where every import of a heavy module is seen."""


@pytest.mark.parametrize("before", [{}, dict.fromkeys(SWITCHES, "other")])
def test_every_switch_is_set_whatever_it_was(monkeypatch: pytest.MonkeyPatch, before: dict[str, str]) -> None:
    monkeypatch.setattr(os, "environ", environ := dict(before))
    go_offline()
    assert environ == SWITCHES


def test_the_command_line_goes_offline_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in SWITCHES}
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND_LINE, json.dumps(SWITCHES)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout.splitlines()[-1])
    assert seen["early"] == []
    assert {"vera_local.cli.app", "huggingface_hub"} <= seen["left_on"].keys()
    assert all(left == [] for left in seen["left_on"].values()), seen["left_on"]
    assert seen["hub_offline"] is True
    assert seen["code"] == 0
