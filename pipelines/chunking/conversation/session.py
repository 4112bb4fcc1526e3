"""Conversations: a session, its topics, and in them questions with their answers (ING-8)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from pipelines.chunking.conversation.dialogue import TurnPlace, places
from pipelines.chunking.conversation.exchanges import Exchange, exchanges, question_of, spoken
from pipelines.chunking.conversation.topics import Similarity, distances
from pipelines.chunking.units.hierarchy import ParsedUnit, SourceFacts, assemble, fitted
from pipelines.chunking.units.sizes import ChunkSizes, TokenCounter, TopicRules
from pipelines.chunking.units.splitting import Cuts, Meter, decoded, encoded, sentences
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document

_FENCE = re.compile(rb"^[ \t]*(?P<fence>```+|~~~+)(?P<language>[^\n`]*)$", re.MULTILINE)
_SESSION = "session"
_NAMED = 80  # characters of a question that stand for it


@dataclass(frozen=True, slots=True)
class Segment:
    """Neighbouring exchanges about one thing."""

    exchanges: tuple[Exchange, ...]

    @property
    def start(self) -> int:
        """Its first byte."""
        return self.exchanges[0].start

    @property
    def end(self) -> int:
        """The byte after its last."""
        return self.exchanges[-1].end

    @property
    def topic(self) -> str:
        """Its name, where a marker gives one."""
        return self.exchanges[0].topic or ""


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code, its fence included."""

    start: int
    end: int
    language: str


@dataclass(frozen=True, slots=True)
class _Session:
    """What all steps on one document need."""

    source: bytes
    sizes: ChunkSizes
    meter: Meter
    turn_ids: Sequence[str]
    facts: Mapping[str, str]


def chunk_conversation(
    document: Document, sizes: ChunkSizes, count_tokens: TokenCounter, *, similarity: Similarity | None = None
) -> list[Chunk]:
    """Every exchange of a session, its topics, and the session itself where it fits as a whole.

    A chunk of a topic or a session holds what its exchanges hold once more: a question on one turn finds the exchange,
    one on the matter finds the topic. A topic above the maximum is several chunks of whole exchanges.

    Args:
        similarity: Of turns; without it topics end only where the transcript says so.
    """
    source = encoded(document.text)
    declared = document.metadata
    facts = {name: declared[name] for name in ("session", "time") if declared.get(name)}
    session = _Session(source, sizes, Meter(source, count_tokens), declared.get("turns", "").split(), facts)
    units = list(_units(session, segments(source, sizes.topics, similarity)))
    return assemble(document, source, units, facts=SourceFacts(), sizes=sizes, count_tokens=count_tokens)


def segments(source: bytes, rules: TopicRules | None, similarity: Similarity | None) -> list[Segment]:
    """Topics of a session, in order: they end at markers, and between exchanges that are far apart."""
    found = exchanges(source, places(source), rules)
    apart = _apart(source, found, rules, similarity)
    starts = [number for number, each in enumerate(found) if number == 0 or each.topic is not None or number in apart]
    return [Segment(tuple(found[first:last])) for first, last in pairwise([*starts, len(found)])]


def _apart(
    source: bytes, found: Sequence[Exchange], rules: TopicRules | None, similarity: Similarity | None
) -> set[int]:
    """Numbers of the exchanges before which the similarity of turns drops."""
    if rules is None or similarity is None:
        return set()
    texts = [spoken(source, place) for exchange in found for place in exchange.places]
    gaps = distances(texts, rules.window, similarity)
    return {number for number, each in enumerate(found) if each.places and gaps[each.turns[0]] > rules.distance}


def _units(session: _Session, topics: Sequence[Segment]) -> Iterator[ParsedUnit]:
    size, most = len(session.source), session.sizes.max_tokens
    several = sum(len(topic.exchanges) for topic in topics) > 1
    if several and session.meter.fits(0, size, most):
        every = tuple(exchange for topic in topics for exchange in topic.exchanges)
        yield ParsedUnit(
            start=0, end=size, path=_SESSION, kind=_SESSION, level=0, attributes=_attributes(session, every)
        )
    for topic in topics:
        parents: tuple[str, ...] = (_SESSION,)
        for run in _runs(session, topic):
            if len(run) > 1 and (run[0].start, run[-1].end) != (0, size):
                unit = _topic_unit(session, topic, run)
                yield unit
                parents = (unit.path, _SESSION)
            for exchange in run:
                yield from _exchange_units(session, topic, exchange, parents)


def _runs(session: _Session, topic: Segment) -> Iterator[list[Exchange]]:
    """A topic whole; where it is above the maximum, runs of its exchanges that are not."""
    run: list[Exchange] = []
    for exchange in topic.exchanges:
        if run and not session.meter.fits(run[0].start, exchange.end, session.sizes.max_tokens):
            yield run
            run = []
        run.append(exchange)
    yield run


def _topic_unit(session: _Session, topic: Segment, run: Sequence[Exchange]) -> ParsedUnit:
    named = run[0] is topic.exchanges[0] and topic.topic
    return ParsedUnit(
        start=run[0].start,
        end=run[-1].end,
        path=f"topic:{named or _exchange_path(session.source, run[0])}",
        kind="topic",
        level=1,
        parents=(_SESSION,),
        share=(run[-1].end - run[0].start) / (topic.end - topic.start),
        heading_path=(topic.topic,) if topic.topic else (),
        attributes=_attributes(session, run),
    )


def _exchange_units(
    session: _Session, topic: Segment, exchange: Exchange, parents: tuple[str, ...]
) -> Iterator[ParsedUnit]:
    named = topic.topic if exchange is not topic.exchanges[0] else ""  # elsewhere the marker itself is in the text
    question = _question(session.source, exchange)
    unit = ParsedUnit(
        start=exchange.start,
        end=exchange.end,
        path=_exchange_path(session.source, exchange),
        kind="turn_pair",
        level=2,
        parents=parents,
        context="\n".join(filter(None, (named, exchange.asked))),
        part_context="\n".join(filter(None, (topic.topic, question))),
        part_kind="turn_part",
        heading_path=(topic.topic,) if topic.topic else (),
        attributes=_attributes(session, (exchange,)),
    )
    fences = [
        fence
        for fence in _fences(session.source, exchange)
        if not session.meter.fits(fence.start, fence.end, session.sizes.min_tokens)
    ]
    cuts = partial(_cuts, session, exchange, fences)
    parts = fitted(
        unit, cuts, limit=session.sizes.max_tokens, source=session.source, sizes=session.sizes, meter=session.meter
    )
    blocks = (_fence_unit(session, unit, fence, question) for fence in fences)
    yield parts[0]
    rest = [*parts[1:], *(part for block in blocks for part in block if _own(part, parts))]
    yield from sorted(rest, key=lambda part: (part.start, -part.end))


def _own(block: ParsedUnit, parts: Sequence[ParsedUnit]) -> bool:
    """Whether a part of the exchange does not say the same already."""
    return all((part.start, part.end) != (block.start, block.end) for part in parts)


def _fence_unit(session: _Session, pair: ParsedUnit, fence: Fence, question: str) -> list[ParsedUnit]:
    code = ParsedUnit(
        start=fence.start,
        end=fence.end,
        path=f"{pair.path}/code:{_digest(session.source[fence.start : fence.end])}",
        kind="code_block",
        level=3,
        parents=(pair.path, *pair.parents),
        context=question,
        part_context=question,
        part_kind="code_part",
        heading_path=pair.heading_path,
        attributes={**pair.attributes, **({"language": fence.language} if fence.language else {})},
    )
    whole = partial(Cuts.between, fence.start, fence.end)
    limit = session.sizes.max_tokens
    return fitted(code, whole, limit=limit, source=session.source, sizes=session.sizes, meter=session.meter)


def _cuts(session: _Session, exchange: Exchange, fences: Sequence[Fence]) -> Cuts:
    """Cuts before turns and around blocks of code; between sentences where what lies between is too long."""
    inner = [place.start for place in exchange.places]
    inner += [at for fence in fences for at in (fence.start, fence.end)]
    cuts = Cuts.between(exchange.start, exchange.end, inner)
    code = {fence.start for fence in fences}
    fine: list[int] = []
    for start, end in pairwise(cuts.positions):
        fine.append(start)
        if start not in code and not session.meter.fits(start, end, session.sizes.target_tokens // 2):
            fine += sentences(session.source, start, end)
    return Cuts.between(exchange.start, exchange.end, fine)


def _fences(source: bytes, exchange: Exchange) -> Iterator[Fence]:
    for place in exchange.places:
        opened: re.Match[bytes] | None = None
        for mark in _FENCE.finditer(source, place.body, place.end):
            if opened is None:
                opened = mark
            elif mark["fence"].startswith(opened["fence"]) and not mark["language"].strip():
                start = source.rfind(b"\n", 0, opened.start("fence")) + 1
                yield Fence(start, min(mark.end() + 1, place.end), decoded(opened["language"].strip()))
                opened = None


def _attributes(session: _Session, held: Sequence[Exchange]) -> dict[str, str]:
    """Who spoke, when, and which turns these are by the ids of their source."""
    turns = [place for exchange in held for place in exchange.places]
    speakers = dict.fromkeys(place.speaker for place in turns if place.speaker)
    time = next((place.time for place in turns if place.time), None)
    ids = session.turn_ids[held[0].turns[0] : held[-1].turns[1]]
    facts = {"speakers": ", ".join(speakers), "turns": " ".join(ids), "time": time or ""}
    return {**session.facts, **{name: fact for name, fact in facts.items() if fact}}


def _question(source: bytes, exchange: Exchange) -> str:
    """What an exchange is about, in a line: the question of its first turn, else how that begins."""
    if not exchange.places:
        return ""
    first: TurnPlace = exchange.places[0]
    text = spoken(source, first)
    line = question_of(text) or text.lstrip().partition("\n")[0]
    return f"{first.speaker}: {line[:_NAMED]}" if first.speaker else line[:_NAMED]


def _exchange_path(source: bytes, exchange: Exchange) -> str:
    """Named by its first turn, so that it stays the same whatever is said elsewhere."""
    first = exchange.places[0] if exchange.places else None
    return f"turn:{_digest(source[first.start : first.end])}" if first else "turns"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data.strip()).hexdigest()[:16]
