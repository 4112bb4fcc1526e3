"""ING-8: what the similarity of turns tells of the borders between topics, on LoCoMo; slow.

Topics are not labelled there, but sessions are: joined to one, they have known borders. Thresholds were chosen on the
four conversations of the train split; both splits are printed.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from tests.support.turns import turns_of
from weft.chunking.conversation.dialogue import Turn
from weft.chunking.conversation.session import WINDOW_TURNS, distances
from weft.embedding.word_vectors import load_word_vectors
from weft.ingestion.sources.transcripts import sessions
from weft.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data]

SETTINGS = load_settings()
SPLITS = {"train": ("conv-26", "conv-30", "conv-41", "conv-42"), "dev": ("conv-43", "conv-44")}
WINDOWS = (1, 2, 3, 4, 6)
COLUMNS = ("inside: median", "inside: 85 %", "above inside", "above at borders", "0.3 inside")


def conversations(root: Path) -> dict[str, list[list[str]]]:
    """What is said, by conversation and session."""
    text = gzip.decompress((root / "locomo" / "locomo_conv1-6.json.gz").read_bytes()).decode()
    found: defaultdict[str, list[list[str]]] = defaultdict(list)
    for session in sessions(text, "locomo"):
        said = [line.text for line in turns_of(session.text) if isinstance(line, Turn)]
        found[session.metadata["conversation"]].append(said)
    return found


def at_borders_and_inside(joined: list[list[list[str]]], window: int) -> tuple[np.ndarray, np.ndarray]:
    similarity = load_word_vectors(SETTINGS.embedding)
    borders, inside = [], []
    for parts in joined:
        gaps = distances([text for part in parts for text in part], window, similarity)
        starts = np.cumsum([len(part) for part in parts])[:-1]
        borders.append(gaps[starts])
        inside.append(np.delete(gaps, [0, *starts]))
    return np.concatenate(borders), np.concatenate(inside)


def area(borders: np.ndarray, inside: np.ndarray) -> float:
    """How often a border's distance is above one inside: the area under the curve of Mann and Whitney."""
    return float((borders[:, None] > inside[None, :]).mean())


def test_distances_are_larger_at_borders(data_root: Path) -> None:
    """ING-8: the threshold in force ends a topic at a border at least twice as often as inside a session."""
    said = conversations(data_root)
    rules = SETTINGS.chunking.conversation
    table = Table(
        "split", "window", "area", "inside: median", "inside: 85 %", "above inside", "above at borders", "0.3 inside"
    )
    chosen = {}
    for split, names in SPLITS.items():
        for window in WINDOWS:
            borders, inside = at_borders_and_inside([said[name] for name in names], window)
            rates = (float((inside > rules.topic_distance).mean()), float((borders > rules.topic_distance).mean()))
            figures = (area(borders, inside), *np.quantile(inside, [0.5, 0.85]), *rates, (inside > 0.3).mean())
            table.add_row(split, str(window), *(f"{figure:.3f}" for figure in figures))
            chosen[split, window] = (area(borders, inside), *rates)
    Console(width=120).print(table)
    assert max(WINDOWS, key=lambda window: chosen["train", window][0]) == WINDOW_TURNS
    for split in SPLITS:
        _, inside_rate, border_rate = chosen[split, WINDOW_TURNS]
        assert border_rate >= 2 * inside_rate
