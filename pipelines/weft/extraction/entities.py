"""Find entities in texts with a GLiNER checkpoint; the one module that imports `gliner` at run time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import onnxruntime
import torch
from gliner import GLiNER

from weft.domain.chunks import Mention
from weft.domain.errors import ModelUnavailableError
from weft.extraction.checkpoints import NAME_ANOTHER, onnx_file_of
from weft.extraction.scores import scores_of
from weft.extraction.settings import WINDOW_OVERLAP_WORDS, WINDOW_WORDS, ExtractionSettings
from weft.extraction.windows import Window, WindowLimits, windows, without_overlaps, words_of
from weft.runtime.storage.errors import advice_on

_POSITIONS: Final = 512  # of the encoders GLiNER models are built on; their tokenizers often name no limit
_BATCHES: Final = {"cpu": 1, "cuda": 32}  # windows per call: on a CPU 1 is faster than 8, which pads all to the longest


class EntityExtractor:
    """A recogniser that is loaded once and then asked in batches."""

    def __init__(self, settings: ExtractionSettings, *, threads: int = 1) -> None:
        """Load the checkpoint."""
        self._settings = settings
        self._device = _device_of(settings)
        self._model = _load(settings, threads, self._device)
        self._tokenizer = self._model.data_processor.transformer_tokenizer
        self._room = self._room_beside_labels()
        self._scores = scores_of(settings)
        self._thresholds = {label: self._scores.thresholds.get(label, settings.threshold) for label in settings.labels}

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Mentions of every text, in text order and without overlaps; spans are characters of the whole text."""
        parts = [(index, window) for index, text in enumerate(texts) for window in self._windows(text)]
        # Texts of like length share a batch, because the shorter ones are padded to the longest.
        parts.sort(key=lambda part: part[1].end - part[1].start)
        predicted = self._predict([texts[index][window.start : window.end] for index, window in parts])
        mentions: list[list[Mention]] = [[] for _ in texts]
        for (index, window), spans in zip(parts, predicted, strict=True):
            mentions[index] += self._mentions(texts[index], window, spans)
        confidence = self._scores.confidence_of
        return [
            [replace(each, score=confidence(each.label, each.score)) for each in without_overlaps(of_text)]
            for of_text in mentions
        ]

    def _room_beside_labels(self) -> WindowLimits:
        settings = self._settings
        labels = len(self._tokenizer(list(settings.labels), is_split_into_words=True)["input_ids"])
        # Every label has a marker before it; a separator and the encoder's two own tokens come on top.
        prompt = labels + len(settings.labels) + 3
        tokens = min(self._tokenizer.model_max_length, _POSITIONS) - prompt
        return WindowLimits(words=WINDOW_WORDS, tokens=max(tokens, 1), overlap=WINDOW_OVERLAP_WORDS)

    def _windows(self, text: str) -> list[Window]:
        words = words_of(text)
        if not words:
            return []
        pieces = self._tokenizer(words, is_split_into_words=True, add_special_tokens=False, verbose=False).word_ids()
        counts = Counter(pieces)
        return windows(text, [counts[index] for index in range(len(words))], self._room)

    def _predict(self, texts: Sequence[str]) -> list[list[dict[str, Any]]]:
        if not texts or not self._settings.labels:
            return [[] for _ in texts]
        # The model reports from the lowest threshold on; each label's own is applied afterwards.
        spans: list[list[dict[str, Any]]] = self._model.inference(
            list(texts),
            list(self._settings.labels),
            threshold=min(self._thresholds.values()),
            batch_size=_BATCHES[self._device],
        )
        return spans

    def _mentions(self, text: str, window: Window, spans: Iterable[dict[str, Any]]) -> Iterable[Mention]:
        for span in spans:
            start, end = window.start + span["start"], window.start + span["end"]
            if span["score"] >= self._thresholds[span["label"]]:
                yield Mention(start, end, text[start:end], span["label"], float(span["score"]))


def _device_of(settings: ExtractionSettings) -> str:
    """Where the checkpoint runs; ModelUnavailableError where that is to be a GPU and PyTorch finds none."""
    there = torch.cuda.is_available()
    if settings.device == "cuda" and not there:
        raise ModelUnavailableError("extraction.device: cuda is wanted, but PyTorch finds none here: use auto or cpu")
    return "cuda" if there and settings.device != "cpu" and onnx_file_of(settings) is None else "cpu"


def _load(settings: ExtractionSettings, threads: int, device: str) -> Any:
    source = settings.source
    try:
        onnx_file = onnx_file_of(settings)
        return _load_torch(source, threads, device) if onnx_file is None else _load_onnx(source, onnx_file, threads)
    # GLiNER, the hub client and ONNX Runtime raise what they like; every reason stops the run alike.
    except Exception as error:
        raise ModelUnavailableError(
            f"entity model {settings.model!r} cannot be loaded from {source}: {type(error).__name__}: {error}: "
            + advice_on(error, otherwise=NAME_ANOTHER)
        ) from error


def _load_onnx(source: str, onnx_file: str, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Idle workers would spin on cores that the other actors need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return GLiNER.from_pretrained(
        source,
        load_onnx_model=True,
        onnx_model_file=onnx_file,
        session_options=options,
        local_files_only=Path(source).exists(),
    )


def _load_torch(source: str, threads: int, device: str) -> Any:
    if threads:
        torch.set_num_threads(threads)
    return GLiNER.from_pretrained(source, local_files_only=Path(source).exists()).to(device)
