"""What somebody said and what it moved, and taking it out again (LRN-17a, OPS-13a)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.catalog.catalog import Catalog
from weft.domain.errors import StoreError
from weft.domain.event_fields import HEXADECIMAL
from weft.domain.ids import ContentHash, principal_fingerprint
from weft.evaluation.log.erasure import erase_from_logs
from weft.evaluation.queries.reader import read_queries
from weft.feedback.fold.names import NameKind
from weft.feedback.fold.sessions import SessionLifecycle
from weft.feedback.run.partitions import states_in
from weft.feedback.store.overlays import SETTLED, overlay_in, sessions_in
from weft.feedback.store.tables import source_counts_in
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.verdicts import VERDICT, VerdictBin, question_texts
from weft.learning.priors import Priors
from weft.learning.reading import BeliefChange, moves, read_all
from weft.runtime.clock import system_clock
from weft.runtime.storage.stored_answers import forget_answers
from weft.settings import Settings, require_store

_PHASE, _CORRECTION = "session", "correction"
_LOOKED_AT = 10_000  # logged queries, the newest, that name who asked


@dataclass(slots=True)
class PrincipalActivity:
    """What a principal said, over all partitions of a store."""

    partitions: int = 0  # how many the topic has
    events: Counter[str] = field(default_factory=Counter)  # applied ones, by kind
    # that it started and that are remembered, with their partitions
    sessions: list[tuple[int, SessionLifecycle]] = field(default_factory=list)
    settled: Evidence = field(default_factory=Evidence)  # what those brought into the evidence that all share
    # what it said of contents, as it counts now, with its own masses alone
    usage: Evidence = field(default_factory=Evidence)
    texts: Mapping[str, str] = field(default_factory=dict)  # of questions, by fingerprint
    # of contents that the live generation holds, by hash or by how they were pointed at
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def lasting(self) -> int:
        """Events that none of its sessions holds, at most: what these moved of weights stays. Corrections move none."""
        spoken = sum(count for kind, count in self.events.items() if kind != _PHASE)
        outside = spoken - sum(life.pending + life.settled for _, life in self.sessions)
        return max(0, min(outside, spoken - self.events[_CORRECTION]))


@dataclass(frozen=True, slots=True)
class ListedPrincipal:
    """One principal among all."""

    fingerprint: str
    name: str  # as its sessions or its searches give it; "" where neither does: evidence keeps fingerprints alone
    events: Mapping[str, int]  # applied ones, by kind
    right: int  # Contents that it calls so now, each under one question
    wrong: int
    new: bool  # whether all that it says of contents is of one day


def everybody(settings: Settings) -> Iterator[ListedPrincipal]:
    """Who said something, with how much of it counts now."""
    root = require_store(settings)
    events: defaultdict[str, Counter[str]] = defaultdict(Counter)
    names = {query.facts["principal"] for query in read_queries(root, limit=_LOOKED_AT, since=0.0)}
    for state in states_in(require_store(settings), settings.feedback):
        for (kind, fingerprint, what), count in state.read(source_counts_in).items():
            if kind == NameKind.PRINCIPAL:
                events[fingerprint][what] += count
        names |= {life.principal for life in state.read(sessions_in)}
    named = {principal_fingerprint(name): name for name in names}
    precedents = read_beliefs(settings.priors, Catalog(root).live.evidence(), now=system_clock()).precedents
    words = precedents.verdicts.take(precedents.verdicts.spoken)
    spoken: defaultdict[str, list[int]] = defaultdict(list)
    for at, principal in enumerate(words.principal.tolist()):
        spoken[precedents.principals[principal]].append(at)
    for fingerprint, counts in events.items():
        own = words.take(np.array(spoken[fingerprint], dtype=np.int64))
        right = int((own.good > 0.5).sum())
        new = bool(np.isfinite(own.together).any())
        yield ListedPrincipal(fingerprint, named.get(fingerprint, ""), dict(counts), right, len(own.good) - right, new)


def words_of(settings: Settings, principal: str) -> PrincipalActivity:
    """What a principal said; `StoreError` where it said nothing."""
    words = activity_of(settings, principal)
    if not words.events:
        raise unheard(principal)
    return words


def unheard(principal: str) -> StoreError:
    """That nobody of this name said anything."""
    return StoreError(f"expected a principal that said something, found no {principal!r}: name it as its events do")


def activity_of(settings: Settings, principal: str) -> PrincipalActivity:
    """What a principal said, which may be nothing."""
    words, fingerprint = PrincipalActivity(), principal_fingerprint(principal)
    overlays = []
    for state in states_in(require_store(settings), settings.feedback):
        words.partitions = state.report().partitions
        for (kind, name, what), count in state.read(source_counts_in).items():
            if (kind, name) == (NameKind.PRINCIPAL, fingerprint):
                words.events[what] += count
        mine = [life for life in state.read(sessions_in) if life.principal == principal]
        words.sessions += [(state.partition, life) for life in mine]
        overlays += [state.read(overlay_in, life.session, SETTLED) for life in mine if life.settled]
    words.settled = Evidence.sum(overlays)
    live = Catalog(require_store(settings)).live.evidence()
    words.usage, words.texts = _usage_of(live, fingerprint), question_texts(live.usage)
    words.places = _places(Catalog(require_store(settings)), {key.content_hash for key in words.usage.usage})
    return words


def _places(catalog: Catalog, names: set[str]) -> dict[str, str]:
    """Where contents stand, or what they became, as far as that is live; a place that was pointed at is its own."""
    places = {name: name for name in names if not re.fullmatch(HEXADECIMAL, name)}
    if catalog.pointer().generation is None:
        return places
    with closing(catalog.open_live(searched=False)) as generation:
        chunks, hashes = generation.chunks, sorted(names - places.keys())
        rows = {name: row for name in hashes if (row := chunks.row_now(ContentHash(name))) is not None}
        for name, content in zip(rows, chunks.contents(list(rows.values())), strict=True):
            chunk = content.occurrences[0].chunk
            places[name] = f"{content.occurrences[0].uri}:{chunk.start_line}-{chunk.end_line}"
    return places


def _usage_of(evidence: Evidence, fingerprint: str) -> Evidence:
    return Evidence({}, {key: micro for key, micro in evidence.usage.items() if key.principal == fingerprint and micro})


def moved_by(priors: Priors, live: Evidence, words: PrincipalActivity) -> Iterator[BeliefChange]:
    """Beliefs that its sessions moved, those that surprise most first."""
    now = system_clock()
    before, after = (read_beliefs(priors, each, now=now) for each in (live - Evidence(words.settled.counts, {}), live))
    scopes = list(after.scopes())
    return iter(moves(read_all(before, priors, scopes), read_all(after, priors, scopes), level=priors.interval.level))


def verdicts_by_content(words: PrincipalActivity) -> list[Mapping[str, Any]]:
    """What it said of each content under each question, the most first, and whether the last word is another."""
    masses: Counter[tuple[str, str, str]] = Counter()
    last: dict[tuple[str, str], tuple[int, int, str]] = {}
    for key, micro in words.usage.usage.items():
        masses[key.content_hash, key.question, key.bin] += micro
        if key.bin.startswith(VERDICT):
            pair, when = (key.content_hash, key.question), (key.day, VerdictBin.of(key.bin).ms, key.bin)
            last[pair] = max(when, last.get(pair, when))
    return [
        {
            "content_hash": content,
            "place": words.places.get(content),
            "question": question,
            "text": words.texts.get(question),
            "what": what,
            "holds": not what.startswith(VERDICT) or last[content, question][2] == what,
            "observations": micro / MICRO,
        }
        for (content, question, what), micro in sorted(masses.items(), key=lambda item: (-abs(item[1]), item[0]))
    ]


def principal_document(principal: str, words: PrincipalActivity, changes: Iterable[BeliefChange]) -> dict[str, Any]:
    """What a principal said, in JSON's own types."""
    return {
        "principal": principal,
        "fingerprint": principal_fingerprint(principal),
        "events": dict(words.events),
        "contents": verdicts_by_content(words),
        "sessions": [{"partition": partition, **life._asdict()} for partition, life in words.sessions],
        "beliefs": [
            {
                **dict(zip(("family", "scope", "parameter"), change.key, strict=True)),
                "without": None if change.before is None else change.before.mean,
                "with": None if change.after is None else change.after.mean,
            }
            for change in changes
        ],
        "lasting": words.lasting,
    }


def lasting_of(words: PrincipalActivity) -> str:
    """How much of it can be taken out, in a sentence."""
    if not words.lasting:
        return "all of it can be taken out again"
    events = f"{words.lasting:,} event{'s' * (words.lasting > 1)}"
    return (
        f"up to {events} came outside of sessions that sent `start`, or more than ninety days ago: "
        "what they said of contents can be taken out again, what they moved of weights cannot"
    )


def require_in_force(catalog: Catalog) -> None:
    """Refuse after a rollback: what the night had folded in is out already, and would be taken out twice."""
    pointer = catalog.pointer()
    if pointer.decided != pointer.learned:
        raise StoreError(
            f"expected the learned version {pointer.decided} to be live, found {pointer.learned}, to which it was "
            "rolled back: wait for the next night, or make it live again"
        )


@dataclass(frozen=True, slots=True)
class Erased:
    """What was taken out of a store for a principal, and what remains."""

    principal: str
    lasting: int
    erased: Mapping[str, int]  # rows by log
    remains: Mapping[str, str]  # until when, by place

    def to_dict(self, event_ids: Sequence[str]) -> dict[str, Any]:
        """All of it in JSON's own types."""
        facts = {"principal": self.principal, "event_ids": list(event_ids), "lasting": self.lasting}
        return {**facts, "erased": dict(self.erased), "remains": dict(self.remains)}


def erase(settings: Settings, principal: str, words: PrincipalActivity) -> Erased:
    """Take what a principal asked, was given and judged out of the logs, and say what remains where.

    What it said is taken out of the evidence by events: whoever calls this sends them.

    Raises:
        StoreError: Nothing of it is anywhere.
    """
    catalog = Catalog(require_store(settings))
    erased = {**erase_from_logs(catalog.root, principal), "answers": forget_answers(catalog.root, principal)}
    if not words.events and not any(erased.values()):
        raise unheard(principal)
    return Erased(principal, words.lasting, erased, remains_of(settings, catalog, words))


def remains_of(settings: Settings, catalog: Catalog, words: PrincipalActivity) -> dict[str, str]:
    """What still holds something of a principal, and until when."""
    remains = {"backups": "until you remove or overwrite them"}
    if words.events:
        topics = f"{settings.feedback.topic} and {settings.feedback.dead_letter_topic}"
        remains |= {
            f"the topics {topics}": "its events, until their retention (retention.ms) ends",
            "dead letters of the updaters": "records that could not be read, until newer ones take their place",
            "checkpoints": "the state before, until updaters have written two newer ones, one every quarter of an hour",
            "states set aside as damaged": "until `weft feedback damaged remove` removes them",
            "the evidence": lasting_of(words),
        }
    if versions := catalog.learned.versions():
        remains["learned versions"] = (
            f"what it said of contents, with its questions, under a fingerprint, in {versions[-1]} and older ones and "
            "their copies in MLflow, until you remove these; what is live counts none of it"
        )
    return remains
