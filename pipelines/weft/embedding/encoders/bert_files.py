"""What the files of a sentence-transformers folder say about a BERT-like model, read without loading it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.embedding.models import read_json, stated_length

WEIGHTS = "model.safetensors"
_ARCHITECTURES = frozenset({"bert", "roberta", "xlm-roberta"})
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_WORDS = "embeddings.word_embeddings.weight"
_LONGEST_HEADER = 100_000_000  # bytes, as the format itself bounds it


@dataclass(frozen=True, slots=True)
class Bert:
    """A BERT, RoBERTa or XLM-RoBERTa with absolute positions and exact GELU, and how it gives one vector for a text."""

    pooling: str  # "mean" of the tokens' last states, or "cls", the first token's
    prefix: str  # what the names of its weights begin with
    heads: int  # of attention
    epsilon: float  # of layer normalisation
    first_position: int  # of a text's first token
    pad: int  # the padding token
    longest: int  # how many tokens it reads, special ones included


def read_bert(folder: Path) -> Bert | None:
    """The model in a folder, if `packed` computes it: what follows is pooling, and nothing else but normalisation."""
    config, modules = read_json(folder / "config.json"), read_json(folder / "modules.json")
    if not isinstance(config, dict) or not isinstance(modules, list) or not _is_plain(config):
        return None
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        return None
    pooling = _pooling(read_json(folder / str(modules[1].get("path", "")) / "config.json"))
    prefix = _prefix(folder / WEIGHTS)
    if pooling is None or prefix is None:
        return None
    pad = int(config.get("pad_token_id") or 0)
    first = 0 if config["model_type"] == "bert" else pad + 1
    positions = int(config["max_position_embeddings"]) - first
    return Bert(
        pooling=pooling,
        prefix=prefix,
        heads=int(config["num_attention_heads"]),
        epsilon=float(config["layer_norm_eps"]),
        first_position=first,
        pad=pad,
        longest=min(positions, stated_length(folder) or positions),
    )


def read_pair_scorer(folder: Path) -> Bert | None:
    """The model in a folder, if it is a BERT that gives one number for two texts; else None."""
    config, prefix = read_json(folder / "config.json"), _prefix(folder / WEIGHTS)
    if not isinstance(config, dict) or prefix is None or not _is_plain(config):
        return None
    if config.get("architectures") != ["BertForSequenceClassification"] or len(config.get("id2label") or "") != 1:
        return None
    return Bert(
        pooling="cls",
        prefix=prefix,
        heads=int(config["num_attention_heads"]),
        epsilon=float(config["layer_norm_eps"]),
        first_position=0,
        pad=int(config.get("pad_token_id") or 0),
        longest=int(config["max_position_embeddings"]),
    )


def _is_plain(config: Mapping[str, Any]) -> bool:
    needed = {"num_attention_heads", "layer_norm_eps", "max_position_embeddings"}
    return (
        config.get("model_type") in _ARCHITECTURES
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder", False)
        and needed <= config.keys()
    )


def _pooling(config: Any) -> str | None:
    if not isinstance(config, dict) or config.get("include_prompt") is False:
        return None
    if isinstance(mode := config.get("pooling_mode"), str):
        return mode if mode in _POOLINGS.values() else None
    chosen = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
    return _POOLINGS.get(chosen[0]) if len(chosen) == 1 else None


def _prefix(weights: Path) -> str | None:
    """What stands before the names of the weights; None where they are not in one file of that format."""
    with contextlib.suppress(OSError, ValueError), weights.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        names = json.loads(file.read(min(length, _LONGEST_HEADER)))
        return next((name.removesuffix(_WORDS) for name in names if name.endswith(_WORDS)), None)
    return None
