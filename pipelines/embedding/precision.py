"""Which arithmetic an encoder computes in: what was asked for, what the hardware multiplies, what the model allows."""

from __future__ import annotations

import contextlib
from pathlib import Path

from pipelines.embedding.bert_files import read_bert

_CPU_FACTS = Path("/proc/cpuinfo")
_INT8_FLAGS = ("avx512_vnni", "amx_int8")
_BF16_FLAGS = ("avx512_bf16", "amx_bf16")


def resolve_precision(precision: str, folder: Path, device: str = "cpu", *, cpu_facts: Path = _CPU_FACTS) -> str:
    """The arithmetic that a precision setting means here: "int8", "bf16" or "fp32".

    "auto" takes the fastest one that the hardware multiplies; "int8" among them only for models that
    a packed forward pass is known for.

    Args:
        folder: The model's files.
        device: "cpu" or "cuda".

    Examples:
        >>> resolve_precision("fp32", Path())
        'fp32'
    """
    if precision != "auto":
        return precision
    if device == "cuda":
        return "bf16"
    if multiplies_int8(cpu_facts=cpu_facts) and read_bert(folder) is not None:
        return "int8"
    return "bf16" if _cpu_flags(cpu_facts).intersection(_BF16_FLAGS) else "fp32"


def multiplies_int8(*, cpu_facts: Path = _CPU_FACTS) -> bool:
    """Whether the processor multiplies 8-bit integers faster than others."""
    return bool(_cpu_flags(cpu_facts).intersection(_INT8_FLAGS))


def _cpu_flags(cpu_facts: Path) -> frozenset[str]:
    with contextlib.suppress(OSError):
        lines = cpu_facts.read_text().splitlines()
        return frozenset(word for line in lines if line.startswith("flags") for word in line.split())
    return frozenset()
