"""Everything that is read out of a query before anything is searched (RET-1, RET-2, RET-4, RET-5, RET-6)."""

from __future__ import annotations

import math
import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from weft.domain.ranking import ANY, QUERY_BYTES, QUERY_TERMS, Channel, Query
from weft.domain.understanding import Complexity, InferredFilter, QueryType, SessionMemory, Shift, Understanding
from weft.indexes.rows import RowSet
from weft.indexes.text.words import STOP_WORDS, lone_operators, stream
from weft.learning.thinned import NOTHING_THINNED, Thinned
from weft.retrieval.query.named import NOTHING_NAMED, Named
from weft.retrieval.settings import (
    PrefilterSettings,
    RetrievalSettings,
    RouterSettings,
    ShiftSettings,
    TypeSettings,
    UnderstandingSettings,
)
from weft.retrieval.snapshot.asides import phrases
from weft.retrieval.snapshot.documents import GenerationFacts
from weft.retrieval.snapshot.filters import FOLDER, RowFilter

# What will be searched for: the query's text within bounds (RET-21), its depth and its channels (RET-2).

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")

_PAIRS = ('""', "“”", "””", "„“", "„”", "‟”", "«»", "»«", "「」", "『』", "＂＂")
_MARKS = "".join(dict.fromkeys("".join(_PAIRS)))
_QUOTED = "|".join(rf"{pair[0]}(?P<q{at}>[^{_MARKS}]+){pair[1]}" for at, pair in enumerate(_PAIRS))
_SIGN = re.compile(
    rf"(?<![^\s(\[{{])(?P<before>[+-]?)(?:{_QUOTED})|(?<![^\s(\[{{])(?P<sign>[+-])(?P<word>[^\W\d_][^\s{_MARKS}]+)"
)
_KEYS = str.maketrans("＋－−", "+--")  # plus and minus as other keyboards have them
_AS_IT_STANDS = re.compile(r"--[^\W\d_][\w-]*|[A-Z]{2,}(?: [A-Z]{2,})+")  # a flag, an operator such as IS NULL
_TRAILING = ".,;:!?)]}…"

Holding = Callable[[str, bool], np.ndarray | None]
"""Which contents hold some words, bool (contents,): as a phrase if so asked for, else in whatever form they have.

None where there are no words in it, or where the index cannot tell.
"""


Naming = Callable[[str], Named]
"""What of a generation a text names."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One query as it will be run."""

    query: Query  # with what was inferred from its text filled in: its intent where it states none, and filters
    text: str  # the normalised query text
    truncated: bool  # `text` lost something to the limits of RET-21
    understanding: Understanding
    channels: tuple[Channel, ...]  # those that search for it
    depth: int  # candidates wanted of each channel
    k: int  # results wanted
    among: RowSet | None  # all that may match; None for everything
    # what stands before all else, for the signs of the query or as what it names; None where nothing does
    first: RowSet | None = None
    named: RowSet | None = None  # those of `first` that are what it names, of a query that is little else than names


def make_plan(
    query: Query,
    facts: GenerationFacts,
    filters: RowFilter,
    settings: RetrievalSettings,
    holding: Holding,
    *,
    thinned: Thinned = NOTHING_THINNED,
    naming: Naming = lambda _: NOTHING_NAMED,
) -> Plan:
    """Bound, normalise and understand a query, follow its signs, and look up what it names.

    Who names a place or words to be held sees all that is there; everything else passes over `thinned` contents.
    """
    text, truncated = bounded(query.text, max_bytes=QUERY_BYTES, max_terms=QUERY_TERMS)
    read, sought, understanding = understood(query, text, facts.has_value, settings.understanding)
    sought, signs = parse_operators(sought)
    named = naming(sought) if Channel.NAMES in settings.channels else NOTHING_NAMED
    if understanding.complexity is Complexity.SIMPLE and (named.names or only_names(sought)):
        # What bears a name, and what speaks of it, is found by more than its words.
        understanding = of_complexity(understanding, Complexity.MODERATE, settings)
    understanding = replace(understanding, named=named.names)
    simple = understanding.complexity is Complexity.SIMPLE and settings.understanding.router.enabled
    lexical = Channel.LEXICAL in settings.channels and not signs
    # Stop words and operators alone mean nothing to an encoder; whoever asks for them asks for these letters.
    words = stream(sought)
    letters = bool(words or lone_operators(sought)) and STOP_WORDS.issuperset(words)
    by_words = lexical and ((query.adaptive and simple) or letters)
    channels = (Channel.LEXICAL,) if by_words else settings.channels
    try:
        among = filters.rows(read.filters)
    except ValueError as error:
        raise ValueError(f"query {query.query_id}: {error}; none of its batch was answered") from error
    if among is not None and not len(among):
        understanding = replace(understanding, unmet=filters.unmet(read.filters))
    signed = apply_operators(signs, among, holding) if signs else None
    if among is None and signed is None:
        among = filters.without(thinned)
    if signed is not None:
        understanding = replace(understanding, signs=signed.held, unheld=signed.unheld)
    first = None if signed is None else signed.first
    defined = None if named.first is None else _in_both(named.first, first if among is None else _in_both(among, first))
    return Plan(
        query=read,
        text=sought,
        truncated=truncated,
        understanding=understanding,
        channels=channels,
        depth=settings.depth,
        k=min(query.k, understanding.limit) if query.adaptive else query.k,
        among=among if signed is None else signed.among,
        first=first if defined is None else defined,
        named=defined,
    )


def escalated_plan(plan: Plan, settings: RetrievalSettings) -> Plan:
    """The plan of a query that looked simple and that words alone do not answer: a moderate one, with all channels."""
    understanding = of_complexity(plan.understanding, Complexity.MODERATE, settings)
    return replace(
        plan,
        understanding=understanding,
        channels=settings.channels,
        k=min(plan.query.k, understanding.limit) if plan.query.adaptive else plan.query.k,
    )


def of_complexity(understanding: Understanding, complexity: Complexity, settings: RetrievalSettings) -> Understanding:
    """The same query, taken for more or less work."""
    return replace(understanding, complexity=complexity, limit=settings.understanding.router.limits[complexity])


def _in_both(one: RowSet | None, other: RowSet | None) -> RowSet | None:
    """What is in two sets, of which None is everything; None where nothing is."""
    if one is None or other is None:
        return one or other
    mask = one.mask & other.mask
    return RowSet(mask) if mask.any() else None


def bounded(text: str, *, max_bytes: int, max_terms: int) -> tuple[str, bool]:
    """A text that no channel can choke on: NFC, single blanks, no control characters; and whether a limit cut it."""
    # Cut before normalising: NFC of a megabyte costs, and at most doubles what is left (UAX #15: threefold in UTF-8).
    # Blanks are no part of what is left: however many there are, they cut nothing.
    words = " ".join(text.split(maxsplit=max_terms))
    head = words[: max_bytes * 3]
    terms = _printable(unicodedata.normalize("NFC", _printable(head))).split()
    whole = " ".join(terms[:max_terms])
    shortened = whole.encode("utf-8")[:max_bytes].decode("utf-8", "ignore").rstrip()
    return shortened, len(head) < len(words) or len(terms) > max_terms or len(shortened) < len(whole)


def _printable(text: str) -> str:
    """Control characters become blanks and lone surrogates the replacement character; format characters stay."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", _CONTROL.sub(" ", text))


@dataclass(frozen=True, slots=True)
class QueryOperator:
    """One sign of a query."""

    typed: str  # as it stands in the query
    words: str  # what it is about
    phrase: bool  # whether these stand side by side, as they are
    excludes: bool  # whether texts that hold them are left out; else they stand first


def parse_operators(text: str) -> tuple[str, tuple[QueryOperator, ...]]:
    """The text that is searched, without what it excludes, and its signs.

    A flag has two dashes, or one letter, and is no sign. Where nothing else is asked for, nothing is excluded.

    Examples:
        >>> text, signs = parse_operators('"dead letter" queue +kafka -redis')
        >>> text, [sign.typed for sign in signs]
        ('dead letter queue kafka', ['"dead letter"', '+kafka', '-redis'])
        >>> parse_operators('watcher limit reached, watch "src"')
        ('watcher limit reached, watch "src"', ())
        >>> [parse_operators(text)[1][0].phrase for text in ("--cache", "IS NOT NULL")]
        [True, True]
        >>> parse_operators("-redis"), parse_operators('5" or - 3 +1 a-b')
        (('-redis', ()), ('5" or - 3 +1 a-b', ()))
    """
    text = text.translate(_KEYS)
    if _AS_IT_STANDS.fullmatch(text):
        return text, (QueryOperator(text, text, phrase=True, excludes=False),)
    signs: list[QueryOperator] = []
    pieces: list[str] = []
    end = 0
    matches = [(match, _quoted(match)) for match in _SIGN.finditer(text)]
    decides = _is_little_else(text, [quoted for match, quoted in matches if quoted and not match["before"]])
    for match, quoted in matches:
        before, word = match["before"] or match["sign"], match["word"]
        if quoted is not None and not before and not decides:
            continue
        words = quoted if quoted is not None else word.rstrip(_TRAILING)
        if len(words) < 2 or not any(letter.isalnum() for letter in words):
            continue
        stop = match.end() if quoted is not None else match.start() + 1 + len(words)
        sign = QueryOperator(text[match.start() : stop], words, quoted is not None, before == "-")
        signs.append(sign)
        pieces += [text[end : match.start()], "" if sign.excludes else words]
        end = stop
    rest = " ".join("".join((*pieces, text[end:])).split())
    if not any(letter.isalnum() for letter in rest):
        return text, ()
    return rest, tuple(signs)


def _quoted(match: re.Match[str]) -> str | None:
    return next((match[f"q{at}"] for at in range(len(_PAIRS)) if match[f"q{at}"]), None)


def _is_little_else(text: str, quoted: Sequence[str]) -> bool:
    """Whether a query says no more than half as much beside what it quotes, or one word; without its signs' words."""
    signs = [match["word"] for match in _SIGN.finditer(text) if match["word"] is not None]
    inside, whole, apart = (
        sum(word not in STOP_WORDS for part in parts for word in stream(part)) for parts in (quoted, [text], signs)
    )
    return whole - apart - inside <= max(1, inside // 2)


@dataclass(frozen=True, slots=True)
class AppliedOperators:
    """What the signs of a query come to in one generation."""

    among: RowSet | None  # all that may match; None for everything
    first: RowSet | None = None  # what stands before all else; None where no sign asks for that
    held: tuple[str, ...] = ()  # signs that were followed, as they are typed
    unheld: tuple[str, ...] = ()  # signs that are taken as plain words, or as not there: no text has what they ask for


def apply_operators(signs: tuple[QueryOperator, ...], among: RowSet | None, holding: Holding) -> AppliedOperators:
    """Follow the signs of a query as far as there are texts that have all they ask for."""
    allowed = None if among is None else among.mask
    excluded: np.ndarray | None = None
    first: np.ndarray | None = None
    held: list[str] = []
    unheld: list[str] = []
    for sign in sorted(signs, key=lambda sign: not sign.excludes):
        mask = holding(sign.words, sign.phrase)
        left = None if mask is None else _both(allowed, ~mask if sign.excludes else mask)
        together = left if first is None or left is None else left & first
        if together is None or not together.any():
            unheld.append(sign.typed)
            continue
        held.append(sign.typed)
        if sign.excludes:
            allowed = excluded = together
        else:
            first = together
    match = among if excluded is None else RowSet(excluded)
    return AppliedOperators(match, None if first is None else RowSet(first), tuple(held), tuple(unheld))


def _both(allowed: np.ndarray | None, mask: np.ndarray) -> np.ndarray:
    return mask if allowed is None else mask & allowed


_STATED = re.compile(r"(?<!\S)(\w+):(?!//)(\"[^\"]+\"|[^\s:]\S*)")
_PATH = re.compile(
    r"(?:\b(in|under|inside|within|below|from)\s+)?(?:the\s+)?(?<!\S)([\w.-]+(?:/[\w.-]+)+)/?(?=[\s,;?]|$)"
)

# How sure an inferred filter is: name:value, where a document has that value; "in src/store", where there is such a
# folder; and the path alone, which may be what is asked about.
_SURE_STATED, _SURE_NAMED, _SURE_MENTIONED = 0.95, 0.9, 0.6

RECENT = 5
"""Queries of a session that a new one is compared with."""

LEAST_RECENT = 2
"""Queries before which nothing has a topic yet."""

DEVIATIONS = 2.0
"""Standard deviations above the mean distance within a session's topics from which another topic begins."""

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
_OPENING = (
    *("how does", "how is", "how are", "what happens", "where does", "where is … decided", "where are … decided"),
)
"""How questions begin that ask how something works, whatever fails in it."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_MARK = re.compile(r"\?(?=\s|$)")
_AGAINST = re.compile(r"(?i)\w\S*\s+vs\.?\s+(?!code\b)\w")  # Visual Studio Code is often called so
_PARTS = re.compile(r"(?i)[?;]|(?:,\s*|\b)(?:and|or|but)\s+(?:(?:also|then)\s+)?")
"""Where another question may begin; a comma alone begins a clause that says more of the same thing."""


def understood(
    query: Query, text: str, exists: Callable[[str, str], bool], settings: UnderstandingSettings
) -> tuple[Query, str, Understanding]:
    """What a query asks for, the query with what was inferred filled in, and the text that is searched."""
    kind, confidence, cues = query_type(text, settings.type)
    inferring, against = settings.prefilter.enabled, compares(text, settings.router)
    sought, filters = inferred_filters(text, exists, settings.prefilter, compares=against) if inferring else (text, ())
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
    """
    cues_of = {kind: _cues(text, kind, settings) for kind in _ORDER}
    best = max(_ORDER, key=lambda kind: len(cues_of[kind]))
    if phrases(_OPENING).match(text) and not _FAILURE.search(text):
        best = QueryType.HOW
    total = sum(map(len, cues_of.values()))
    return (best, len(cues_of[best]) / (total + 1), cues_of[best]) if total else (QueryType.SPECIFIC, 0.0, ())


def _cues(text: str, kind: QueryType, settings: TypeSettings) -> tuple[str, ...]:
    phrased = [match.group().casefold() for match in phrases(settings.cues[kind]).finditer(text)]
    shaped = [match.group() for match in _SHAPES[kind].finditer(text)] if kind in _SHAPES else []
    return tuple(dict.fromkeys([*phrased, *shaped]))


def only_names(text: str) -> bool:
    """Whether a text is nothing but exact names, and no paths: these are matched by their letters.

    Examples:
        >>> only_names("Store.get_page read_page"), only_names("get_page slow"), only_names("src/store")
        (True, False, False)
    """
    words = text.split()
    return (
        bool(words)
        and "/" not in text
        and " ".join(match.group() for match in _EXACT.finditer(text)) == " ".join(words)
    )


def names_all(text: str, name: str, characters: int) -> bool:
    """Whether a name holds every word of a text; words agree that begin alike, whether one or several are meant.

    Examples:
        >>> names_all("parse dates", "jobs/clock.py parseDate", 5), names_all("parse times", "parse_date", 5)
        (True, False)
    """
    wanted, held = ({_stem(word, characters) for word in _WORD.findall(_HUMP.sub(" ", each))} for each in (text, name))
    return bool(wanted) and wanted <= held


def _stem(word: str, characters: int) -> str:
    folded = word.casefold()
    return (folded.rstrip("s") or folded)[:characters]


def complexity(text: str, settings: RouterSettings) -> Complexity:
    """Simple where a name, a path or a few keywords are asked for; complex where much is, or a choice."""
    words = text.split()
    many = len(words) >= settings.complex_words or _questions(text, settings) > 1
    if many or compares(text, settings):
        return Complexity.COMPLEX
    keywords = not (_MARK.search(text) or phrases(settings.question_words).search(text))
    return Complexity.SIMPLE if keywords and 0 < len(words) <= settings.simple_words else Complexity.MODERATE


def compares(text: str, settings: RouterSettings) -> bool:
    """Whether a text sets things against one another, as comparisons and trade-offs do."""
    return bool(_AGAINST.search(text) or phrases(settings.comparisons).search(text))


def _questions(text: str, settings: RouterSettings) -> int:
    """How many questions are asked, by their marks or by the words that begin them."""
    parts = (part.split(maxsplit=1) for part in _PARTS.split(text))
    begun = sum(1 for part in parts if part and part[0].casefold() in settings.question_words)
    return max(len(_MARK.findall(text)), begun)


def _home(query: Query, settings: UnderstandingSettings) -> str | None:
    """The domain that a query's agent stays in; None where it has none, or asks for more or for another one."""
    if query.across_domains or query.domain is not None or DOMAIN in query.filters:
        return None
    home = settings.scope.homes.get(query.agent)
    return None if home is None else home.value


def inferred_filters(
    text: str, exists: Callable[[str, str], bool], settings: PrefilterSettings, *, compares: bool = False
) -> tuple[str, tuple[InferredFilter, ...]]:
    """Filters in a query's text, and the text without those that are no question of their own (RET-4).

    Only what a document has is a filter. Where two values of one name are asked for, neither leaves the other out.
    """
    named: dict[tuple[str, str], float] = {}

    def note(name: str, value: str, confidence: float) -> None:
        if exists(name, value):
            named.setdefault((name, value), confidence)

    stated = [(match, match[2].strip('"')) for match in _STATED.finditer(text)]
    for match, value in stated:
        note(match[1], value, _SURE_STATED)
    for match in _PATH.finditer(_STATED.sub(" ", text)):
        note(FOLDER, match[2], _SURE_NAMED if match[1] and not compares else _SURE_MENTIONED)
    values = Counter(name for name, _ in named)
    filters = tuple(
        InferredFilter(name, value, sure, sure > settings.applied_above and values[name] == 1)
        for (name, value), sure in named.items()
    )
    applied = {(each.name, each.value) for each in filters if each.applied}
    rest = _STATED.sub(lambda match: "" if (match[1], match[2].strip('"')) in applied else match[0], text)
    return " ".join(rest.split()) or text, filters


def unknown_filters(sought: str, exists: Callable[[str, str], bool]) -> tuple[str, ...]:
    """What reads like a filter in a text that is searched, and names what no document has: mistyped, or words."""
    stated = (match for match in _STATED.finditer(sought) if len(match[1]) > 1 and not match[1][0].isdigit())
    return tuple(match[0] for match in stated if not exists(match[1], match[2].strip('"')))


def shift_of(vector: np.ndarray, memory: SessionMemory, settings: ShiftSettings) -> Shift | None:
    """How far a query lies from the centroid of its session's recent ones; None before there are enough of them.

    The threshold is the mean distance within its topics so far and some deviations more; leaps do not count (RET-6).
    """
    recent = _recent(memory, len(vector))
    if not settings.enabled or len(recent) < (1 if memory.changed else LEAST_RECENT):
        return None
    distances, threshold = memory.shift[-RECENT:], settings.distance
    if len(distances) >= LEAST_RECENT:
        learned = statistics.fmean(distances) + DEVIATIONS * statistics.pstdev(distances)
        threshold = min(max(threshold, learned), settings.most_distance) if math.isfinite(learned) else threshold
    return Shift(_distance(vector, recent), threshold, recent=memory.changed)


def remembered(vector: np.ndarray | None, memory: SessionMemory, settings: ShiftSettings) -> SessionMemory:
    """The memory after one more query; the same where the query had no vector."""
    if vector is None:
        return memory
    embedding = tuple(vector.tolist())
    shift = shift_of(vector, memory, settings)
    if shift is not None and shift.happened:
        return memory.leapt(embedding)
    recent = _recent(memory, len(vector))
    distance = _distance(vector, recent) if recent else None
    asked = memory.asked(embedding, shift=distance, window=RECENT)
    return asked.settled() if len(recent) + 1 >= LEAST_RECENT else asked


def usage_share(shift: Shift | None, settings: ShiftSettings) -> float:
    """Share of recent usage feedback that counts: all of it while the topic is the same."""
    return settings.usage_share if shift is not None and shift.dampens else 1.0


def centroid(vectors: Sequence[Sequence[float]]) -> np.ndarray | None:
    """The direction of the mean of unit vectors, float32 (dimension,); None where they have none in common."""
    if not vectors:
        return None
    mean = np.asarray(vectors, dtype=np.float64).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return None if length == 0.0 else np.asarray(mean / length, dtype=np.float32)


def _recent(memory: SessionMemory, dimension: int) -> list[tuple[float, ...]]:
    return [query for query in memory.queries[-RECENT:] if len(query) == dimension]


def _distance(vector: np.ndarray, recent: Sequence[Sequence[float]]) -> float:
    """1 − cosine to the centroid, in [0, 2]; 0 where there is none."""
    middle = centroid(recent)
    return 0.0 if middle is None else float(np.clip(1.0 - vector @ middle, 0.0, 2.0))
