"""Device utilization of a run: speed, MFU, memory.

    MFU = training FLOPs of the model per second / peak FLOPs per second of the device

FLOPs are counted as in ``models/flops.py`` (matrix products only, attention at the full window, the backward pass twice
the forward pass), so recomputation does not count. Seconds are those of training, without
evaluations, checkpoints and compilation. The peak is the vendor's for dense matrices in bfloat16 or float16 with sums
in float32. For float32 and CPUs there is no MFU unless the settings give a peak (``MachineConfig.peak_flops``).
"""

from __future__ import annotations

import sys
from typing import Any

import torch

# TFLOPs per second by a part of the device's name; the first that fits counts. From NVIDIA's data sheets, half of the
# figure for sparse matrices. Other cards, and slower ones that share a name, have none.
PEAKS: dict[str, float | None] = {
    "H100 NVL": None,
    "H200 NVL": None,
    "H100 PCIe": 756.5,
    "H200": 989.5,
    "H100": 989.5,
    "H800": 989.5,
    "A100": 312.0,
    "A40": 149.7,
    "A10": 125.0,
    "L40S": 362.0,
    "L4": 121.0,
    "T4": 65.0,
    "V100 PCIE": 112.0,
    "V100": 125.0,
}


def peak_flops(device_name: str, precision: str) -> float | None:
    """Return the peak FLOPs per second of a card in a precision, or None if unknown."""
    if precision == "float32":
        return None
    words = device_name.replace("-", " ").split()
    for name, teraflops in PEAKS.items():
        parts = name.split()
        if any(words[begin : begin + len(parts)] == parts for begin in range(len(words))):
            return teraflops and teraflops * 1e12
    return None


def peak_of(device: torch.device, precision: str) -> float | None:
    """Return the peak FLOPs per second of a device in a precision, or None if unknown."""
    return peak_flops(torch.cuda.get_device_name(device), precision) if device.type == "cuda" else None


def speed_figures(
    tokens_per_second: float, *, bytes_per_token: float, flops_per_token: float, peak: float | None
) -> dict[str, Any]:
    """Return the speed figures of a training line.

    Args:
        tokens_per_second: Events trained on per second.
        bytes_per_token: Bytes of raw text per event, over the whole corpus.
        flops_per_token: Training FLOPs per event.
        peak: Peak FLOPs per second of the device; None if unknown.
    """
    return {
        "tokens_per_second": tokens_per_second,
        "bytes_per_second": tokens_per_second * bytes_per_token,
        "mfu": None if peak is None else tokens_per_second * flops_per_token / peak,
        "peak_flops": peak,
    }


def peak_memory_bytes(device: torch.device) -> int | None:
    """Return the peak memory in bytes: of tensors on a card, else of the process. None if unknown."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak_memory(device: torch.device) -> None:
    """Reset the peak memory of a card; that of a process cannot be reset."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
