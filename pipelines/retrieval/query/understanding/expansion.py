"""The same question in other words: terms of what was found first, and neighbours of what it names (RET-3)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pipelines.domain.understanding import Variant
from pipelines.retrieval.query_settings import ExpansionSettings

_WORD = re.compile(r"[^\W\d_]\w*")

FEEDBACK, NEIGHBOURS = "feedback", "neighbours"


def feedback_variant(
    query: str, first: Sequence[str], others: Sequence[str], settings: ExpansionSettings
) -> Variant | None:
    """The terms that tell the first results from the further ones, best first; None where there are none.

    Pseudo-relevance feedback (Rocchio 1971; Lavrenko and Croft, SIGIR 2001), with the further results of the same
    query as background: (share of the first texts) · ln((1 + texts) / (1 + texts with the term)).

    Args:
        first: Texts taken for relevant.
        others: Texts found after them.
    """
    in_first, in_all = _document_frequencies(first), _document_frequencies([*first, *others])
    query_terms = _terms(query)
    texts = 1 + len(first) + len(others)
    gains = {
        term: count / len(first) * math.log(texts / (1 + in_all[term]))
        for term, count in in_first.items()
        # What one text alone says is about that text.
        if term not in query_terms and len(term) >= settings.shortest_term and (count > 1 or len(first) == 1)
    }
    best = sorted(gains, key=lambda term: (-gains[term], term))[: settings.feedback_terms]
    return Variant(" ".join(best), FEEDBACK) if best and gains[best[0]] > 0.0 else None


def neighbour_variant(query: str, names: Iterable[str], settings: ExpansionSettings) -> Variant | None:
    """Names that stand near those in the query, such as other spellings and what is mentioned beside them."""
    query_terms = _terms(query)
    others = [name for name in dict.fromkeys(names) if not _terms(name) <= query_terms]
    nearest = others[: settings.neighbours]
    return Variant(" ".join(nearest), NEIGHBOURS) if nearest else None


def combined_scores(original: float, variants: Sequence[float], settings: ExpansionSettings) -> float:
    """Mean of a content's scores for the query and its variants, the query counting more often.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> tuned = load_settings(environment={}).retrieval.understanding.expansion
        >>> combined_scores(1.0, [0.25], tuned)  # (2 · 1 + 0.25) / 3
        0.75
    """
    total = settings.original_weight * original + math.fsum(variants)
    return total / (settings.original_weight + len(variants))


def _terms(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _document_frequencies(texts: Iterable[str]) -> Counter[str]:
    return Counter(term for text in texts for term in _terms(text))
