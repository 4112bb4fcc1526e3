"""What the scores of a checkpoint are worth, as measured when it was trained: `scores.json` beside it (ING-16)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.domain.errors import ModelUnavailableError
from weft.extraction.settings import WINDOW_OVERLAP_WORDS, WINDOW_WORDS, ExtractionSettings

SCORES_FILE: Final = "scores.json"

Points = tuple[tuple[float, float], ...]


class LabelScores(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By label, what a score means; labels differ in it."""

    thresholds: Mapping[str, float] = {}  # least score that counts, in [0, 1]
    # points (score, confidence), both rising: the share of finds with at least a score that were right
    confidences: Mapping[str, Points] = {}

    def __post_init__(self) -> None:
        """Check that points rise."""
        for label, points in self.confidences.items():
            if any(low >= high or least > most for (low, least), (high, most) in pairwise(points)):
                raise ValueError(f"expected points of rising score and confidence for {label!r}, found {points}")

    def confidence_of(self, label: str, score: float) -> float:
        """How sure a find with a score is, in [0, 1]: linear between the label's points, and the score without any."""
        points = self.confidences.get(label)
        if not points:
            return score
        for (low, least), (high, most) in pairwise(points):
            if low <= score <= high:
                return least + (most - least) * (score - low) / (high - low)
        return points[0][1] if score < points[0][0] else points[-1][1]


def scores_of(settings: ExtractionSettings) -> LabelScores:
    """What lies beside the configured checkpoint; nothing where it is named by a hub, or has no such file."""
    path = Path(settings.source) / SCORES_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=LabelScores)
    except (FileNotFoundError, NotADirectoryError):
        return LabelScores()
    except msgspec.DecodeError as error:
        raise ModelUnavailableError(
            f"{path}: expected thresholds and rising points by label, found: {error}: mend it, or remove it; then "
            "extraction.threshold counts for every label, and a score is its own confidence"
        ) from error


def extraction_facts(settings: ExtractionSettings) -> dict[str, Any]:
    """What decides the mentions of a text besides itself and the checkpoint; it is part of keys that are stored."""
    scores = scores_of(settings)
    return {
        **settings.model_dump(mode="json", exclude={"enabled", "device"}),
        "onnx_file": "",  # a setting once; the checkpoint's identity tells its files, and stored keys stay valid
        "label_thresholds": dict(scores.thresholds),
        "confidences": {label: [[*point] for point in points] for label, points in scores.confidences.items()},
        "window_words": WINDOW_WORDS,
        "window_overlap_words": WINDOW_OVERLAP_WORDS,
    }
