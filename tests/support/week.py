"""A week of simulated users and nights over two releases of real documentations, and what it makes of the answers.

    python -m tests.support.week [NAME …] [--days 7] [--sessions 100] [--declared] [--silent] [--set KEY=VALUE …]

Every day users ask half of the questions, read, open and judge what is shown, as the laboratory states:
what a reader who knows the newer release is content with is right, an outdated page and what contradicts it are wrong.
Their events go through the real fold of an updater, answers into the query log, and in the evening `jobs.consolidate`'s
own night runs, with its gate. A reviewer takes a night that waits, unless questions with known answers are answered
worse by more than chance. Before the week and after each night all questions are asked, those that nobody asks too.
`--silent` leaves out users: what nights do alone. `--declared` has sidecars that say of every second page what it
supersedes. Documentation is kept below `~/.cache/weft/documentation`, stores below `<storage.root>/evaluation/week`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from rich.console import Console
from rich.table import Table

from lab.settings import simulated_users
from lab.simulation.users import (
    PAGE,
    question_schedule,
    react,
    send_reactions,
    with_replies,
    without_newcomers,
)
from lab.stores import isolated_store
from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.real_measure import DOCUMENTATION
from tests.support.real_questions import COMMITTED, RealQuestion
from tests.support.week_corpus import Standing, WeekCorpus, make_corpus
from weft.app.collections import measuring
from weft.app.indexing import plan_of
from weft.app.night import asking_night
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.cli.commands.consolidate import run_visibly
from weft.cli.reports.indexing import headline
from weft.consolidation.champion import promote
from weft.consolidation.night import Night
from weft.consolidation.steps.gate import Decision
from weft.domain.ids import QueryId, SessionId, VersionName
from weft.domain.links import LinkKind
from weft.domain.ranking import Answer, Query
from weft.evaluation.measures.metrics import measure
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.events.producer import FeedbackProducer
from weft.feedback.run.updater import Updater
from weft.ingestion.pipeline import ingest
from weft.learning.edges import LearnedEdges
from weft.retrieval.searcher import Searcher
from weft.runtime import clock as clocks
from weft.runtime.kafka.log import Record
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

MONDAY = 1_789_344_000.0  # 2026-09-14 00:00 UTC: all releases and copies are older
HOUR_S, DAY_S = 3_600.0, 86_400.0
OPENS, CLOSES, NIGHT = 8.0, 18.0, 22.0  # hours of a day
ROUNDS = 4
"""How often a day searches see what was learned by then."""
USERS = 40
NAMES = ("flask", "black", "mypy", "pytest", "celery")
FOUND = (LinkKind.SUPERSEDES, LinkKind.CONTRADICTS)
STEPS = ("successions", "duplicates", "links", "contradictions")
HALVES = ("asked", "unasked")
WIDTH = 200


@dataclass
class Now:
    """The time of weft's clock while a block runs."""

    at: float = MONDAY

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Let every part of weft that asks for the time be told this one."""
        stand_in = SimpleNamespace(time=lambda: self.at, strftime=time.strftime, gmtime=time.gmtime)
        with mock.patch.object(clocks, "time", stand_in):
            yield


class Topic:
    """A topic of one partition in memory, whose broker has the clock of the block."""

    waiting = lost = 0

    def __init__(self, now: Now) -> None:
        self._now = now
        self.log = FakeLog([[]])

    def send(self, key: bytes, value: bytes) -> None:
        records = self.log.partitions[0]
        records.append(Record(0, len(records), round(self._now.at * 1000), key, value, by_broker=True))

    def flush(self) -> None: ...

    def close(self) -> int:
        return 0


@dataclass(frozen=True)
class Measured:
    """How the questions of one half are answered.

    Attributes:
        first: Share of the questions whose first answer is of each standing.
    """

    ndcg: float
    first: Mapping[str, float]
    questions: int


@dataclass(frozen=True)
class Evening:
    """What a store answers after a night; before the first one there was none.

    Attributes:
        steps: Counts of the night's steps.
        acting: Of the relations that act by themselves, how many hold and how many there are, by kind.
    """

    day: int
    halves: Mapping[str, Measured]
    learned: str = ""
    decision: str = ""
    steps: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    reason: str = ""
    acting: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """Where what users are shown and do goes, and when."""

    now: Now
    topic: Topic
    log: QueryLog


def indexed(corpus: WeekCorpus, settings: Settings, root: Path) -> Settings:
    """The settings with a store that holds the corpus as the code at hand cuts it."""
    stored = settings.model_copy(update={"storage": settings.storage.model_copy(update={"root": str(root)})})
    outcome = ingest(plan_of(stored, [corpus.folder]), Catalog(root), HERE, lambda _: None, clock=time.monotonic)
    sys.stderr.write(f"{headline(outcome)}: {outcome.documents} documents, {outcome.chunks} chunks\n")
    return stored


def halves_of(questions: Sequence[RealQuestion], seed: int) -> dict[str, list[RealQuestion]]:
    """The questions that users ask, and as many that nobody asks."""
    drawn = random.Random(seed).sample(list(questions), len(questions))
    middle = (len(drawn) + 1) // 2
    return {"asked": drawn[:middle], "unasked": drawn[middle:]}


def measured(searcher: Searcher, corpus: WeekCorpus, questions: Sequence[RealQuestion]) -> Measured:
    """Ask some questions as nobody in particular."""
    asked = [Query(text=each.text, query_id=QueryId(each.question_id), k=PAGE) for each in questions]
    answers = dict(zip((each.question_id for each in questions), searcher.search_many(asked), strict=True))
    run = {name: ranked(corpus, answer) for name, answer in answers.items()}
    values = measure(run, {name: corpus.qrels[name] for name in run})["ndcg_at_10"]
    first = [corpus.standing(answer.results[0].uris) for answer in answers.values() if answer.results]
    shares = {each.value: first.count(each) / len(answers) for each in Standing}
    return Measured(sum(values.values()) / len(values), shares, len(values))


def ranked(corpus: WeekCorpus, answer: Answer) -> dict[str, float]:
    """What an answer shows, best first, by the names that judgements have."""
    names = dict.fromkeys(name for result in answer.results for name in corpus.names(result.uris))
    return {name: -float(rank) for rank, name in enumerate(names)}


def week(corpus: WeekCorpus, stored: Settings, *, days: int, sessions: int, silent: bool) -> list[Evening]:
    """Live through some days in a store of its own, which shares the generation and is gone afterwards."""
    now, rng = Now(), random.Random(stored.evaluation.seed)
    halves = halves_of(corpus.questions, stored.evaluation.seed)
    lessons = question_schedule(halves["asked"], days * sessions, rng)
    with now.told(), isolated_store(living(stored)) as settings:
        root, topic = Path(settings.storage.root), Topic(now)
        evenings = [Evening(0, _asked(settings, corpus, halves))]
        for day in range(1, days + 1):
            start = MONDAY + (day - 1) * DAY_S
            if not silent:
                some = lessons[(day - 1) * sessions : day * sessions]
                with opened(settings) as searcher, QueryLog(root, settings.query_log) as log:
                    for part in range(ROUNDS):
                        now.at = start + (OPENS + (CLOSES - OPENS) * part / ROUNDS) * HOUR_S
                        own = list(enumerate(some))[part::ROUNDS]
                        _teach(corpus, settings, searcher, Told(now, topic, log), own)
                        _fold(settings, root, topic)
                        searcher.refresh()
            now.at = start + NIGHT * HOUR_S
            with asking_night(settings) as night:
                summary = run_visibly(night)
            steps = {name: dict(summary["steps"].get(name, {})) for name in (*STEPS, "expiry", "rebuild")}
            told = str(summary["learned"]), _reviewed(night, summary), steps, str(summary.get("reason", ""))
            after = _asked(settings, corpus, halves)
            evenings.append(Evening(day, after, *told, acting(root, corpus)))
            sys.stderr.write(f"{json.dumps(asdict(evenings[-1]))}\n")
    return evenings


def living(settings: Settings) -> Settings:
    """The settings of a store whose users are known and whose beliefs change when searches are told to look."""
    limits = settings.feedback.limits.model_copy(update={"newcomers": settings.feedback.limits.principals})
    changes = {
        "retrieval": settings.retrieval.model_copy(update={"refresh_s": 1e9}),
        "feedback": settings.feedback.model_copy(update={"limits": limits}),
        "priors": without_newcomers(settings.priors, limits.newcomers),
    }
    return settings.model_copy(update=changes)


def overall(evening: Evening) -> Measured:
    """How all questions are answered, asked and unasked."""
    halves = evening.halves.values()
    count = sum(half.questions for half in halves)
    shares = {each.value: sum(half.first[each.value] * half.questions for half in halves) / count for each in Standing}
    return Measured(sum(half.ndcg * half.questions for half in halves) / count, shares, count)


def acting(root: Path, corpus: WeekCorpus) -> dict[str, tuple[int, int]]:
    """Relations that the live version has found between contents, how many of them hold, and how many there are."""
    catalog = Catalog(root)
    learned = catalog.pointer().learned
    stored = None if learned is None else catalog.learned.read(learned).part(LearnedEdges)
    edges = () if stored is None else stored.of_kinds(FOUND).edges
    holds: dict[str, list[bool]] = {kind.value: [] for kind in FOUND}
    with closing(catalog.open_live()) as generation:
        for each in edges:
            rows = generation.chunks.rows_of([each.content, each.target])
            if rows.min() >= 0:
                one, other = ([place.uri for place in both.occurrences] for both in generation.chunks.contents(rows))
                holds[each.kind.value].append(corpus.holds(each.kind, one, other))
    return {kind: (sum(some), len(some)) for kind, some in holds.items()}


def _reviewed(night: Night, summary: Mapping[str, Any]) -> str:
    """What became of a night, and of one that waits after somebody looked at its figures."""
    measured = summary["ndcg_at_10"]
    if summary["decision"] != Decision.REVIEW:
        return str(summary["decision"])
    if measured is not None and measured["significant"] and measured["change"] < 0.0:
        return "review: left"
    version = VersionName(summary["learned"])
    promote(night.catalog, night.tracking, version, by="reviewer", why="no worse by its questions", now=night.now)
    return "review: taken"


def _asked(settings: Settings, corpus: WeekCorpus, halves: Mapping[str, Sequence[RealQuestion]]) -> dict[str, Measured]:
    with opened(settings) as searcher:
        return {name: measured(searcher, corpus, some) for name, some in halves.items() if some}


def _teach(
    corpus: WeekCorpus, settings: Settings, searcher: Searcher, told: Told, sessions: Sequence[tuple[int, RealQuestion]]
) -> None:
    """Let users ask, and do about the answers what they do."""
    rules, day = simulated_users(), round((told.now.at - MONDAY) // DAY_S) + 1
    queries = [
        Query(
            text=question.text,
            query_id=QueryId(f"{day}-{number}-{question.question_id}"),
            k=PAGE,
            session_id=SessionId(f"day-{day}-{number}"),
            principal=f"user-{number % USERS}",
        )
        for number, question in sessions
    ]
    producer = FeedbackProducer(
        told.topic,
        triggers=settings.feedback.triggers,
        question_characters=settings.feedback.question_characters,
        new_id=iter(f"{day}-{sessions[0][0]}-{number}" for number in range(10**9)).__next__,
    )
    for (_, question), answer in zip(sessions, searcher.search_many(queries), strict=True):
        told.now.at += 1.0
        producer.impression(answer)
        told.log.emit(answer)
        right = [result.content_hash for result in answer.results if corpus.answers(question.question_id, result.uris)]
        rng = random.Random(str(answer.query.query_id))
        reactions = react([result.content_hash for result in answer.results], right, rules, rng)
        send_reactions(producer, answer.query, with_replies(answer, reactions, right))


def _fold(settings: Settings, root: Path, topic: Topic) -> None:
    """Let an updater consume what the topic holds."""
    with closing(Updater.open(FakeSource(topic.log), root, [0], settings.feedback)) as updater:
        while updater.step(0.0):
            pass
        updater.publish()


def table(evenings: Sequence[Evening], title: str) -> Table:
    """A line for every evening and half."""
    shares = [each.value for each in Standing if each is not Standing.CURRENT]
    found = [f"{step}: proposed, applied" for step in STEPS]
    holding = [f"{kind.value}: hold, act" for kind in FOUND]
    firsts = [f"first {share}" for share in shares]
    shown = Table("after", "questions", "", "nDCG@10", *firsts, "night", *found, *holding)
    shown.title, shown.box = title, None
    for evening in evenings:
        for name, half in evening.halves.items():
            first = name == HALVES[0]
            counts = [[evening.steps.get(step, {}).get(name, 0) for name in ("proposed", "applied")] for step in STEPS]
            pairs = [*counts, *(evening.acting.get(kind.value, (0, 0)) for kind in FOUND)]
            shown.add_row(
                ("before" if not evening.day else f"night {evening.day}") if first else "",
                str(half.questions),
                name,
                f"{half.ndcg:.3f}",
                *(f"{half.first[share]:.2f}" for share in shares),
                evening.decision if first else "",
                *((f"{one:.0f}, {other:.0f}" for one, other in pairs) if first and evening.day else ()),
            )
    return shown


def main() -> None:
    """Run on arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--sessions", type=int, default=100, help="a day")
    parser.add_argument("--declared", action="store_true")
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    settings = measuring(load_settings(assignments=given.set))
    names = given.names or NAMES
    work = Path(settings.storage.root).absolute() / "evaluation" / "week"
    kind = "-".join([*names, *(["declared"] if given.declared else [])])
    corpus = make_corpus(
        [COMMITTED / name for name in names], DOCUMENTATION, work / kind / "corpus", declare=given.declared
    )
    stored = indexed(corpus, settings, work / kind / "store")
    evenings = week(corpus, stored, days=given.days, sessions=given.sessions, silent=given.silent)
    title = f"{', '.join(names)}{', declared' if given.declared else ''}{', nobody asks' if given.silent else ''}"
    Console(width=WIDTH).print(table(evenings, title))


if __name__ == "__main__":
    main()
