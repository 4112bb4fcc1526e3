"""The hearing of lessons, ready to use: heads that come with weft, on the bundled encoder."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from weft.domain.errors import ModelUnavailableError
from weft.embedding.question_vectors import QuestionVectors
from weft.embedding.text_states import load_text_states
from weft.lessons.duplicates import Embed
from weft.lessons.hearing import ClassifierHead, Hearing
from weft.settings import Settings

_LONGEST = 60  # tokens of a lesson that tell what it means


def lesson_vectors(settings: Settings) -> Embed | None:
    """Texts of lessons to vectors, each made once for a store; None where this machine lacks the bundled encoder."""
    try:
        reader = load_text_states(settings.embedding)
    except ModelUnavailableError:
        return None

    def encode(texts: Sequence[str]) -> np.ndarray:
        return np.stack([reader(text, _LONGEST).vector for text in texts])

    return QuestionVectors(encode, Path(settings.storage.root) / "cache" / "lessons-by-meaning.npz")


def head(name: str) -> ClassifierHead:
    """A head that comes with weft: `outcome` or `teaching`."""
    with np.load(io.BytesIO((files("weft.lessons") / "heads" / f"{name}.npz").read_bytes())) as weights:
        return ClassifierHead(dict(weights))


def load_hearing(settings: Settings, note: Callable[[str], None] = lambda _: None) -> Hearing | None:
    """The hearing; None where this machine lacks the bundled encoder, which a note says."""
    try:
        reader = load_text_states(settings.embedding)
    except ModelUnavailableError as error:
        note(f"what people say of lessons is not heard: {error}")
        return None
    return Hearing(reader, head("outcome"), head("teaching"), settings.lessons.hearing)
