"""`weft principals`: what somebody said and what it moved, and taking it out again (LRN-17a)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import numpy as np
import typer

from weft.app.producer import acknowledged_producer
from weft.catalog.catalog import Catalog
from weft.cli.commands.partitions import states
from weft.cli.console.options import Bootstrap, CommonOptions, Limit, command
from weft.cli.console.output import Result, Shown, rows
from weft.cli.console.terminal import note, table_of
from weft.domain.errors import StoreError
from weft.domain.event_fields import HEXADECIMAL
from weft.domain.ids import ContentHash, principal_fingerprint
from weft.evaluation.log.erasure import erase_from_logs
from weft.evaluation.queries.reader import read_queries
from weft.feedback.fold.names import NameKind
from weft.feedback.fold.sessions import SessionLifecycle
from weft.feedback.store.overlays import SETTLED, overlay_in, sessions_in
from weft.feedback.store.tables import source_counts_in
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.verdicts import VERDICT, VerdictBin, question_texts
from weft.learning.priors import Priors
from weft.learning.reading import BeliefChange, moves, read_all
from weft.runtime.clock import system_clock
from weft.runtime.pages import number
from weft.settings import Settings, require_store

Name = Annotated[str, typer.Argument(help="The principal, as events name it.")]

_PHASE, _CORRECTION = "session", "correction"
_LOOKED_AT = 10_000  # logged queries, the newest, that name who asked
_HASH = 12  # characters of a hash that are shown
_CONTENTS = ("content", "question", "what", "observations")
_BELIEFS = ("family", "scope", "parameter", "without", "with", "change")

principals = typer.Typer(no_args_is_help=True, help="Who said what, what it moved, and taking it out again.")


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


@principals.command("list")
@command
def list_principals(options: CommonOptions, limit: Limit = 100) -> Result:
    """Who said something, the most first; by name as far as sessions and the query log name them."""
    everybody = sorted(
        _everybody(options.settings()), key=lambda each: (-sum(each.events.values()), each.name, each.fingerprint)
    )
    return rows(
        everybody[:limit],
        document=asdict,
        columns=("principal", "events", "right", "wrong", "history"),
        texts=lambda each: (
            each.name or f"fingerprint {each.fingerprint}",
            f"{sum(each.events.values()):,}",
            f"{each.right:,}",
            f"{each.wrong:,}",
            "" if not each.right + each.wrong else "of one day" if each.new else "of several days",
        ),
        after=[f"{len(everybody):,} principals"],
    )


def _everybody(settings: Settings) -> Iterator[ListedPrincipal]:
    root = require_store(settings)
    events: defaultdict[str, Counter[str]] = defaultdict(Counter)
    names = {query.facts["principal"] for query in read_queries(root, limit=_LOOKED_AT, since=0.0)}
    for state in states(settings):
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


@principals.command()
@command
def show(principal: Name, options: CommonOptions) -> Result:
    """What a principal said, the results and beliefs that it moved, and what of it can be taken out."""
    settings, catalog = options.opened()
    words = _words_of(settings, principal)
    changes = list(_moved(settings.priors, catalog.live.evidence(), words))
    return Result([_document(principal, words, changes)], _page(principal, words, changes))


def _page(principal: str, words: PrincipalActivity, changes: Sequence[BeliefChange]) -> Iterator[Shown]:
    events = ", ".join(f"{kind} {count:,}" for kind, count in sorted(words.events.items()))
    yield f"{principal}: {events}"
    yield table_of(_CONTENTS, map(_content_texts, _contents(words)), title="contents")
    if changes:
        yield table_of(_BELIEFS, map(_belief_texts, changes), title="beliefs, with and without it")
    yield f"{len(words.sessions):,} sessions that it started"
    yield _lasting(words)


@principals.command()
@command
def unlearn(principal: Name, options: CommonOptions, bootstrap: Bootstrap = None) -> Result:
    """Take out all that a store holds of a principal, and say what remains where, and until when.

    At once: its questions, what it did about answers and its judgements, in the logs. When the updaters read of it:
    its name, its questions, what it said of contents, and its sessions of the last ninety days, exactly. What it said
    outside of sessions that sent `start` has moved weights, which stay: nobody's share of these is told apart.
    """
    settings, catalog = options.opened(bootstrap=bootstrap)
    words = _activity_of(settings, principal)
    event_ids = []
    if words.events:
        _require_in_force(catalog)
        with acknowledged_producer(settings) as producer:
            event_ids = producer.unlearn(principal, partitions=words.partitions)
    erased = erase_from_logs(catalog.root, principal)
    if not words.events and not any(erased.values()):
        raise _unheard(principal)
    remains = _remains(settings, catalog, words)
    facts = {"principal": principal, "event_ids": event_ids, "lasting": words.lasting}
    return Result([{**facts, "erased": erased, "remains": remains}], then=lambda: _say(erased, remains))


def _say(erased: Mapping[str, int], remains: Mapping[str, str]) -> None:
    note(f"erased from the logs: {', '.join(f'{count:,} {what}' for what, count in erased.items())}")
    for where, until in remains.items():
        note(f"remains in {where}: {until}")


def _remains(settings: Settings, catalog: Catalog, words: PrincipalActivity) -> dict[str, str]:
    """What still holds something of a principal, and until when."""
    remains = {"backups": "until you remove or overwrite them"}
    if words.events:
        topics = f"{settings.feedback.topic} and {settings.feedback.dead_letter_topic}"
        remains |= {
            f"the topics {topics}": "its events, until their retention (retention.ms) ends",
            "dead letters of the updaters": "records that could not be read, until newer ones take their place",
            "checkpoints": "the state before, until updaters have written two newer ones, one every quarter of an hour",
            "states set aside as damaged": "until `weft feedback damaged remove` removes them",
            "the evidence": _lasting(words),
        }
    if versions := catalog.learned.versions():
        remains["learned versions"] = (
            f"what it said of contents, with its questions, under a fingerprint, in {versions[-1]} and older ones and "
            "their copies in MLflow, until you remove these; what is live counts none of it"
        )
    return remains


def _words_of(settings: Settings, principal: str) -> PrincipalActivity:
    words = _activity_of(settings, principal)
    if not words.events:
        raise _unheard(principal)
    return words


def _unheard(principal: str) -> StoreError:
    return StoreError(f"expected a principal that said something, found no {principal!r}: name it as its events do")


def _activity_of(settings: Settings, principal: str) -> PrincipalActivity:
    words, fingerprint = PrincipalActivity(), principal_fingerprint(principal)
    overlays = []
    for state in states(settings):
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
    with closing(catalog.open_live()) as generation:
        chunks, hashes = generation.chunks, sorted(names - places.keys())
        rows = {name: row for name in hashes if (row := chunks.row_now(ContentHash(name))) is not None}
        for name, content in zip(rows, chunks.contents(list(rows.values())), strict=True):
            chunk = content.occurrences[0].chunk
            places[name] = f"{content.occurrences[0].uri}:{chunk.start_line}-{chunk.end_line}"
    return places


def _usage_of(evidence: Evidence, fingerprint: str) -> Evidence:
    return Evidence({}, {key: micro for key, micro in evidence.usage.items() if key.principal == fingerprint and micro})


def _moved(priors: Priors, live: Evidence, words: PrincipalActivity) -> Iterator[BeliefChange]:
    """Beliefs that its sessions moved, those that surprise most first."""
    now = system_clock()
    before, after = (read_beliefs(priors, each, now=now) for each in (live - Evidence(words.settled.counts, {}), live))
    scopes = list(after.scopes())
    return iter(moves(read_all(before, priors, scopes), read_all(after, priors, scopes), level=priors.interval.level))


def _contents(words: PrincipalActivity) -> list[Mapping[str, Any]]:
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


def _document(principal: str, words: PrincipalActivity, changes: Iterable[BeliefChange]) -> dict[str, Any]:
    return {
        "principal": principal,
        "fingerprint": principal_fingerprint(principal),
        "events": dict(words.events),
        "contents": _contents(words),
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


def _content_texts(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["place"] or row["content_hash"][:_HASH],
        row["text"] or row["question"],
        _word(row["what"]) + ("" if row["holds"] else ", until it said otherwise"),
        f"{row['observations']:.2f}",
    )


def _word(what: str) -> str:
    """What was said, in a word."""
    return {True: "right", False: "wrong"}[VerdictBin.of(what).good] if what.startswith(VERDICT) else what


def _belief_texts(change: BeliefChange) -> tuple[str, ...]:
    sides = (number(None if each is None else each.mean) for each in (change.before, change.after))
    return (*change.key, *sides, number(change.change, sign=True))


def _lasting(words: PrincipalActivity) -> str:
    if not words.lasting:
        return "all of it can be taken out again"
    events = f"{words.lasting:,} event{'s' * (words.lasting > 1)}"
    return (
        f"up to {events} came outside of sessions that sent `start`, or more than ninety days ago: "
        "what they said of contents can be taken out again, what they moved of weights cannot"
    )


def _require_in_force(catalog: Catalog) -> None:
    """Refuse after a rollback: what the night had folded in is out already, and would be taken out twice."""
    pointer = catalog.pointer()
    if pointer.decided != pointer.learned:
        raise StoreError(
            f"expected the learned version {pointer.decided} to be live, found {pointer.learned}, to which it was "
            "rolled back: wait for the next night, or make it live again"
        )
