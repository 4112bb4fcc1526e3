"""Which arithmetic an encoder computes in: what was asked for, what a store is pinned to, what the processor does best.

A store's precision is chosen once, with its first generation: no generation mixes precisions.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Mapping
from pathlib import Path

from weft.domain.errors import ConfigurationError
from weft.embedding.encoders.bert_files import read_bert
from weft.embedding.models import display_name, locate
from weft.embedding.settings import EmbeddingSettings
from weft.runtime.extras import installed

log = logging.getLogger(__name__)

AUTO = "auto"
CPU_FACTS = Path("/proc/cpuinfo")
INT8_REVISION = 2
"""Part of what vectors in int8 were made with. 1: weights rounded more finely, which AVX2 alone cannot multiply."""

_FLAGS = {"int8": frozenset({"avx2"}), "bf16": frozenset({"avx512_bf16", "amx_bf16"})}
_SPEED = {"int8": "two thirds", "bf16": "a third or less"}  # of fp32's, on a processor without any of the flags


def resolve_precision(precision: str, folder: Path, device: str = "cpu", *, cpu_facts: Path | None = None) -> str:
    """The arithmetic that a precision setting means here: "int8", "bf16" or "fp32"; "auto" takes the fastest one."""
    if precision != AUTO:
        return precision
    if device == "cuda":
        return "bf16"
    if _multiplies("int8", cpu_facts) and read_bert(folder) is not None:
        return "int8"
    return "bf16" if _multiplies("bf16", cpu_facts) else "fp32"


def pinned(
    settings: EmbeddingSettings, made_in: Mapping[str, str], *, moving: bool = False, auto: str = AUTO
) -> EmbeddingSettings:
    """Settings in which every encoder names the arithmetic that it computes in, and the device where it is known.

    Args:
        auto: The device that "auto" means where texts will be encoded; "auto" leaves that to who encodes them.
    """
    own, *further = (_pinned(one, made_in, moving, auto) for one in settings.encoders)
    more = tuple({**one, **facts} for one, facts in zip(settings.further, further, strict=True))
    return settings.model_copy(update={**own, "further": more})


def devices_of(settings: EmbeddingSettings) -> dict[str, str]:
    """The device that each encoder computes on by its name, by `pinned` settings: "cpu" or "cuda"."""
    return {
        display_name(locate(one), one): "cpu" if one.precision == "int8" else device_of(one.device)
        for one in settings.encoders
    }


def precisions_of(settings: EmbeddingSettings) -> dict[str, str]:
    """The precision of each encoder by its name, as `pinned` settings say it."""
    return {display_name(locate(one), one): one.precision for one in settings.encoders}


def device_of(wanted: str) -> str:
    """The device that a setting means: "auto" is "cuda" where PyTorch finds one, and else "cpu"."""
    if wanted != AUTO:
        return wanted
    if not installed("torch"):
        return "cpu"
    import torch  # noqa: PLC0415  importing it takes longer than all else that is decided before models are loaded

    return "cuda" if torch.cuda.is_available() else "cpu"


def instructions_of(device: str) -> str:
    """The vector instructions that PyTorch computes with on a device, such as "AVX2" or "AVX512"; "CUDA" on a GPU.

    "NumPy" where there is no PyTorch.
    Sums are rounded by their width, so the vectors of one text differ a little between two of them.
    """
    if device_of(device) == "cuda":
        return "CUDA"
    if not installed("torch"):
        return "NumPy"
    import torch  # noqa: PLC0415  as above

    return torch.backends.cpu.get_cpu_capability()


def warn_if_slow(precision: str, *, cpu_facts: Path | None = None) -> None:
    """Say once what a precision costs that this processor has no instructions for."""
    if precision in _FLAGS and not _multiplies(precision, cpu_facts):
        _say_slow(precision)


def _pinned(settings: EmbeddingSettings, made_in: Mapping[str, str], moving: bool, auto: str) -> dict[str, str]:
    if settings.device != AUTO:
        return {"precision": _precision(settings, made_in, moving), "device": settings.device}
    precision = _precision(settings.model_copy(update={"device": auto}), made_in, moving)
    return {"precision": precision, "device": "cpu" if precision == "int8" else auto}


def _precision(settings: EmbeddingSettings, made_in: Mapping[str, str], moving: bool) -> str:
    folder, wanted = locate(settings), settings.precision
    name = display_name(folder, settings)
    there = made_in.get(name)
    if wanted == AUTO:
        return there or resolve_precision(wanted, folder, device_of(settings.device))
    if there in (None, wanted) or moving:
        return wanted
    raise ConfigurationError(
        f"embedding.precision: expected {there}, in which the vectors of {name} in this store were made, found "
        f"{wanted}: use auto, or move the store by `weft index --full --set embedding.precision={wanted}`"
    )


@functools.cache
def _say_slow(precision: str) -> None:
    log.warning(
        "embedding.precision: this processor has no instructions for %s, in which the store was made: texts are "
        "encoded at %s of the speed of fp32; move it by `weft index --full "
        "--set embedding.precision=fp32`",
        precision,
        _SPEED[precision],
    )


def _multiplies(precision: str, cpu_facts: Path | None) -> bool:
    return bool(_cpu_flags(cpu_facts or CPU_FACTS).intersection(_FLAGS[precision]))


def _cpu_flags(cpu_facts: Path) -> frozenset[str]:
    with contextlib.suppress(OSError):
        lines = cpu_facts.read_text().splitlines()
        return frozenset(word for line in lines if line.startswith("flags") for word in line.split())
    return frozenset()
