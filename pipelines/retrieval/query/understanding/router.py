"""How much work a query is worth (RET-2)."""

from __future__ import annotations

import re

from pipelines.domain.understanding import Complexity
from pipelines.retrieval.query.understanding.kinds import exact_names
from pipelines.retrieval.query_settings import RouterSettings

_QUESTION = re.compile(r"\?(?=\s|$)")


def complexity(text: str, settings: RouterSettings) -> Complexity:
    """Simple where nothing but a few exact names is asked for; complex where much is, or several things.

    An exact name is found by its letters: other channels add cost and nothing else.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> tuned = load_settings(environment={}).retrieval.understanding.router
        >>> complexity("Store.get_page", tuned).value, complexity("pages of a store", tuned).value
        ('simple', 'moderate')
        >>> complexity("What is a page? Who writes it?", tuned).value
        'complex'
    """
    words = text.split()
    names = exact_names(text)
    if names and len(words) <= settings.simple_words and " ".join(names) == " ".join(words):
        return Complexity.SIMPLE
    if len(words) >= settings.complex_words or len(_QUESTION.findall(text)) >= settings.complex_questions:
        return Complexity.COMPLEX
    return Complexity.MODERATE
