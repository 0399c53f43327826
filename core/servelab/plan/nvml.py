"""The GPU that is in the machine, as its driver reports it (NVML)."""

from __future__ import annotations

from dataclasses import dataclass

from servelab.plan.devices import GIB


@dataclass(frozen=True, slots=True)
class Installed:
    """A GPU's name, its memory and what is used of it, GiB, how many of them there are, and the driver."""

    name: str
    memory_gib: float
    used_gib: float
    count: int
    driver: str


def installed() -> Installed:
    """The first GPU. ValueError where there is none, or no NVML."""
    try:
        import pynvml
    except ModuleNotFoundError:
        raise ValueError("pynvml is not installed; pip install 'servelab[gpu]'") from None
    try:
        pynvml.nvmlInit()
        try:
            first = pynvml.nvmlDeviceGetHandleByIndex(0)
            memory = pynvml.nvmlDeviceGetMemoryInfo(first)
            return Installed(
                pynvml.nvmlDeviceGetName(first), memory.total / GIB, memory.used / GIB, pynvml.nvmlDeviceGetCount(),
                pynvml.nvmlSystemGetDriverVersion(),
            )  # fmt: skip
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise ValueError(f"NVML finds no GPU here ({error}); leave --nvml out, or run it on a GPU host") from None
