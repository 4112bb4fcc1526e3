"""FBK-9: from texts to what an event carries of an attribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.retrieval_fakes import MemoryGeneration
from weft.domain.ids import ContentHash, content_hash
from weft.feedback.events.attributor import Attributor, texts_in
from weft.settings import load_settings

RULES = load_settings(environment={}).feedback.attribution
LOCK, DISK = content_hash("lock"), content_hash("disk")
TEXTS: dict[ContentHash, str | None] = {LOCK: "take the lock first", DISK: "the disk is full"}
RESPONSE = "Take the lock. The disk is full."


class SharedWords:
    """Similarity as the share of common words: Jaccard's index, which can be counted by hand."""

    def between(self, left: Sequence[str], right: Sequence[str]) -> np.ndarray:
        return np.array([[_jaccard(_words(one), _words(other)) for other in right] for one in left])


def _words(text: str) -> set[str]:
    return set(text.lower().replace(".", "").split())


def _jaccard(left: set[str], right: set[str]) -> float:
    return len(left & right) / len(left | right)


def test_a_response_is_attributed_to_what_would_be_missed() -> None:
    """FBK-9: .5 counterfactual + .3 attention + .2 semantic.

    Words shared: "take the lock" with LOCK 3 of 4, with DISK 1 of 6; "the disk is full" with LOCK 1 of 7, with DISK
    all; the response with LOCK 3 of 7, with DISK 4 of 6.
    """
    found = Attributor(RULES, SharedWords()).attribution(TEXTS, RESPONSE, {DISK: 0.5})
    assert found is not None
    assert found.method == "counterfactual"
    lock = 0.5 * (3 / 4 - 1 / 6) / 2 + 0.2 * 3 / 7
    disk = 0.5 * (1 - 1 / 7) / 2 + 0.3 * 0.5 + 0.2 * 4 / 6
    assert found.shares == pytest.approx({LOCK: lock, DISK: disk})


def test_of_a_content_without_text_nothing_is_missed() -> None:
    """FBK-9: its similarity is 0, and since it may have been the best support, none is compared with leaving it out."""
    attributor = Attributor(RULES, SharedWords())
    found = attributor.attribution({**TEXTS, LOCK: None}, RESPONSE)
    assert found is not None
    assert found.method == "semantic"
    assert found.shares == pytest.approx({LOCK: 0.0, DISK: 4 / 6})


def test_without_an_encoder_attention_is_all_there_is() -> None:
    """FBK-9: .6 attention; what similarity would add is not made up for."""
    found = Attributor(RULES, None).attribution(TEXTS, RESPONSE, {LOCK: 1.0})
    assert found is not None
    assert found.method == "attention"
    assert found.shares == pytest.approx({LOCK: 0.6, DISK: 0.0})


@pytest.mark.parametrize("response", [None, "", " \n "])
def test_nothing_to_compare_gives_no_attribution(response: str | None) -> None:
    """FBK-9: the updater then shares equally."""
    assert Attributor(RULES, SharedWords()).attribution(TEXTS, response) is None
    assert Attributor(RULES, SharedWords()).attribution({}, RESPONSE) is None


def test_texts_come_from_the_live_generation_by_hash() -> None:
    """FBK-9: a hash that it does not hold has no text."""
    generation = MemoryGeneration({"file:///a": ["take the lock first"], "file:///b": ["the disk is full"]})
    held = {content_hash(text): text for text in ("take the lock first", "the disk is full")}
    assert generation.contents == sorted(held)
    unknown = content_hash("never indexed")
    assert texts_in(generation.chunks, [*held, unknown]) == {**held, unknown: None}  # type: ignore[arg-type]
