"""Data sheets of GPUs, by name."""

from __future__ import annotations

import pytest

from vera_local.engine.gpus import GPUS, Gpu, find_gpu, ridge


@pytest.mark.parametrize(
    ("said", "is_a"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA GH200 480GB", "GH200 96 GB"),
        ("NVIDIA GH200 144G HBM3e", "GH200 144 GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 40 GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 40 GB"),
        ("NVIDIA A100 80GB PCIe", "A100 80 GB PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100 80 GB SXM"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA RTX A6000", "RTX A6000"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell Max-Q"),
        ("NVIDIA GeForce RTX 5090", "RTX 5090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("h200", "H200"),
        ("NVIDIA B200", "B200"),
    ],
)
def test_a_gpu_is_told_by_what_nvidia_smi_calls_it(said: str, is_a: str) -> None:
    found = find_gpu(said)
    assert found is not None
    assert found.name == is_a


@pytest.mark.parametrize(
    "said",
    ["Tesla V100-SXM2-16GB", "NVIDIA A1000", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D", ""],
)
def test_what_is_not_in_the_table_is_not_taken_for_what_is(said: str) -> None:
    assert find_gpu(said) is None


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_every_gpu_is_found_by_its_own_name(gpu: Gpu) -> None:
    assert find_gpu(gpu.name) is gpu


def test_the_ridge_is_where_computing_takes_as_long_as_reading_the_weights() -> None:
    h200 = find_gpu("H200")
    assert h200 is not None
    parameters, width = 32e9, ridge(h200, 2)
    assert 2 * parameters * width / h200.bf16 == pytest.approx(2 * parameters / h200.bandwidth, rel=0.01)
    assert width == 206
    assert ridge(h200, 1) == 206, "8-bit numbers are read and computed twice as fast"
    assert ridge(h200, 1.05) == 216, "so are models of which a part is kept in 16 bits"
    assert ridge(h200, 0.5) == 52, "4-bit weights are read fast and computed in 16 bits"
    l4 = find_gpu("L4")
    assert l4 is not None
    assert ridge(l4, 2) == 403


def test_without_fp8_an_8_bit_weight_is_computed_in_16_bits() -> None:
    a100 = find_gpu("A100")
    assert a100 is not None
    assert a100.fp8 is None
    assert a100.flops(1) == a100.bf16
