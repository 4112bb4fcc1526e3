"""Everything that is read out of a query before anything is searched (RET-1, RET-2, RET-4, RET-5, RET-6)."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from pipelines.domain.ranking import ANY, Query
from pipelines.domain.sessions import SessionMemory
from pipelines.domain.understanding import Complexity, InferredFilter, QueryType, Shift, Understanding
from pipelines.retrieval.settings import (
    PrefilterSettings,
    RouterSettings,
    ShiftSettings,
    TypeSettings,
    UnderstandingSettings,
)
from pipelines.retrieval.snapshot.documents import FOLDER

_STATED = re.compile(r"(?<!\S)(\w+):(?!//)(\"[^\"]+\"|[^\s:]\S*)")
_PATH = re.compile(
    r"(?:\b(in|under|inside|within|below|from)\s+)?(?:the\s+)?(?<!\S)([\w.-]+(?:/[\w.-]+)+)/?(?=[\s,;?]|$)"
)

DOMAIN = "domain"
"""The filter by which a search stays in one domain."""

# In this order where two types have as many cues: what fails is looked into before what works is admired.
_ORDER = (QueryType.DEBUG, QueryType.HOW, QueryType.EXPLORATORY, QueryType.SPECIFIC)

# Each alternative begins where no word stands before it, so that a long word is tried once and not from each letter.
_EXACT = re.compile(
    r"(?x) [`\"“][^`\"”]{1,80}[`\"”] | (?<!\w)(?: \w+(?:\.|::|->|/)\w\S* | \w*_\w+ | [a-z]+[A-Z]\w* | \w+\(\) )"
)
"""Names that stand for one thing: quoted, dotted, with underscores or a capital inside."""

_FAILURE = re.compile(r"(?<!\w)(?:\w+(?:Error|Exception)\b|Traceback\b|line \d+\b|exit code \d+\b|0x[0-9a-f]{4,}\b)")
"""What machines say when something went wrong."""

_SHAPES: Mapping[QueryType, re.Pattern[str]] = MappingProxyType({QueryType.SPECIFIC: _EXACT, QueryType.DEBUG: _FAILURE})
_JOINT = re.compile(r"(?<=\w)(?:\.|::|->|/)(?=\w)")
_QUESTION = re.compile(r"\?(?=\s|$)")


def understood(
    query: Query, text: str, exists: Callable[[str, str], bool], settings: UnderstandingSettings
) -> tuple[Query, str, Understanding]:
    """What a query asks for, the query with what was inferred filled in, and the text that is searched.

    What the caller states is never overruled: an intent, a domain and filters stay as they are.

    Args:
        text: The query's text within bounds.
        exists: Whether any document has a value under a name.
    """
    kind, confidence, cues = query_type(text, settings.type)
    inferring = settings.prefilter.enabled
    sought, filters = inferred_filters(text, exists, settings.prefilter) if inferring else (text, ())
    home = _home(query, settings)
    routed = complexity(sought, settings.router)
    understanding = Understanding(
        type=kind,
        confidence=confidence,
        cues=cues,
        complexity=routed,
        limit=settings.router.limits[routed],
        filters=filters,
        unknown=unknown_filters(sought, exists) if inferring else (),
        home=home,
    )
    intent = kind.value if query.intent == ANY and confidence >= settings.type.intent_from else query.intent
    within = {} if home is None else {DOMAIN: home}
    applied = {each.name: each.value for each in filters if each.applied}
    return replace(query, intent=intent, filters={**within, **applied, **query.filters}), sought, understanding


def query_type(text: str, settings: TypeSettings) -> tuple[QueryType, float, tuple[str, ...]]:
    """The type of a query, the confidence in it, and the cues that speak for it.

    Confidence is the cues' share, with one more for what was not seen: n / (all cues + 1). A query without any is
    specific with confidence 0.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> tuned = load_settings(environment={}).retrieval.understanding.type
        >>> kind, confidence, cues = query_type("How does the updater commit its offsets?", tuned)
        >>> kind.value, confidence, cues
        ('how_does_it_work', 0.5, ('how does',))
    """
    cues_of = {kind: _cues(text, kind, settings) for kind in _ORDER}
    best = max(_ORDER, key=lambda kind: len(cues_of[kind]))
    total = sum(map(len, cues_of.values()))
    return (best, len(cues_of[best]) / (total + 1), cues_of[best]) if total else (QueryType.SPECIFIC, 0.0, ())


def _cues(text: str, kind: QueryType, settings: TypeSettings) -> tuple[str, ...]:
    phrased = [match.group().casefold() for match in _pattern(settings.cues[kind]).finditer(text)]
    shaped = [match.group() for match in _SHAPES[kind].finditer(text)] if kind in _SHAPES else []
    return tuple(dict.fromkeys([*phrased, *shaped]))


@lru_cache(maxsize=64)
def _pattern(phrases: Sequence[str]) -> re.Pattern[str]:
    ordered = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, ordered))})\b", re.IGNORECASE)


def with_name_parts(text: str) -> str:
    """A text of names, and behind it the parts of those that are made of several: texts hold these apart, too.

    Examples:
        >>> with_name_parts("Store.get_page"), with_name_parts("get_page")
        ('Store.get_page Store get_page', 'get_page')
    """
    apart = _JOINT.sub(" ", text)
    return text if apart == text else f"{text} {apart}"


def complexity(text: str, settings: RouterSettings) -> Complexity:
    """Simple where nothing but a few exact names is asked for; complex where much is, or several things.

    An exact name is matched by its letters: other channels add cost and nothing else.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> tuned = load_settings(environment={}).retrieval.understanding.router
        >>> complexity("Store.get_page", tuned).value, complexity("pages of a store", tuned).value
        ('simple', 'moderate')
        >>> complexity("What is a page? Who writes it?", tuned).value
        'complex'
    """
    words = text.split()
    names = [match.group() for match in _EXACT.finditer(text)]
    if names and len(words) <= settings.simple_words and " ".join(names) == " ".join(words):
        return Complexity.SIMPLE
    if len(words) >= settings.complex_words or len(_QUESTION.findall(text)) >= settings.complex_questions:
        return Complexity.COMPLEX
    return Complexity.MODERATE


def _home(query: Query, settings: UnderstandingSettings) -> str | None:
    """The domain that a query's agent stays in; None where it has none, or asks for more or for another one."""
    if query.across_domains or query.domain is not None or DOMAIN in query.filters:
        return None
    home = settings.scope.homes.get(query.agent)
    return None if home is None else home.value


def inferred_filters(
    text: str, exists: Callable[[str, str], bool], settings: PrefilterSettings
) -> tuple[str, tuple[InferredFilter, ...]]:
    """Filters in a query's text, and the text without those that are no question of their own (RET-4).

    "name:value" states one outright; a path of folders asks for what lies in it, more surely after "in" or the like.
    Only what at least one document has is a filter: of anything else the text speaks.

    Args:
        exists: Whether any document has the value under the name.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> tuned = load_settings(environment={}).retrieval.understanding.prefilter
        >>> has = lambda name, value: (name, value) in {("team", "core"), ("folder", "src/store")}
        >>> text, filters = inferred_filters("page layout in src/store team:core", has, tuned)
        >>> text, [(each.name, each.value, each.applied) for each in filters]
        ('page layout in src/store', [('team', 'core', True), ('folder', 'src/store', True)])
        >>> inferred_filters("is 10:30 a time", has, tuned)
        ('is 10:30 a time', ())
    """
    inferred: dict[str, InferredFilter] = {}

    def note(name: str, value: str, confidence: float) -> bool:
        if name in inferred or not exists(name, value):
            return False
        inferred[name] = InferredFilter(name, value, confidence, confidence > settings.applied_above)
        return True

    rest = _STATED.sub(lambda match: "" if note(match[1], match[2].strip('"'), settings.stated) else match[0], text)
    for match in _PATH.finditer(rest):
        note(FOLDER, match[2], settings.named_path if match[1] else settings.mentioned_path)
    return " ".join(rest.split()) or text, tuple(inferred.values())


def unknown_filters(sought: str, exists: Callable[[str, str], bool]) -> tuple[str, ...]:
    """What reads like a filter in a text that is searched, and names what no document has: mistyped, or words.

    Times of day, and single letters as in code, are too common to be reported.

    Examples:
        >>> unknown_filters("locks langauge:python at 10:30", lambda name, value: False)
        ('langauge:python',)
    """
    stated = (match for match in _STATED.finditer(sought) if len(match[1]) > 1 and not match[1][0].isdigit())
    return tuple(match[0] for match in stated if not exists(match[1], match[2].strip('"')))


def shift_of(vector: np.ndarray, memory: SessionMemory, settings: ShiftSettings) -> Shift | None:
    """How far a query lies from the centroid of its session's recent ones; None before there are enough of them.

    The threshold is learned from the session: its mean distance so far and some deviations more, at least the
    configured one. Who jumps about anyway has not changed topic by jumping.

    Args:
        vector: float32 (dimension,), a unit vector.
    """
    recent = _recent(memory, len(vector), settings)
    if not settings.enabled or len(recent) < settings.least:
        return None
    distances, threshold = memory.shift[-settings.window :], settings.distance
    if len(distances) >= settings.least:
        learned = statistics.fmean(distances) + settings.deviations * statistics.pstdev(distances)
        threshold = max(threshold, learned) if math.isfinite(learned) else threshold
    return Shift(_distance(vector, recent), threshold)


def remembered(vector: np.ndarray | None, memory: SessionMemory, settings: ShiftSettings) -> SessionMemory:
    """The memory after one more query; the same where the query had no vector."""
    if vector is None:
        return memory
    shift = _distance(vector, _recent(memory, len(vector), settings))
    return memory.asked(tuple(vector.tolist()), shift=shift, window=settings.window)


def usage_share(shift: Shift | None, settings: ShiftSettings) -> float:
    """Share of recent usage feedback that counts: all of it while the topic is the same."""
    return settings.usage_share if shift is not None and shift.happened else 1.0


def centroid(vectors: Sequence[Sequence[float]]) -> np.ndarray | None:
    """The direction of the mean of unit vectors, float32 (dimension,); None where they have none in common."""
    if not vectors:
        return None
    mean = np.asarray(vectors, dtype=np.float64).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return None if length == 0.0 else np.asarray(mean / length, dtype=np.float32)


def _recent(memory: SessionMemory, dimension: int, settings: ShiftSettings) -> list[tuple[float, ...]]:
    return [query for query in memory.queries[-settings.window :] if len(query) == dimension]


def _distance(vector: np.ndarray, recent: Sequence[Sequence[float]]) -> float:
    """1 − cosine to the centroid, in [0, 2]; 0 where there is none."""
    middle = centroid(recent)
    return 0.0 if middle is None else float(np.clip(1.0 - vector @ middle, 0.0, 2.0))
