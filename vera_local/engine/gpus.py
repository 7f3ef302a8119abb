"""What common GPUs can do, by their data sheets. Knows no model, and measures nothing.

Every figure is the vendor's own for a dense matrix product (half of what is printed "with sparsity"); nothing here was
measured. Real work reaches a part of it. GPUs without bfloat16 (V100, T4) are left out. The figures of GH200, A10G,
RTX A6000, 6000 Ada, PRO 6000 Max-Q, 5090 and 3090 are as remembered, those of the others were compared with published
copies of the data sheets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TERA = 1e12


@dataclass(frozen=True, slots=True)
class Gpu:
    """One model of GPU: memory in bytes, bandwidth of that memory in bytes/s, and dense FLOP/s of the tensor cores with
    sums kept in 32 bits (`fp8`: None where they compute with no 8-bit numbers)."""

    name: str
    memory_bytes: int
    bandwidth: float
    bf16: float
    fp8: float | None

    def flops(self, bytes_per_weight: float) -> float:
        """FLOP/s with weights of that mean size: about a byte is FP8; fewer are unpacked to 16 bits before use."""
        return self.fp8 if 0.8 <= bytes_per_weight <= 1.4 and self.fp8 is not None else self.bf16


def _gpu(name: str, gigabytes: int, bandwidth: float, bf16: float, fp8: float | None = None) -> Gpu:
    """Bandwidth in TB/s and FLOPs in TFLOP/s, as data sheets print them."""
    return Gpu(name, gigabytes * 10**9, bandwidth * TERA, bf16 * TERA, None if fp8 is None else fp8 * TERA)


# The words that tell a GPU by its name, in small letters; the first line whose words all occur is the one, so a special
# version stands before the general one. What people call H100 without more is the SXM version, and A100 that of 80 GB.
_TABLE: tuple[tuple[str, Gpu], ...] = (
    ("b200", _gpu("B200", 180, 7.7, 2250, 4500)),
    ("gh200 144gb", _gpu("GH200 144 GB", 144, 4.9, 989, 1979)),
    ("gh200", _gpu("GH200 96 GB", 96, 4.0, 989, 1979)),
    ("h200 nvl", _gpu("H200 NVL", 141, 4.8, 835, 1671)),
    ("h200", _gpu("H200", 141, 4.8, 989, 1979)),
    ("h100 nvl", _gpu("H100 NVL", 94, 3.9, 835, 1671)),
    ("h100 pcie", _gpu("H100 PCIe", 80, 2.0, 756, 1513)),
    ("h100", _gpu("H100 SXM", 80, 3.35, 989, 1979)),
    ("a100 40gb", _gpu("A100 40 GB", 40, 1.555, 312)),
    ("a100 pcie", _gpu("A100 80 GB PCIe", 80, 1.935, 312)),
    ("a100", _gpu("A100 80 GB SXM", 80, 2.039, 312)),
    ("l40s", _gpu("L40S", 48, 0.864, 362, 733)),
    ("l40", _gpu("L40", 48, 0.864, 181, 362)),
    ("l4", _gpu("L4", 24, 0.3, 121, 242)),
    ("a40", _gpu("A40", 48, 0.696, 150)),
    ("a10g", _gpu("A10G", 24, 0.6, 70)),
    ("a10", _gpu("A10", 24, 0.6, 125)),
    ("a6000", _gpu("RTX A6000", 48, 0.768, 155)),
    ("rtx 6000 ada", _gpu("RTX 6000 Ada", 48, 0.96, 364, 728)),
    ("rtx pro 6000 max q", _gpu("RTX PRO 6000 Blackwell Max-Q", 96, 1.792, 439, 878)),
    ("rtx pro 6000", _gpu("RTX PRO 6000 Blackwell", 96, 1.792, 504, 1007)),
    ("rtx 5090", _gpu("RTX 5090", 32, 1.792, 209, 419)),
    ("rtx 4090", _gpu("RTX 4090", 24, 1.008, 165, 330)),
    ("rtx 3090 ti", _gpu("RTX 3090 Ti", 24, 1.008, 80)),
    ("rtx 3090", _gpu("RTX 3090", 24, 0.936, 71)),
)

GPUS = tuple(gpu for _, gpu in _TABLE)
"""All that is known here."""

_OTHERS = {"laptop", "d", "mig"}
"""Words behind a known name that make it another GPU, or a part of one."""


def find_gpu(name: str) -> Gpu | None:
    """The GPU that nvidia-smi, or a person, calls by that name; None where it is not in the table."""
    parted = re.sub(r"\b(rtx|nvidia)(?=\w)", r"\1 ", name.lower())
    words = set(re.findall(r"[a-z0-9]+", re.sub(r"\b(\d+) ?gb?\b", r"\1gb", parted)))
    if words & _OTHERS:
        return None
    return next((gpu for wanted, gpu in _TABLE if words.issuperset(wanted.split())), None)


def ridge(gpu: Gpu, bytes_per_weight: float) -> int:
    """How many tokens a step computes in the time that reading the weights once takes: fewer cost no less time."""
    return round(gpu.flops(bytes_per_weight) * bytes_per_weight / (2 * gpu.bandwidth))
