"""The whole loop on a small real corpus: index, search, feedback through Kafka, learn, consolidate, measure.

    python -m jobs.demo --store DIR [--bootstrap HOST:PORT] [--modules N] [--questions N] [--json]

Indexes modules of Python's standard library, chapters of its language reference, and settings of two packages.
Docstrings are the questions, and are masked. Simulated users ask half of the questions, one each, and react to the
results. Quality is measured on the other half, before and after. As in a study, what takes minutes stands for days of a
hundred users each. Exit codes: 0 done, 1 with a reason, 2 usage.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from pydoc_data import topics
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.progress import track
from rich.table import Table

from lab.ground_truth import SyntheticQuestion, from_questions, masked_corpus
from lab.settings import simulated_users
from lab.simulation.users import PAGE, paraphrase, react, refreshes, send_reactions, with_replies
from lab.stores import BackgroundUpdaters
from lab.study.run import scaled_to_days
from weft.app.indexing import plan_of
from weft.app.log_evaluation import ringing
from weft.app.night import night_of
from weft.app.questions import improvement_of
from weft.app.searching.engines import opened
from weft.app.updaters import require_balance, summary
from weft.app.views.status import note_night
from weft.catalog.catalog import Catalog
from weft.cli.commands import consolidate, reindex
from weft.cli.commands.learned import write_page
from weft.cli.console.options import MEASURED, CommonOptions, command, run_job
from weft.cli.console.output import Result, markup, show
from weft.cli.console.terminal import plain, stderr
from weft.cli.reports.figures import titled
from weft.consolidation.improvement import Improve, Improvement, QuestionSource
from weft.consolidation.night import Shadow
from weft.domain.documents import Document, Domain
from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash, QueryId, SessionId, content_hash
from weft.domain.ranking import Channel, Query, Scope, Signal, WeightBelief
from weft.embedding.tokens import load_token_counter
from weft.evaluation.ground_truth import collect as ground_truth
from weft.evaluation.measures.compare import HEADLINE, compare
from weft.evaluation.measures.metrics import PerQuery, estimates, measure
from weft.evaluation.measures.runs import Run
from weft.evaluation.queries.writer import QueryLog
from weft.evaluation.settings import EvaluationSettings
from weft.feedback.events.producer import FeedbackProducer
from weft.feedback.run.updater import PartitionProgress
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.sources.sources import read_source
from weft.learning.parts import LearnedVersion
from weft.retrieval.searcher import Searcher
from weft.retrieval.settings import FusionMode
from weft.runtime.clock import system_clock
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.settings import Settings

# What the demonstration says on its way and at its end.

BASELINES: Mapping[str, Mapping[str, Any]] = {
    "BM25 alone": {"channels": (Channel.LEXICAL,), "fusion": FusionMode.RSF},
    "dense alone": {"channels": (Channel.DENSE,), "fusion": FusionMode.RSF},
    "RRF": {"fusion": FusionMode.RRF},
}
"""What is measured beside weft, as changes to the retrieval settings."""

BEFORE = "weft, at its priors"
AFTER = "weft, after learning"
_SHOWN = {"ndcg_at_10": "nDCG@10", "mrr_at_10": "MRR@10", "hit_rate_at_1": "hit@1", "recall_at_20": "recall@20"}

_LEAST_SHOWN = 0.005  # of a weight, before or after: below it two digits say nothing

Weights = Mapping[Signal, WeightBelief]


def step(text: str) -> None:
    """Begin a part of the demonstration."""
    show(markup(f"\n[bold]▸ {text}[/bold]"))


def say(text: str) -> None:
    """Add a fact to the part under way."""
    show(markup(f"  {text}"))


def weights_of(searcher: Searcher) -> Weights:
    """What is believed now about every signal of code, for the demonstration's users."""
    return searcher.snapshot.beliefs.weights(Scope(Domain.CODE, agent="demo"), tuple(Signal))


def show_weights(before: Weights, after: Weights) -> None:
    """Show what learning moved: the signals of code that something was said about."""
    table = Table("what a result is scored by", "weight before", "learned (90 % interval)", box=None)
    for signal, now in after.items():
        weight = before[signal].mean
        if now.n_effective > 0.0 and max(weight, now.mean) >= _LEAST_SHOWN:
            table.add_row(signal.value, f"{weight:.2f}", f"{now.mean:.2f} ({now.low:.2f}–{now.high:.2f})")
    show(table)


def record_counts(all_progress: Sequence[PartitionProgress]) -> dict[str, Any]:
    """What became of every event, and the check that they add up."""
    require_balance(all_progress)
    counts = summary(all_progress)
    names = ("consumed", "applied", "duplicate", "dead_lettered", "late")
    say("events: " + ", ".join(f"{counts[name]:,} {name.replace('_', '-')}" for name in names))
    return counts


def show_quality(measured: Mapping[str, PerQuery], settings: EvaluationSettings) -> None:
    """The table of held-out quality, and how sure the gain is."""
    questions = len(next(iter(measured[AFTER].values())))
    table = titled(f"{questions} held-out questions", "", *_SHOWN.values())
    for name, values in measured.items():
        means = estimates(values, settings)
        figures = (f"{means[metric].mean:.3f}" for metric in _SHOWN)
        table.add_row(name, *figures, style="bold" if name == AFTER else "")
    show(table)
    gain = compare(measured[BEFORE][HEADLINE], measured[AFTER][HEADLINE], settings)
    verdict = "more than chance" if gain.significant else "not shown by this sample"
    say(
        f"learning moved {_SHOWN[HEADLINE]} by {gain.change.mean:+.3f} "
        f"({gain.change.low:+.3f} to {gain.change.high:+.3f}, {settings.interval:.0%} interval); "
        f"{gain.better} questions better, {gain.worse} worse; {verdict}"
    )


def show_again(right: Mapping[str, float], questions: int) -> None:
    """How often the right answer is first for questions that users asked before."""
    table = titled(f"{questions} questions that users ask", "", "right answer first")
    for name, share in right.items():
        table.add_row(name, f"{share:.2f}")
    show(table)


def next_steps(root: Path, page: Path, night: Mapping[str, Any], seconds: float) -> None:
    """Say what to do next, and where the page of what was learned lies."""
    store, shown = plain(shlex.quote(str(root))), plain(str(page))
    show(markup(f"\n[bold]Done in {seconds:.0f} s.[/bold] Learned version {night['learned']}: {night['decision']}."))
    show(markup(f'  search   .venv/bin/weft search "find files by a wildcard pattern" --store {store} --explain'))
    show(markup(f"  look     {shown} in a browser: what it learned; `weft learned page` writes it anew"))
    show(markup(f"  review   make mlflow STORE={store}    then http://127.0.0.1:5000, Model training, calibration"))


# What the demonstration indexes: Python's standard library, less what it asks with, and settings of two packages.

MODULES = 50
"""Of the standard library: with them the whole loop takes some minutes on two cores."""

_MODULE_BYTES = range(2_000, 40_000)  # large enough to say something, small enough that a hundred are quickly read
_CHAPTER_CHARACTERS = 20_000  # at most: the three largest repeat others, and all larger ones are half of the whole
_CONFIGURED = ("ray/autoscaler/*/defaults.yaml", "mlflow/**/*.ini", "mlflow/server/*.yaml")
_CACHE = "cache"
_SIGN = "demo"  # the texts of the corpus: whatever store has them is a demonstration's
_PARTS = (_CACHE, _SIGN, "evaluation", "generations", "learned", "lessons", "logs", "mlflow", "sessions", "updaters")
_FILES = (".catalog.lock", ".gitignore", "current.json", "learned.html", "settings.json", "store.json")


@dataclass(frozen=True, slots=True)
class DemoCorpus:
    """Masked files, ready to be indexed, and the questions whose answers they hold."""

    sources: tuple[Path, ...]
    documents: int
    questions: tuple[SyntheticQuestion, ...]


def prepare(folder: Path, settings: Settings, *, modules: int) -> DemoCorpus:
    """Write the corpus below a folder, replacing what an earlier run wrote there.

    Modules are asked about: their docstrings lose the first sentence, which is the question. Nothing that is asked
    stands verbatim in what is written.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for kind in (_modules(modules), _chapters(), _configuration()):
        for name, content, origin in kind:
            _write(folder / name, content, origin.stat().st_mtime)
    sources = tuple(sorted(folder.iterdir()))
    read = (item for source in sources for item in read_source(source, settings.ingest, domain=None))
    counter = load_token_counter(settings.embedding)
    sizes = prior_sizes(settings.chunking, settings.priors, limit=counter.limit)
    documents, questions = masked_corpus((item for item in read if isinstance(item, Document)), sizes.sizes_of, counter)
    for document in documents:
        path = folder / document.uri
        _write(path, document.text.encode("utf-8", "surrogateescape"), path.stat().st_mtime)
    return DemoCorpus(sources, len(documents), tuple(questions))


def _write(path: Path, content: bytes, modified_at: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (modified_at, modified_at))


_Files = Iterator[tuple[str, bytes, Path]]
"""Names, contents, and the files that they are from."""


def _modules(most: int) -> _Files:
    """The first modules of the standard library of a fitting size, by name."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    fitting = (path for path in files if path.stat().st_size in _MODULE_BYTES)
    return ((f"python/{path.name}", path.read_bytes(), path) for path in islice(fitting, most))


def _chapters() -> _Files:
    """The chapters of the language reference that `help()` shows."""
    origin = Path(topics.__file__)
    chapters = ((name, text) for name, text in sorted(topics.topics.items()) if len(text) <= _CHAPTER_CHARACTERS)
    return ((f"language/{name}.rst", text.encode(), origin) for name, text in chapters)


def _configuration() -> _Files:
    """Settings that two of weft's own packages come with."""
    top = Path(sysconfig.get_paths()["purelib"])
    paths = (path for pattern in _CONFIGURED for path in sorted(top.glob(pattern)))
    return ((f"settings/{path.relative_to(top)}", path.read_bytes(), path) for path in paths)


def split(
    questions: Sequence[SyntheticQuestion], limit: int
) -> tuple[list[SyntheticQuestion], list[SyntheticQuestion]]:
    """Questions to learn from and held-out ones, drawn by the hash of their text: the same on every machine."""
    drawn = sorted(questions, key=lambda question: content_hash(question.text))[:limit]
    return drawn[::2], drawn[1::2]


def remove_previous(root: Path) -> None:
    """Empty a demonstration's store, but for its caches: its log of feedback ended with the broker that held it.

    Raises:
        StoreError: It is no demonstration's, or holds something that none wrote; nothing was removed.
    """
    held = {path.name for path in root.iterdir()} if root.is_dir() else set()
    strange = {name for name in held if not _is_ours(name)} if _SIGN in held else held - {_CACHE}
    if strange:
        raise StoreError(
            f"{root}: expected an empty folder or a demonstration's store, which is emptied, found {sorted(strange)}; "
            "give another folder as --store"
        )
    for name in sorted(held - {_CACHE}, key=lambda name: (name == _SIGN, name)):  # a killed run is known by its sign
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_ours(name: str) -> bool:
    """Whether a demonstration writes under such a name, or leaves such a one behind when it is killed."""
    leftover = name.startswith((".staging-", *(f".{file}." for file in _FILES)))
    return leftover or name in _PARTS or name in _FILES


@dataclass(frozen=True, slots=True)
class SystemRun:
    """What one system returned for the held-out questions, and how good that was."""

    run: Run
    measured: PerQuery

    @property
    def means(self) -> dict[str, float]:
        """Mean over questions by name of the measure."""
        return {name: fmean(values.values()) for name, values in self.measured.items()}


@command
def demo(
    options: CommonOptions,
    bootstrap: Annotated[
        str | None, typer.Option("--bootstrap", help="Broker, host:port; default an embedded one.")
    ] = None,
    modules: Annotated[int, typer.Option("--modules", min=1, help="Standard library modules to index.")] = MODULES,
    questions: Annotated[
        int, typer.Option("--questions", min=2, help="At most this many, half of them held out.")
    ] = 800,
) -> Result:
    """Show the whole loop on real input."""
    begun = time.perf_counter()
    # A question's answer is one chunk, so chunks are what is ranked.
    settings = options.settings(MEASURED, "retrieval.unit=chunk")
    root = Path(settings.storage.root)
    remove_previous(root)
    step("Preparing the corpus: Python's standard library less the docstrings that are asked, and settings")
    corpus = prepare(root / "demo", settings, modules=modules)
    lessons, held_out = split(corpus.questions, questions)
    say(f"{corpus.documents} files; {len(lessons)} questions to learn from, {len(held_out)} held out")
    step("Indexing: chunks, entities, embeddings, FAISS and Lucene, on Ray")
    indexed = reindex.run_visibly(settings, plan_of(settings, corpus.sources))
    say(f"{indexed.documents} documents, {indexed.chunks:,} chunks, {indexed.entities:,} entities")
    with ExitStack() as stack:
        address = bootstrap or stack.enter_context(EmbeddedBroker()).bootstrap
        streamed = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"bootstrap": address})})
        systems, learned = _learn(scaled_to_days(streamed, len(lessons)), lessons, held_out)
    judgements = from_questions([*lessons, *held_out], now=system_clock())
    ground_truth.keep(root, judgements, now=system_clock())
    step("Consolidating: calibrate, gate, publish, report in MLflow")
    night = consolidate.run_visibly(
        replace(night_of(settings), shadow=_replayed(systems), improve=_improved(systems, settings))
    )
    show_quality({name: held.measured for name, held in systems.items()}, settings.evaluation)
    seconds = time.perf_counter() - begun
    write_page(Catalog(root), settings.priors, page := root / "learned.html")
    note_night(root, night, ringing(settings), at=system_clock())
    next_steps(root, page, night, seconds)
    summary = {"indexed": asdict(indexed), "feedback": learned, "night": dict(night), "seconds": seconds}
    return Result(
        [{**summary, "metrics": {name: held.means for name, held in systems.items()}, "held_out": len(held_out)}], []
    )


def _learn(
    settings: Settings, lessons: Sequence[SyntheticQuestion], held_out: Sequence[SyntheticQuestion]
) -> tuple[dict[str, SystemRun], Mapping[str, Any]]:
    systems = {}
    step("Asking the held-out questions before anything is learned")
    for name, changes in BASELINES.items():
        retrieval = settings.retrieval.model_copy(update=dict(changes))
        with opened(settings.model_copy(update={"retrieval": retrieval})) as searcher:
            systems[name] = _ask(searcher, held_out, settings, name)
    with (
        BackgroundUpdaters(settings) as updaters,
        opened(settings) as searcher,
        closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer,
        QueryLog(Path(settings.storage.root), settings.query_log) as log,
    ):
        systems[BEFORE] = _ask(searcher, held_out, settings, BEFORE)
        before, again = weights_of(searcher), Again(searcher, lessons, settings)
        again.ask("asked for the first time")
        step("Simulated users ask, read, open and judge; feedback travels through Kafka to the updaters")
        progress = teach(searcher, producer, log, lessons, caught_up=updaters.caught_up)
        show_weights(before, weights_of(searcher))
        systems[AFTER] = _ask(searcher, held_out, settings, AFTER)
        again.ask("asked again, by somebody else")
        again.ask("asked again in other words, by somebody else", reworded=True)
    show_again(again.right, again.count)
    return systems, record_counts(progress)


class Again:
    """Questions that users ask, asked by somebody else before and after."""

    _SAMPLE = 120  # enough to see shares of tenths, within seconds

    def __init__(self, searcher: Searcher, lessons: Sequence[SyntheticQuestion], settings: Settings) -> None:
        self._searcher = searcher
        self._rng = random.Random(settings.evaluation.seed)  # noqa: S311  repeatable by its seed
        self._questions = self._rng.sample(list(lessons), min(self._SAMPLE, len(lessons)))
        self.right: dict[str, float] = {}

    @property
    def count(self) -> int:
        """How many questions there are."""
        return len(self._questions)

    def ask(self, name: str, *, reworded: bool = False) -> None:
        """Ask them all, and remember for how many the right answer is first."""
        texts = [each.text for each in self._questions]
        if reworded:
            texts = [paraphrase(text, self._rng) for text in texts]
        queries = [Query(text=text, k=PAGE, agent="demo", principal="somebody else") for text in texts]
        answers = self._searcher.search_many(queries)
        first = [answer.results[0].content_hash if answer.results else None for answer in answers]
        hits = [shown == question.content_hash for shown, question in zip(first, self._questions, strict=True)]
        self.right[name] = fmean(hits)


def teach(
    searcher: Searcher,
    producer: FeedbackProducer,
    log: QueryLog,
    lessons: Sequence[SyntheticQuestion],
    *,
    caught_up: Callable[[], Sequence[PartitionProgress]],
) -> Sequence[PartitionProgress]:
    """Let every question be asked by a user of its own, in a session of its own; where the updaters are in the end.

    One user who asks them all within minutes says in a day what weft believes of nobody: beyond the allowance of a
    principal (LRN-3), nothing would be learned.
    """
    progress: Sequence[PartitionProgress] = ()
    users = simulated_users()
    edges = [0, *refreshes([len(lessons)])]
    for first, last in track(list(pairwise(edges)), "  asking", console=stderr, transient=True):
        queries = [
            replace(_query(lessons[at], PAGE), session_id=SessionId(f"demo-{at}"), principal=f"user-{at}")
            for at in range(first, last)
        ]
        for question, answer in zip(lessons[first:last], searcher.search_many(queries), strict=True):
            session, user = str(answer.query.session_id), answer.query.principal
            producer.session(session, "start", principal=user)
            producer.impression(answer)
            log.emit(answer)
            shown, right = [result.content_hash for result in answer.results], {question.content_hash}
            rng = random.Random(answer.query.query_id)  # noqa: S311  repeatable by the query
            send_reactions(producer, answer.query, with_replies(answer, react(shown, right, users, rng), right))
            producer.session(session, "complete", principal=user)
        producer.flush()
        progress = caught_up()
        searcher.refresh()
    return progress


def _ask(searcher: Searcher, questions: Sequence[SyntheticQuestion], settings: Settings, name: str) -> SystemRun:
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    batch = settings.retrieval.encode_batch
    for first in track(range(0, len(questions), batch), f"  {name}", console=stderr, transient=True):
        asked = questions[first : first + batch]
        answers = searcher.search_many([_query(question, settings.evaluation.depth) for question in asked])
        for question, answer in zip(asked, answers, strict=True):
            run[str(answer.query.query_id)] = {str(each.content_hash): each.score for each in answer.results}
            qrels[str(answer.query.query_id)] = {question.content_hash: 1}
    return SystemRun(run, measure(run, qrels))


def _query(question: SyntheticQuestion, k: int) -> Query:
    return Query(text=question.text, query_id=QueryId(content_hash(question.text)[:32]), k=k, agent="demo")


def _replayed(systems: Mapping[str, SystemRun]) -> Shadow:
    """The rankings that the gate compares: asked already, under no evidence and under all of it."""

    def rankings(learned: LearnedVersion) -> list[list[ContentHash]]:
        return [[ContentHash(name) for name in ranked] for ranked in _under(learned, systems).run.values()]

    return rankings


def _improved(systems: Mapping[str, SystemRun], settings: Settings) -> Improve:
    def improvements(former: LearnedVersion, candidate: LearnedVersion) -> list[Improvement]:
        control, treatment = (_under(learned, systems).measured for learned in (former, candidate))
        source, rules = QuestionSource.JUDGED, settings.evaluation
        return [improvement_of(name, source, control[name], treatment[name], rules) for name in control]

    return improvements


def _under(learned: LearnedVersion, systems: Mapping[str, SystemRun]) -> SystemRun:
    return systems[BEFORE if learned.evidence.is_empty else AFTER]


main = partial(run_job, demo)
"""Run the job on arguments."""
