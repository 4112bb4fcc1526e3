"""FBK-11, LRN-3: one principal with a thousand sessions against three who vote once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from tests.support.feedback_events import (
    HASHES,
    NOON,
    RULES,
    accuracy,
    explicit,
    impression,
    model_quality,
    review,
    rules,
    shown,
    trust,
)
from tests.support.learner import learned
from tests.support.session_store import phase
from weft.domain.documents import Domain
from weft.domain.events import AnyEvent
from weft.domain.ids import content_hash, principal_fingerprint, question_fingerprint
from weft.domain.ranking import Scope, Signal
from weft.feedback.fold.names import OVERFLOW
from weft.learning.beliefs import Beliefs, read_beliefs
from weft.learning.evidence import Evidence
from weft.learning.parameters import PRODUCT
from weft.retrieval.ranking.context import PastOutcomes, QuestionVerdicts
from weft.retrieval.ranking.effects import effects_of
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
BAD, GOOD = HASHES[1], HASHES[2]
SCOPE = Scope(Domain.CODE)
SIGNALS = (Signal.VECTOR, Signal.LEXICAL)


def praise(
    principal: str, sessions: int, votes: int, *, content: int = 1, signal: float = 1.0, alone: bool = False
) -> Iterator[AnyEvent]:
    """So many verdicts of one principal on one content, spread over sessions, each of which learns alone, or none."""
    for number in range(sessions):
        session = {"session_id": f"{principal}-{number}", "principal": principal}
        query = f"{principal}-query-{number}"
        said: list[AnyEvent] = [
            impression(query, **session),
            *(
                explicit(signal, content, query_id=query, event_id=f"{query}-{content}-{vote}", **session)
                for vote in range(votes // sessions)
            ),
        ]
        yield from merged(said) if alone else said


def merged(said: list[AnyEvent]) -> list[AnyEvent]:
    """What is said in one session, which starts before and completes after."""
    who = {"session_id": said[0].session_id, "principal": said[0].principal}
    ends = [phase(name, event_id=f"{said[0].session_id} {name}", **who) for name in ("start", "complete")]
    return [ends[0], *said, ends[1]]


def believed(evidence: Evidence) -> Beliefs:
    return read_beliefs(PRIORS, evidence, now=NOON / 1000)


@pytest.mark.parametrize("alone", [False, True], ids=["heard at once", "each merged"])
def test_a_thousand_sessions_of_one_principal_are_less_than_three_votes(tmp_path: Path, alone: bool) -> None:
    """FBK-11: ten thousand praises of a bad document move it less than three honest ones do."""
    before = believed(Evidence()).content_signals([BAD]).usage[0]
    flood = learned(tmp_path / "flood", praise("mallory", 1_000, 10_000, alone=alone))
    honest = learned(tmp_path / "honest", (e for name in ("ada", "bob", "cyd") for e in praise(name, 1, 1)))
    flooded, voted = (believed(evidence).content_signals([BAD]).usage[0] - before for evidence in (flood, honest))
    assert sum(mass for key, mass in flood.usage.items() if key.content_hash == BAD) == 10_000 * 1_000_000
    assert 0 < flooded < voted
    # A cap of one observation: Beta(2 + 1, 2) against Beta(2 + 3, 2).
    assert (flooded, voted) == (pytest.approx(3 / 5 - 1 / 2), pytest.approx(5 / 7 - 1 / 2))


def test_the_cap_holds_across_partitions_and_days(tmp_path: Path) -> None:
    """LRN-3, ARC-1: evidence of two partitions is added before it is capped."""
    parts = [learned(tmp_path / str(part), praise("mallory", 3, 30)) for part in range(2)]
    whole = believed(Evidence.sum(parts)).content_signals([BAD]).usage[0]
    assert whole == believed(parts[0]).content_signals([BAD]).usage[0]


def test_what_goes_beyond_a_days_allowance_is_kept_beside(tmp_path: Path) -> None:
    """LRN-3, LRN-20: visible, exact, and read by nobody where others speak."""
    settings = rules(limits__principal_daily=5.0)
    evidence = learned(tmp_path / "flood", praise("mallory", 2, 20), settings)
    masses = {True: 0, False: 0}
    for key, mass in evidence.counts.items():
        if key.parameter.endswith("relevance"):
            masses[key.parameter.startswith("surplus.")] += mass
    assert masses == {False: 5_000_000, True: 15_000_000}
    within = learned(tmp_path / "five", praise("mallory", 1, 5))
    others = learned(tmp_path / "others", [*praise("ada", 1, 1), *praise("bob", 1, 1)])
    scope = (SCOPE, SIGNALS)
    assert believed(evidence + others).weights(*scope) == believed(within + others).weights(*scope)


def test_allowances_bind_as_others_appear(tmp_path: Path) -> None:
    """LRN-20: one or two are heard in full; with a third the bound holds, for what was said before, too.

    What the third said is unlearned, and so is the bound.
    """
    flood, whole = (
        learned(tmp_path / str(daily), praise("ada", 2, 60), rules(limits__principal_daily=daily))
        for daily in (6.0, 60.0)
    )
    votes = {name: learned(tmp_path / name, praise(name, 1, 1)) for name in ("bob", "cyd")}
    scope = (SCOPE, SIGNALS)

    def weights(evidence: Evidence, *names: str) -> object:
        return believed(Evidence.sum([evidence, *(votes[name] for name in names)])).weights(*scope)

    six = learned(tmp_path / "six", praise("ada", 1, 6))
    assert weights(flood) == weights(whole) != weights(six)
    assert weights(flood, "bob") == weights(whole, "bob")
    assert weights(flood, "bob", "cyd") == weights(six, "bob", "cyd") != weights(whole, "bob", "cyd")
    assert believed(Evidence.sum([flood, *votes.values()]) - votes["cyd"]).weights(*scope) == weights(whole, "bob")


CROWD = ("bob", "cyd", "dan")


def crowd() -> list[AnyEvent]:
    """Three others, each of whom reports something, so that allowances bind."""
    return [review(0.5, good=True, event_id=f"{who} reviews", session_id=who, principal=who) for who in CROWD]


def test_a_hundred_turns_of_one_conversation_are_a_hundred_turns(tmp_path: Path) -> None:
    """LRN-20, LRN-8: whatever else their principal said that day, and whoever else speaks."""
    turns = [model_quality(turn, 0.9, event_id=f"turn {turn}") for turn in range(1, 101)]
    evidence = learned(tmp_path, [*praise("ada", 1, 60), *crowd(), *turns])
    counted = sum(
        mass for key, mass in evidence.counts.items() if key.parameter == "quality" and key.bin.endswith(".n")
    )
    assert counted == 100 * 1_000_000


def reported(number: int) -> list[AnyEvent]:
    """One of everything that can be reported, once more."""
    kinds = (
        review(0.7, good=True, event_id=f"review {number}"),
        accuracy(9.0, accurate=True, event_id=f"accuracy {number}"),
        model_quality(3, 0.5, event_id=f"quality {number}"),
        *(trust(source, verified=True, event_id=f"{source} {number}") for source in ("blog", "paper")),
    )
    return list(kinds)


@pytest.mark.parametrize("alone", [False, True], ids=["heard at once", "merged"])
def test_nothing_reported_takes_the_place_of_anything_else(tmp_path: Path, alone: bool) -> None:
    """LRN-20: reports of each family, of each source up to an allowance of its own, and verdicts."""
    granted = {"review": 3.0, "accuracy": 4.0, "model_quality": 5.0, "trust": 2.0}
    said: list[AnyEvent] = [event for number in range(7) for event in reported(number)]
    said = [structs.replace(event, session_id="s", principal="ada") for event in said]
    settings = rules(limits__reports_daily=granted)
    evidence = learned(tmp_path, [*praise("ada", 1, 6), *(merged(said) if alone else said)], settings)
    counted: Counter[str] = Counter()
    for key, mass in evidence.counts.items():
        if not key.bin.endswith((".sum", ".squares")):
            counted[key.parameter] += mass
    parameters = {
        "threshold": 3,
        "decay": 4,
        "quality": 5,
        "trust.blog": 2,
        "trust.paper": 2,
    }
    assert {name: counted[name] for name in parameters} == {name: n * 1_000_000 for name, n in parameters.items()}
    beside = {name: counted[f"surplus.{name}"] for name in parameters}
    assert beside == {name: (7 - n) * 1_000_000 for name, n in parameters.items()}
    assert counted["relevance"] == 6 * 1_000_000


def test_a_flood_in_merged_sessions_is_the_same_flood(tmp_path: Path) -> None:
    """FBK-11, LRN-3: to the bit, where parts come out even: what is measured of one holds for the other."""
    at_once, merged_each = (
        learned(tmp_path / str(alone), praise("mallory", 20, 200, alone=alone)) for alone in (False, True)
    )
    assert merged_each == at_once


def ndcg(beliefs: Beliefs, collection: list[tuple[np.ndarray, np.ndarray, list[str]]]) -> float:
    """Mean nDCG@10 of ranking every query's documents for a stranger by weights and effects that are believed."""
    weights = beliefs.weights(SCOPE, SIGNALS)
    by_signal = np.array([weights[signal].mean for signal in SIGNALS])
    precedents, found = beliefs.precedents, []
    number = {name: at for at, name in enumerate(precedents.contents)}
    for query, (signals, relevant, hashes) in enumerate(collection):
        rows = np.arange(len(hashes))
        numbers = {row: (number[name],) for row, name in enumerate(hashes) if name in number}
        placed = {at: (row,) for row, (at,) in numbers.items()}
        near = {question_fingerprint(content_hash(f"q{query}")): 1.0}
        past = PastOutcomes(precedents, QuestionVerdicts.of(precedents, near, placed, ""), near, numbers)
        scores = signals @ by_signal
        effects = effects_of(past, rows, scores / scores.max())
        moved = np.nan_to_num(effects.content) + np.nan_to_num(effects.question)
        scores = scores + moved * scores.max() / precedents.prior.curve.slope
        gains = relevant[np.argsort(-scores, kind="stable")][:10]
        discounts = 1.0 / np.log2(np.arange(2, 12))
        ideal = np.sort(relevant)[::-1][:10] @ discounts
        found.append(gains @ discounts / ideal)
    return float(np.mean(found))


@pytest.mark.parametrize("alone", [False, True], ids=["heard at once", "each merged"])
def test_a_flood_costs_others_next_to_nothing(tmp_path: Path, alone: bool) -> None:
    """FBK-11: at most 0.01 nDCG@10 on a collection in which honest users have voted."""
    rng = np.random.default_rng(3)
    collection, events = [], []
    for query in range(60):
        relevant = (rng.random(20) < 0.25).astype(float)
        relevant[rng.integers(20)] = 1.0
        signals = np.clip(0.35 + 0.25 * relevant[:, None] + 0.2 * rng.standard_normal((20, 2)), 0.0, 1.0)
        hashes = [f"{query:032x}{document:032x}" for document in range(20)]
        collection.append((signals, relevant, hashes))
        results = [
            shown(
                1 + place,
                content_hash=hashes[place],
                signals={"vector": float(signals[place, 0]), "lexical": float(signals[place, 1])},
            )
            for place in range(6)
        ]
        user = {"session_id": f"s{query}", "principal": f"user{query % 12}"}
        events.append(impression(f"q{query}", results, **user))
        for place in range(6):
            facts = {"query_id": f"q{query}", "event_id": f"q{query}-{place}", **user}
            verdict = explicit(1.0 if relevant[place] else -1.0, 1, **facts)
            events.append(structs.replace(verdict, content_hash=hashes[place]))
    flood: list[AnyEvent] = []
    for number in range(1_000):
        signals, relevant, hashes = collection[number % 60]
        # What an attacker praises is what the search service showed, with the signals it had.
        bad = min(np.flatnonzero(relevant == 0).tolist(), key=lambda place: float(signals[place].sum()))
        values = {"vector": float(signals[bad, 0]), "lexical": float(signals[bad, 1])}
        who = {"session_id": f"m{number}", "principal": "mallory"}
        said: list[AnyEvent] = [impression(f"m{number}", [shown(1, content_hash=hashes[bad], signals=values)], **who)]
        for vote in range(10):
            verdict = explicit(1.0, 1, query_id=f"m{number}", event_id=f"m{number}-{vote}", **who)
            said.append(structs.replace(verdict, content_hash=hashes[bad]))
        flood += merged(said) if alone else said
    # The sessions of one principal reach every partition, each of which grants an allowance.
    everywhere = rules(
        limits__principal_daily=RULES.partitions * RULES.limits.principal_daily, limits__newcomers=10_000
    )
    honest = learned(tmp_path / "honest", events, everywhere)
    both = learned(tmp_path / "both", [*events, *flood], everywhere)
    before, after = (ndcg(believed(evidence), collection) for evidence in (honest, both))
    assert ndcg(believed(Evidence()), collection) < before
    assert before - after <= 0.01, (before, after)


def test_names_beyond_the_limit_share_one(tmp_path: Path) -> None:
    """FBK-8: the first ones in the log's order are told apart, wherever batches begin."""
    settings = {"limits__principals": 2, "limits__names": 1}
    events = [
        event
        for name in ("ada", "bob", "cyd", "dan", "ada")
        for event in (
            impression(f"{name}-q", model=f"model-{name}", session_id=name, principal=name, event_id=f"{name}-i"),
            explicit(query_id=f"{name}-q", session_id=name, principal=name, event_id=f"{name}-e"),
        )
    ]
    found = [learned(tmp_path / str(size), events, rules(**settings, poll_records=size)) for size in (1, 3, 100)]
    assert all(one == found[0] for one in found)
    told_apart = {principal_fingerprint(name) for name in ("ada", "bob")}
    assert {key.principal for key in found[0].usage} == {*told_apart, OVERFLOW}
    by_model = {key.model for key in found[0].counts if not key.parameter.startswith(PRODUCT)}
    assert by_model == {"model-ada", OVERFLOW}
