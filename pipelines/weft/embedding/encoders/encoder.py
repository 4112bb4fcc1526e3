"""The encoder: texts to unit vectors, by whatever computes the configured model fastest here."""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import Protocol

from weft.domain.errors import ConfigurationError, ModelUnavailableError
from weft.embedding.encoders.bert_files import Bert, read_bert, read_pair_scorer
from weft.embedding.encoders.numpy_encoder import NumpyEncoder
from weft.embedding.encoders.precision import AUTO, device_of, resolve_precision, warn_if_slow
from weft.embedding.models import locate
from weft.embedding.ports import PairScorer, TextEncoder
from weft.embedding.settings import CrossEncoderSettings, EmbeddingSettings
from weft.runtime.extras import extras_named, installed

_INT8 = "weft.embedding.encoders.int8_models:Int8Encoder"
_INT8_PAIRS = "weft.embedding.encoders.int8_models:Int8CrossEncoder"
_PAIRS = "weft.embedding.encoders.cross_encoder:CrossEncoderModel"
_GENERAL = "weft.embedding.encoders.sentence_encoder:SentenceEncoder"


class Encoder(TextEncoder, Protocol):
    """One that is loaded here; it has the prompt of contents before each text."""

    dimension: int
    max_tokens: int  # longest text that is read whole, in `count_tokens`; of longer ones the end is left out

    @property
    def queries(self) -> TextEncoder:
        """The same model, with the prompt of queries before each text."""
        ...

    def count_tokens(self, text: str) -> int:
        """Length of a text in the encoder's own tokens, special tokens not counted."""
        ...


def load_encoder(settings: EmbeddingSettings) -> Encoder:
    """The configured encoder, ready to encode contents, and by its `queries` what they are asked by."""
    folder = locate(settings)
    if not installed("torch") and (model := read_bert(folder)) is not None and settings.device != "cuda":
        # PyTorch comes with extras: without it, NumPy computes what questions need.
        return NumpyEncoder(folder, model, settings)
    device = _device(settings.device)
    precision = resolve_precision(settings.precision, folder, device)
    if precision == "int8":
        if settings.device == "cuda":
            raise ConfigurationError(
                "embedding.device: expected cpu or auto, for these vectors are computed in int8, found cuda: use auto, "
                "or move the store by `weft index --full --set embedding.precision=bf16`"
            )
        warn_if_slow(precision)
        with extras_named():
            int8_encoder: Encoder = pkgutil.resolve_name(_INT8)(folder, settings)
        return int8_encoder
    if device == "cpu":
        warn_if_slow(precision)
    # Importing sentence-transformers takes longer than loading a small model, and 8 bits do without.
    with extras_named():
        encoder: Encoder = pkgutil.resolve_name(_GENERAL)(folder, settings, device=device, autocast=precision == "bf16")
    return encoder


def load_pair_encoder(settings: CrossEncoderSettings, device: str, *, threads: int) -> PairScorer | None:
    """The configured cross-encoder; None where none is named."""
    if not settings.model:
        return None
    folder = Path(settings.model).expanduser()
    packed = _packed_pairs(folder, settings, device)
    with extras_named():
        pair_encoder: PairScorer = (
            pkgutil.resolve_name(_PAIRS)(settings, device, threads)
            if packed is None
            else pkgutil.resolve_name(_INT8_PAIRS)(folder, packed, settings, threads)
        )
    return pair_encoder


def _packed_pairs(folder: Path, settings: CrossEncoderSettings, device: str) -> Bert | None:
    """The model as the packed forward pass reads it; None where something else is to compute it."""
    if settings.precision == "fp32" or device_of(device) == "cuda":
        return None
    model = read_pair_scorer(folder)
    if model is None and settings.precision == "int8":
        raise ModelUnavailableError(
            f"retrieval.rerank.cross_encoder.precision: int8 takes the folder of a BERT that gives one number per "
            f"pair, found another model at {settings.model!r}: use auto or fp32"
        )
    return model


def _device(wanted: str) -> str:
    if wanted == "cuda" and device_of(AUTO) != "cuda":
        raise ModelUnavailableError("embedding.device: cuda is wanted, but PyTorch finds none here: use auto or cpu")
    return device_of(wanted)
