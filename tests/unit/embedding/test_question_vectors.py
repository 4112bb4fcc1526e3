"""Vectors of past questions are written down once, and are the same bits wherever they come from (LRN-19)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from weft.embedding.question_vectors import QuestionVectors

MANY = [f"question {number}" for number in range(40)]


class _Counting:
    """An encoder that counts; a text's vector is a function of the text alone."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        self.texts.extend(texts)
        rows = [np.random.default_rng(sum(map(ord, text))).normal(size=8) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32)


def test_a_second_process_encodes_only_what_is_new(tmp_path: Path) -> None:
    """LRN-19: a searcher that starts reads the vectors of questions that another one encoded."""
    path, first, second = tmp_path / "cache" / "questions.npz", _Counting(), _Counting()
    made = QuestionVectors(first, path)(MANY)
    later = QuestionVectors(second, path)
    assert later.stored(["a new one", *MANY[:3]]) == MANY[:3]
    read = later([*MANY, "a new one"])
    assert first.texts == MANY
    assert second.texts == ["a new one"]
    assert read[:-1].tobytes() == made.tobytes()


def test_a_text_has_the_same_bits_fresh_or_read(tmp_path: Path) -> None:
    """LRN-19: whether the file is there changes no score."""
    path = tmp_path / "questions.npz"
    QuestionVectors(_Counting(), path)(MANY)
    fresh = QuestionVectors(_Counting(), tmp_path / "absent.npz")(MANY[::-1])
    assert QuestionVectors(_Counting(), path)(MANY[::-1]).tobytes() == fresh.tobytes()


@pytest.mark.parametrize("damage", [b"", b"no archive", b"PK\x03\x04 cut short"])
def test_a_damaged_file_costs_time_alone(tmp_path: Path, damage: bytes) -> None:
    """LRN-19: what cannot be read is encoded, and written anew."""
    path, encode = tmp_path / "questions.npz", _Counting()
    path.write_bytes(damage)
    QuestionVectors(encode, path)(MANY)
    assert encode.texts == MANY
    QuestionVectors(encode, path)(MANY)
    assert encode.texts == MANY


def test_a_folder_that_cannot_be_written_to_is_searched_all_the_same(tmp_path: Path) -> None:
    """LRN-19: a file stands where the folder should be."""
    (tmp_path / "cache").write_text("in the way")
    assert QuestionVectors(_Counting(), tmp_path / "cache" / "questions.npz")(MANY).shape == (40, 8)
