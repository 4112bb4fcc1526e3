"""Everything that is read out of a query before anything is searched (RET-1, RET-2, RET-4, RET-5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from pipelines.domain.ranking import ANY, Query
from pipelines.domain.understanding import Complexity, Understanding
from pipelines.retrieval.query.understanding.kinds import exact_names, query_type
from pipelines.retrieval.query.understanding.prefilter import applied, inferred_filters, unknown_filters
from pipelines.retrieval.query_settings import UnderstandingSettings

DOMAIN = "domain"
"""The filter by which a search stays in one domain."""


def understood(
    query: Query, text: str, known: Callable[[str, str], bool], settings: UnderstandingSettings
) -> tuple[Query, str, Understanding]:
    """What a query asks for, the query with what was inferred filled in, and the text that is searched.

    What the caller states is never overruled: an intent, a domain and filters stay as they are.

    Args:
        text: The query's text within bounds.
        known: Whether any document has a value under a name.
    """
    kind, confidence, cues = query_type(text, settings.type)
    sought, filters = inferred_filters(text, known, settings.prefilter) if settings.prefilter.enabled else (text, ())
    home = home_of(query, settings)
    routed = complexity(sought)
    understanding = Understanding(
        type=kind,
        confidence=confidence,
        cues=cues,
        complexity=routed,
        limit=settings.router.limits[routed],
        filters=filters,
        unknown=unknown_filters(sought, known) if settings.prefilter.enabled else (),
        home=home,
    )
    intent = kind.value if query.intent == ANY and confidence >= settings.type.intent_from else query.intent
    within = {} if home is None else {DOMAIN: home}
    return replace(query, intent=intent, filters={**within, **applied(filters, query.filters)}), sought, understanding


def home_of(query: Query, settings: UnderstandingSettings) -> str | None:
    """The domain that a query's agent stays in; None where it has none, or asks for more or for another one."""
    if query.across_domains or query.domain is not None or DOMAIN in query.filters:
        return None
    home = settings.scope.homes.get(query.agent)
    return None if home is None else home.value


_SIMPLE_WORDS = 3  # of a query of exact names alone that one channel, by words, answers
_COMPLEX_WORDS = 30  # from which a query is complex
_COMPLEX_QUESTIONS = 2  # question marks from which it is
_QUESTION = re.compile(r"\?(?=\s|$)")


def complexity(text: str) -> Complexity:
    """Simple where nothing but a few exact names is asked for; complex where much is, or several things.

    An exact name is found by its letters: other channels add cost and nothing else.

    Examples:
        >>> complexity("Store.get_page").value, complexity("pages of a store").value
        ('simple', 'moderate')
        >>> complexity("What is a page? Who writes it?").value
        'complex'
    """
    words = text.split()
    names = exact_names(text)
    if names and len(words) <= _SIMPLE_WORDS and " ".join(names) == " ".join(words):
        return Complexity.SIMPLE
    if len(words) >= _COMPLEX_WORDS or len(_QUESTION.findall(text)) >= _COMPLEX_QUESTIONS:
        return Complexity.COMPLEX
    return Complexity.MODERATE
