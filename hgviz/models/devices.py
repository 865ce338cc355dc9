"""Where a model computes, and in what numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from hgviz.core import HgvizError
from hgviz.errors import choose, require

DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = {
    "float64": torch.float64, "float32": torch.float32,
    "bfloat16": torch.bfloat16, "float16": torch.float16,
}  # fmt: skip
# parts of messages of too little memory, and not of its misuse ("illegal memory access")
OUT_OF_MEMORY = ("out of memory", "not enough memory", "allocate memory", "alloc_failed")


def device_of(name: str) -> str:
    """The device that a name stands for on this machine.

    Raises HgvizError for an unknown name, and for a device that is not there.
    """
    source = "HGVIZ_DEVICE" if name == "auto" else "device"
    name = os.environ.get("HGVIZ_DEVICE", "auto") if name == "auto" else name
    require(name in DEVICES, f"unknown {source} {name!r}", f"Choose from {', '.join(DEVICES)}")
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next((device for device, is_here in here.items() if is_here), "cpu")
    what = f"{name} is not available: torch {torch.__version__} finds no such device"
    require(here.get(name, True), what, "Use cpu")
    return name


def has_bfloat16(device: str) -> bool:
    """Whether a device multiplies in bfloat16 itself; a CPU that converts to it is slow."""
    return device != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def dtype_of(name: str) -> torch.dtype:
    """The dtype of a name. Raises HgvizError for an unknown one."""
    return DTYPES[choose(name, DTYPES, "dtype")]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use so many threads: sums over another number of them end in other bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def room(device: str, why: str) -> Iterator[None]:
    """Turn each library's way of running out of memory into one HgvizError."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        do = "Shorten the text" if device == "cpu" else "Shorten the text, or use --device cpu"
        raise HgvizError(f"out of memory on {device}: {why}", do) from None


def out_of_memory(error: BaseException) -> bool:
    """Whether an error is of too little memory: not every library has a class of its own for it."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return any(words in str(error).lower() for words in OUT_OF_MEMORY)


def require_room(what: str, needed: int, do: str) -> None:
    """Raise HgvizError where so many bytes are more than this machine has free, if that is known.

    Linux grants them all the same, and ends whoever then uses them.
    """
    free = free_memory()
    if free is not None and needed > free:
        sizes = f"it needs {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"
        raise HgvizError(f"{what} does not fit in memory: {sizes}", do)


def free_memory() -> int | None:
    """Bytes that this process may still take, None where that is not known: but on Linux.

    A limit of the control group counts as the end of the machine.
    """
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in lines)
        free = int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return None
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # "max" is no number
        limit = int((group / "memory.max").read_text())
        free = min(free, limit - int((group / "memory.current").read_text()))
    return max(free, 0)
