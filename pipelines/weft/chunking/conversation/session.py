"""Conversations: a session, its topics, and in them questions with their answers (ING-8)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, pairwise, takewhile

import numpy as np

from weft.chunking.conversation.dialogue import TurnPlace, places, unindented
from weft.chunking.units.hierarchy import assemble, fitted
from weft.chunking.units.parsed import Head, ParsedUnit
from weft.chunking.units.splitting import (
    ChunkSizes,
    Cuts,
    SizedText,
    TokenCounter,
    TopicRules,
    character_start,
    decoded,
    sentences,
)
from weft.domain.chunks import Chunk
from weft.domain.documents import Document

# Which turns of a session belong together: a question with its answer (ING-8).

_ASKING_ROLES = frozenset({"user", "human", "customer", "interviewer", "question", "q"})
_QUESTION_MARKS = ("?", "？", "؟")
_SENTENCE = re.compile(r"(?<=[.!?？؟])\s+|\n+")
_SENTENCE_BEGINS = re.compile(r"(?:\A|(?<=[.!?])\s+|\n+)\s*")
_NEAR = 80  # characters at the beginning of a turn in which a sentence may name a topic
# What people say before they name one.
_FILLERS = (
    r"(?:(?:oh?k(?:ay)?|so|now|well|anyway|all ?right|right|great|thanks?|thank you|thx|cool|nice|perfect|hey|hi|and"
    r"|but|also|oh|hm+|um+|got it|good|yes|no|sure|then|i have an?|i've got an?|here's an?|just an?|an?|one|quick"
    r"|completely|totally|slightly|entirely|let's go|let us go|can we go|could we go|let's|let us|can we|getting|going"
    r"|coming)\W+){0,5}"
)
_PICTURE = "[shares image: "


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with its answer, or turns that neither ask nor answer."""

    start: int  # Bytes; the exchanges of a session cover it
    end: int
    turns: tuple[int, int]  # its turns' numbers in the session, from 0, half-open
    places: tuple[TurnPlace, ...]  # its turns
    asked: str = ""  # speaker and question that stand unanswered before it: its first turn replies to them
    topic: str | None = None  # the name of a topic that begins here, "" for one without; None where none begins


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Turns between two explicit boundaries."""

    start: int  # where it begins, its marker included
    first: int  # number of its first turn
    topic: str | None
    places: list[TurnPlace] = field(default_factory=list)


def exchanges(source: bytes, places: Sequence[TurnPlace], rules: TopicRules | None) -> list[Exchange]:
    """Exchanges of a session, in order; none lies on both sides of an explicit boundary.

    Where a speaker's name is a role that asks, such as "user", an exchange runs from its turn to its next. Elsewhere it
    is what two speakers say in a row; a turn that does not ask stands alone where the next one asks.
    """
    stretches = _stretches(source, places, rules.phrases if rules else ())
    paired = [exchange for stretch in stretches for exchange in _paired(source, stretch)]
    ends = [*(exchange.start for exchange in paired[1:]), len(source)]
    return [replace(each, end=end) for each, end in zip(paired, ends, strict=True)]


def turn_text(source: bytes, place: TurnPlace) -> str:
    """What a turn says."""
    return unindented(source[place.body : place.end].decode("utf-8", "replace"))


def question_of(text: str) -> str:
    """The last sentence of a text that asks; nothing where none does."""
    if _PICTURE in text and text.rstrip().endswith("]"):  # a picture ends it
        text = text[: text.rfind(_PICTURE)]
    questions = (each.strip() for each in reversed(_SENTENCE.split(text)) if each.rstrip().endswith(_QUESTION_MARKS))
    return next(questions, "")


def _stretches(source: bytes, places: Sequence[TurnPlace], phrases: Sequence[str]) -> list[_Stretch]:
    listed = "|".join(re.escape(phrase) for phrase in phrases)
    begins = re.compile(rf"\W*{_FILLERS}(?:{listed})\b" if listed else r"(?!)", re.IGNORECASE)
    stretches: list[_Stretch] = []
    number, marked = 0, -1
    topic: str | None = None
    for place in places:
        if place.topic is not None:
            marked, topic = (place.start if marked < 0 else marked), place.topic or topic or ""
            continue
        if marked >= 0 or not stretches or _names_a_topic(turn_text(source, place), begins):
            first = 0 if not stretches else place.start
            stretches.append(_Stretch(marked if marked >= 0 else first, number, topic if marked >= 0 else ""))
            marked, topic = -1, None
        stretches[-1].places.append(place)
        number += 1
    if not stretches:
        stretches.append(_Stretch(0, 0, topic))
    return stretches


def _names_a_topic(text: str, begins: re.Pattern[str]) -> bool:
    """Whether one of the first sentences of a turn says that a topic begins."""
    return any(begins.match(text, sentence.end()) for sentence in _SENTENCE_BEGINS.finditer(text[:_NEAR]))


def _paired(source: bytes, stretch: _Stretch) -> list[Exchange]:
    texts = [turn_text(source, place) for place in stretch.places]
    paired: list[Exchange] = []
    for first, last in _ranges([place.speaker for place in stretch.places], texts):
        places = tuple(stretch.places[first:last])
        opening = not paired
        paired.append(
            Exchange(
                stretch.start if opening else places[0].start,
                places[-1].end if places else stretch.start,
                (stretch.first + first, stretch.first + last),
                places,
                "" if opening else _asked(stretch.places[first - 1], texts[first - 1]),
                stretch.topic if opening else None,
            )
        )
    return paired


def _asked(place: TurnPlace, text: str) -> str:
    question = question_of(text)
    return f"{place.speaker}: {question}" if question and place.speaker else question


def _ranges(speakers: Sequence[str], texts: Sequence[str]) -> list[tuple[int, int]]:
    """Half-open ranges of turns that belong together."""
    roles = [speaker.casefold() in _ASKING_ROLES for speaker in speakers]
    if any(roles) and not all(roles):
        starts = [number for number, asks in enumerate(roles) if number == 0 or (asks and not roles[number - 1])]
    else:
        starts = _turn_starts(speakers, texts)
    return list(pairwise([*starts, len(speakers)])) if starts else [(0, 0)]


def _turn_starts(speakers: Sequence[str], texts: Sequence[str]) -> list[int]:
    runs = []
    for _, run in groupby(range(len(speakers)), key=lambda number: speakers[number]):
        numbers = list(run)
        runs.append((numbers[0], any(question_of(texts[number]) for number in numbers)))
    starts, at = [], 0
    while at < len(runs):
        start, asks = runs[at]
        starts.append(start)
        alone = at + 1 == len(runs) or (not asks and runs[at + 1][1])
        at += 1 if alone else 2
    return starts


Similarity = Callable[[Sequence[str]], np.ndarray]
"""Texts to vectors, float32 (n, d) of any length, whose cosine is their similarity; a row of zeros says nothing."""

WINDOW_TURNS = 3  # on either side: of 2, 3 and 4 it finds borders best; see `python -m tests.support.topic_measure`
_BLOCK = 4096  # turns whose vectors are in memory at once: those of a very long session would not fit
_FENCE = re.compile(rb"^[ \t]*(?P<fence>```+|~~~+)(?P<language>[^\n`]*)$", re.MULTILINE)
_SESSION = "session"
_TITLE_CHARACTERS = 80  # of a question that stand for it


@dataclass(frozen=True, slots=True)
class _Fence:
    """A block of code, its fence included."""

    start: int
    end: int
    language: str
    head: Head


@dataclass(frozen=True, slots=True)
class _Session:
    """What all steps on one document need."""

    text: SizedText
    turn_ids: Sequence[str]
    facts: Mapping[str, str]


def chunk_conversation(
    document: Document, sizes: ChunkSizes, count_tokens: TokenCounter, *, similarity: Similarity | None = None
) -> list[Chunk]:
    """Every exchange of a session, its topics, and the session itself where it fits as a whole.

    A question on one turn finds the exchange, one on the matter finds the topic.
    """
    text = SizedText(document.text, sizes, count_tokens)
    declared = document.metadata
    facts = {name: declared[name] for name in ("session", "time") if declared.get(name)}
    session = _Session(text, declared.get("turns", "").split(), facts)
    return assemble(document, text, list(_units(session, topics_of(text.source, sizes.topics, similarity))))


def topics_of(source: bytes, rules: TopicRules | None, similarity: Similarity | None) -> list[list[Exchange]]:
    """The exchanges of each topic, in order: topics end at markers, and between exchanges that are far apart."""
    every = exchanges(source, places(source), rules)
    apart: set[int] = set()
    if rules is not None and similarity is not None:
        texts = [turn_text(source, place) for exchange in every for place in exchange.places]
        gaps = distances(texts, WINDOW_TURNS, similarity)
        begun = [number for number, each in enumerate(every) if each.places]
        far = far_apart(gaps[[every[number].turns[0] for number in begun]], rules.distance)
        apart = {number for number, is_far in zip(begun, far, strict=True) if is_far}
    starts = [number for number, each in enumerate(every) if number == 0 or each.topic is not None or number in apart]
    return [every[first:last] for first, last in pairwise([*starts, len(every)])]


def far_apart(gaps: np.ndarray, threshold: float) -> np.ndarray:
    """Where a distance is above a threshold and those beside it are not larger, bool (n,): one border, not three."""
    padded = np.concatenate([[-np.inf], gaps, [-np.inf]])
    return np.asarray((gaps > threshold) & (gaps > padded[:-2]) & (gaps >= padded[2:]))


def distances(texts: Sequence[str], window: int, similarity: Similarity, *, block: int = _BLOCK) -> np.ndarray:
    """Cosine distance between what is said before and from each turn on, float (n,); 0 where either says nothing."""
    return np.concatenate([np.zeros(0), *_blocks(texts, window, similarity, block)])


def _blocks(texts: Sequence[str], window: int, similarity: Similarity, block: int) -> Iterator[np.ndarray]:
    for first in range(0, len(texts), block):
        around = max(0, first - window)
        last = min(len(texts), first + block)
        vectors = similarity(texts[around : last + window]).astype(np.float64)
        sums = np.concatenate([np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0)])
        at = np.arange(first, last) - around
        before = sums[at] - sums[np.maximum(at - window, 0)]
        after = sums[np.minimum(at + window, len(vectors))] - sums[at]
        lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        cosine = np.einsum("nd,nd->n", before, after) / np.where(lengths > 0.0, lengths, 1.0)
        yield np.where(lengths > 0.0, 1.0 - cosine, 0.0)


def _units(session: _Session, topics: Sequence[Sequence[Exchange]]) -> Iterator[ParsedUnit]:
    """The session, its topics and its exchanges; of a session that is too long as a whole, how it begins (ING-28)."""
    text, size = session.text, len(session.text.source)
    every = [exchange for topic in topics for exchange in topic]
    if not text.source.strip():
        return
    end = size if text.fits(0, size, text.sizes.max_tokens) else _end_of_opening(text, every)
    opening = [exchange for exchange in every if exchange.start < end]
    attributes = _attributes(session, opening)
    yield ParsedUnit(start=0, end=end, path=_SESSION, kind=_SESSION, level=0, attributes=attributes)
    runs = [(topic, run) for topic in topics for run in _runs(text, topic)]
    # A topic of one exchange is that exchange, and one alone is the session: only where all are, they stand for topics.
    apart = [run for _, run in runs if len(run) > 1 and (run[0].start, run[-1].end) != (0, size)]
    for topic, run in runs:
        parents: tuple[str, ...] = (_SESSION,)
        if not apart or any(run is each for each in apart):
            unit = _topic_unit(session, topic, run)
            whole = text.fits(unit.start, unit.end, text.sizes.max_tokens)
            yield unit if whole else replace(unit, end=_end_of_opening(text, run))
            parents = (unit.path, _SESSION)
        for exchange in run:
            yield from _exchange_units(session, topic, exchange, parents)


def _end_of_opening(text: SizedText, run: Sequence[Exchange]) -> int:
    """Where the first exchanges of a run end that fit together; within the first where it is too long alone."""
    start, limit = run[0].start, text.sizes.max_tokens
    ends: Sequence[int] = [exchange.end for exchange in run]
    if not text.fits(start, ends[0], limit):
        ends = _cuts(text, run[0], list(_fences(text.source, run[0]))).positions[1:]
    end = max(takewhile(lambda end: text.fits(start, end, limit), ends), default=start)
    # A sentence without end: a token stands for a byte or more.
    return end if end > start else character_start(text.source, min(ends[0], start + limit), start)


def _runs(text: SizedText, topic: Sequence[Exchange]) -> Iterator[list[Exchange]]:
    """A topic whole; where it is above the maximum, runs of its exchanges that are not."""
    run: list[Exchange] = []
    for exchange in topic:
        if run and not text.fits(run[0].start, exchange.end, text.sizes.max_tokens):
            yield run
            run = []
        run.append(exchange)
    yield run


def _topic_unit(session: _Session, topic: Sequence[Exchange], run: Sequence[Exchange]) -> ParsedUnit:
    name = topic[0].topic
    own_name = name if run[0] is topic[0] else None
    return ParsedUnit(
        start=run[0].start,
        end=run[-1].end,
        path=f"topic:{own_name or _exchange_path(session.text.source, run[0])}",
        kind="topic",
        level=1,
        parents=(_SESSION,),
        share=(run[-1].end - run[0].start) / (topic[-1].end - topic[0].start),
        heading_path=(name,) if name else (),
        attributes=_attributes(session, run),
    )


def _exchange_units(
    session: _Session, topic: Sequence[Exchange], exchange: Exchange, parents: tuple[str, ...]
) -> Iterator[ParsedUnit]:
    text, name = session.text, topic[0].topic
    elsewhere = name if exchange is not topic[0] else ""  # in the first one the marker itself is in the text
    question = _question(text.source, exchange)
    unit = ParsedUnit(
        start=exchange.start,
        end=exchange.end,
        path=_exchange_path(text.source, exchange),
        kind="turn_pair",
        level=2,
        parents=parents,
        context="\n".join(filter(None, (elsewhere, exchange.asked))),
        part_context="\n".join(filter(None, (name, question))),
        part_kind="turn_part",
        heading_path=(name,) if name else (),
        attributes=_attributes(session, (exchange,)),
    )
    minimum = text.sizes.min_tokens
    fences = [each for each in _fences(text.source, exchange) if not text.fits(each.start, each.end, minimum)]
    heads = [each.head for each in fences]
    parts = fitted(text, unit, partial(_cuts, text, exchange, fences), limit=text.sizes.max_tokens, heads=heads)
    spans = {(part.start, part.end) for part in parts}  # a block that is a part of the exchange is not said again
    blocks = [part for fence in fences for part in _fence_units(text, unit, fence, question)]
    rest = [*parts[1:], *(part for part in blocks if (part.start, part.end) not in spans)]
    yield parts[0]
    yield from sorted(rest, key=lambda part: (part.start, -part.end))


def _fence_units(text: SizedText, pair: ParsedUnit, fence: _Fence, question: str) -> list[ParsedUnit]:
    code = ParsedUnit(
        start=fence.start,
        end=fence.end,
        path=f"{pair.path}/code:{_digest(text.source[fence.start : fence.end])}",
        kind="code_block",
        level=3,
        parents=(pair.path, *pair.parents),
        context=question,
        part_context=question,
        part_kind="code_part",
        heading_path=pair.heading_path,
        attributes={**pair.attributes, **({"language": fence.language} if fence.language else {})},
    )
    cuts = partial(Cuts.between, fence.start, fence.end)
    return fitted(text, code, cuts, limit=text.sizes.max_tokens, heads=(fence.head,))


def _cuts(text: SizedText, exchange: Exchange, fences: Sequence[_Fence]) -> Cuts:
    """Cuts before turns and around blocks of code; between sentences where what lies between is too long."""
    inner = [place.start for place in exchange.places]
    inner += [at for fence in fences for at in (fence.start, fence.end)]
    cuts = Cuts.between(exchange.start, exchange.end, inner)
    code = {fence.start for fence in fences}
    fine: list[int] = []
    for start, end in pairwise(cuts.positions):
        fine.append(start)
        if start not in code and not text.fits(start, end, text.sizes.target_tokens // 2):
            fine += sentences(text.source, start, end)
    return Cuts.between(exchange.start, exchange.end, fine)


def _fences(source: bytes, exchange: Exchange) -> Iterator[_Fence]:
    for place in exchange.places:
        opened: re.Match[bytes] | None = None
        for mark in _FENCE.finditer(source, place.body, place.end):
            if opened is None:
                opened = mark
            elif mark["fence"].startswith(opened["fence"]) and not mark["language"].strip():
                start = source.rfind(b"\n", 0, opened.start("fence")) + 1
                end = min(mark.end() + 1, place.end)
                head = Head(opened.end() + 1, end, decoded(opened[0].strip()))
                yield _Fence(start, end, decoded(opened["language"].strip()), head)
                opened = None


def _attributes(session: _Session, run: Sequence[Exchange]) -> dict[str, str]:
    """Who spoke, when, and which turns these are by the ids of their source."""
    turns = [place for exchange in run for place in exchange.places]
    speakers = dict.fromkeys(place.speaker for place in turns if place.speaker)
    time = next((place.time for place in turns if place.time), None)
    ids = session.turn_ids[run[0].turns[0] : run[-1].turns[1]]
    facts = {"speakers": ", ".join(speakers), "turns": " ".join(ids), "time": time or ""}
    return {**session.facts, **{name: fact for name, fact in facts.items() if fact}}


def _question(source: bytes, exchange: Exchange) -> str:
    """What an exchange is about, in a line: the question of its first turn, else how that begins."""
    if not exchange.places:
        return ""
    first = exchange.places[0]
    words = turn_text(source, first)
    line = (question_of(words) or words.lstrip().partition("\n")[0])[:_TITLE_CHARACTERS]
    return f"{first.speaker}: {line}" if first.speaker else line


def _exchange_path(source: bytes, exchange: Exchange) -> str:
    """Named by its first turn, so that it stays the same whatever is said elsewhere."""
    first = exchange.places[0] if exchange.places else None
    return f"turn:{_digest(source[first.start : first.end])}" if first else "turns"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data.strip()).hexdigest()[:16]
