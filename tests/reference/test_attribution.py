"""FBK-9: attribution against an independent computation, sentence by sentence, on cosines of scikit-learn's tf-idf."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from weft.feedback.events.attribution import Method, Views, attribute, sentences_of
from weft.settings import load_settings

RULES = load_settings(environment={}).feedback.attribution
CONTENTS = [
    "A commit is refused when its parent is not the live generation; build again on top of the live one.",
    "The updater writes evidence and offsets in one transaction, so that a crash loses nothing.",
    "Freshness is the posterior mean of the survival of an item at its age.",
    "Evidence is integer counts, so that merging is addition and unlearning is subtraction.",
]
RESPONSE = (
    "The commit was refused because its parent is not live. Build again on the live generation.\n"
    "Nothing was lost: evidence and offsets change in one transaction!"
)
ATTENTION = [0.5, 0.3, 0.0, 0.2]


@pytest.mark.parametrize("signal", [1.0, 0.8, -0.4])
def test_all_three_views_together(signal: float) -> None:
    """FBK-9: .5 cf + .3 attention · signal + .2 semantic · signal, where cf is what the outcome's support loses."""
    sentences = sentences_of(RESPONSE)
    assert len(sentences) == 3
    tfidf = TfidfVectorizer().fit(CONTENTS)
    support, semantic = (
        cosine_similarity(tfidf.transform(texts), tfidf.transform(CONTENTS)) for texts in (sentences, [RESPONSE])
    )
    views = Views(semantic[0], np.array(ATTENTION), support)
    found = attribute(signal, len(CONTENTS), views, RULES)
    assert (found.method, found.confidence) == (Method.COUNTERFACTUAL, 0.9)

    def supported(kept: tuple[int, ...]) -> float:
        return sum(max(support[row, column] for column in kept) for row in range(len(sentences))) / len(sentences)

    everything = supported(tuple(range(4)))
    for left_out, kept in zip((3, 2, 1, 0), itertools.combinations(range(4), 3), strict=True):
        cf = signal * (everything - supported(kept))
        expected = 0.5 * cf + 0.3 * ATTENTION[left_out] * signal + 0.2 * semantic[0, left_out] * signal
        assert found.values[left_out] == pytest.approx(expected, abs=1e-12)
    assert abs(found.values[0]) > abs(found.values[1]) > abs(found.values[2])
