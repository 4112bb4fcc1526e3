"""Which arithmetic an encoder computes in: what was asked for, what the hardware multiplies, what the model allows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_CPU_FACTS = Path("/proc/cpuinfo")
_INT8_FLAGS = ("avx512_vnni", "amx_int8")
_BF16_FLAGS = ("avx512_bf16", "amx_bf16")
_ARCHITECTURES = frozenset({"bert", "roberta", "xlm-roberta"})
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


def resolve_precision(precision: str, folder: Path, device: str = "cpu", *, cpu_facts: Path = _CPU_FACTS) -> str:
    """The arithmetic that a precision setting means here: "int8", "bf16" or "fp32".

    "auto" takes the fastest one that the hardware multiplies; "int8" among them only for models that `pooling_of` a
    packed forward pass is known for.

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
    flags = _cpu_flags(cpu_facts)
    if flags.intersection(_INT8_FLAGS) and pooling_of(folder) is not None:
        return "int8"
    return "bf16" if flags.intersection(_BF16_FLAGS) else "fp32"


def pooling_of(folder: Path) -> str | None:
    """How a model makes one vector of its tokens', "mean" or "cls", if it is one that `packed` computes; else None.

    Such a model is BERT, RoBERTa or XLM-RoBERTa with absolute positions and exact GELU, followed by pooling and
    nothing else but normalisation.
    """
    config = _json(folder / "config.json")
    modules = _json(folder / "modules.json")
    if not isinstance(config, dict) or not isinstance(modules, list) or not _is_plain_bert(config):
        return None
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        return None
    return _pooling(_json(folder / str(modules[1].get("path", "")) / "config.json"))


def _is_plain_bert(config: Mapping[str, Any]) -> bool:
    return (
        config.get("model_type") in _ARCHITECTURES
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder", False)
    )


def _pooling(config: Any) -> str | None:
    if not isinstance(config, dict):
        return None
    if isinstance(mode := config.get("pooling_mode"), str):
        return mode if mode in _POOLINGS.values() else None
    chosen = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
    return _POOLINGS.get(chosen[0]) if len(chosen) == 1 else None


def _cpu_flags(cpu_facts: Path) -> frozenset[str]:
    with contextlib.suppress(OSError):
        lines = cpu_facts.read_text().splitlines()
        return frozenset(word for line in lines if line.startswith("flags") for word in line.split())
    return frozenset()


def _json(path: Path) -> Any:
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))
    return None
