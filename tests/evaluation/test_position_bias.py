"""FBK-10: learning from clicks of users who look at the top most; run by `make eval`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from jobs import evaluate
from pipelines.catalog.catalog import Catalog
from pipelines.domain.documents import Domain
from pipelines.domain.events import Impression, Selection
from pipelines.domain.ids import QueryId
from pipelines.domain.ranking import Answer, Query
from pipelines.embedding.encoder import load_encoder
from pipelines.evaluation.beir import Dataset, read_dataset
from pipelines.evaluation.compare import compare
from pipelines.evaluation.measuring import measure_searcher
from pipelines.feedback.credit import chosen_rank, credits_of, tally_click, tally_credits, tally_shown
from pipelines.feedback.producer import impression_of
from pipelines.ingestion.corpus import corpus_name
from pipelines.learning.beliefs import Beliefs
from pipelines.learning.evidence import SECONDS_PER_DAY
from pipelines.learning.observations import Tally
from pipelines.retrieval.searcher import Searcher
from pipelines.runtime.cluster import connect
from pipelines.settings import Settings, load_settings
from tests.support.learner import Learner

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(3600)]

SETTINGS = evaluate.measuring(load_settings())
NOW = 20_000.0 * SECONDS_PER_DAY
DAY = 20_000
ROUNDS = 3
LONG = 6  # rounds after which clicks alone are enough to move the weights, whoever clicked
LOOKS = 1.0 / np.arange(1.0, 11.0)  # how often users look at each rank
CLICKS = {True: 0.9, False: 0.1}  # what looks right, by whether it is


def clicks(rng: np.random.Generator, answer: Answer, judged: Mapping[str, int], corpus: str) -> list[int]:
    """Ranks that a user looks at, and takes for right."""
    right = [any(judged.get(uri.removeprefix(f"{corpus}:"), 0) > 0 for uri in result.uris) for result in answer.results]
    return [
        rank
        for rank, is_right in enumerate(right, start=1)
        if rng.random() < LOOKS[rank - 1] and rng.random() < CLICKS[is_right]
    ]


def taught(searcher: Searcher, learner: Learner, dataset: Dataset, settings: Settings, rounds: int = ROUNDS) -> None:
    """Ask everything, click, and learn from it, a few times over: what is learned shapes what is clicked next."""
    rules, bins = settings.feedback, settings.learning.relevance_bins
    for number in range(rounds):
        tally = Tally()
        rng = np.random.default_rng(number)
        queries = [Query(text=each.text, query_id=QueryId(each.query_id), k=10) for each in dataset.queries]
        for answer in searcher.search_many(queries):
            stamp = {"event_id": "e", "ts": 0, "session_id": answer.query.query_id, "principal": "p"}
            shown: Impression = impression_of(answer, **stamp)
            tally_shown(tally, shown, rules.credit, day=DAY)
            chosen: list[int] = []
            for rank in clicks(rng, answer, dataset.qrels[answer.query.query_id], corpus_name(dataset.corpus)):
                of = answer.results[rank - 1].content_hash
                click = Selection(**stamp, query_id=answer.query.query_id, content_hash=of, rank=rank)
                tally_credits(tally, credits_of(click, shown, chosen=chosen, rules=rules), shown, day=DAY, bins=bins)
                tally_click(tally, click, shown, rules.credit, day=DAY)
                chosen.append(chosen_rank(click, shown))
        learner.evidence = learner.evidence + tally.freeze()
        searcher.refresh()


def measured(settings: Settings, folder: Path, split: str, rounds: int = ROUNDS) -> tuple[Mapping[str, float], Beliefs]:
    """nDCG@10 by query of a split after so many rounds of learning from the dev queries, and what was learned."""
    learner = Learner(settings, Catalog(Path(settings.storage.root)), now=NOW)
    with Searcher(learner, load_encoder(settings.embedding), settings.retrieval, clock=lambda: NOW) as searcher:
        taught(searcher, learner, read_dataset(folder, "dev"), settings, rounds)
        judged = read_dataset(folder, split)
        document_id = lambda uri: uri.removeprefix(f"{corpus_name(judged.corpus)}:")  # noqa: E731
        found = measure_searcher(searcher, judged, settings.evaluation, document_id=document_id)
    return found.measured["ndcg_at_10"], learner.beliefs


def indexed(folder: Path) -> Settings:
    return evaluate.indexed(read_dataset(folder, "dev"), SETTINGS, before=lambda: connect(SETTINGS.cluster))


def test_weighing_clicks_by_examination_beats_skip_above_alone(data_root: Path) -> None:
    """FBK-10: where the same is asked again, after three rounds of users whose looks fall off with the rank, paired by
    query: what clicks say of single contents is what the rank biases most. And how often they look is found out.
    """
    folder = data_root / "cosqa"
    stored = indexed(folder)
    without = stored.feedback.credit.model_copy(update={"inverse_clip": 1.0})
    uncorrected = stored.model_copy(update={"feedback": stored.feedback.model_copy(update={"credit": without})})
    (control, _), (treatment, beliefs) = (measured(settings, folder, "dev") for settings in (uncorrected, stored))
    change = compare(control, treatment, SETTINGS.evaluation).change
    means = [float(np.mean(list(run.values()))) for run in (control, treatment)]
    Console().print(
        f"nDCG@10 {means[0]:.4f} → {means[1]:.4f}: {change.mean:+.4f} ({change.low:+.4f} … {change.high:+.4f})"
    )
    assert change.low > 0.0
    assert_looks_are_known(beliefs)


def test_clicks_alone_teach_although_the_first_rank_is_looked_at_most(data_root: Path) -> None:
    """FBK-10: position one does not teach itself: rankings gain, paired by held-out query; and what is learned of looks
    stays right while rankings become better.
    """
    folder = data_root / "cosqa"
    stored = indexed(folder)
    (untaught, _), (taught_long, beliefs) = (measured(stored, folder, "test", rounds) for rounds in (0, LONG))
    change = compare(untaught, taught_long, SETTINGS.evaluation).change
    Console().print(f"nDCG@10 by clicks alone {change.mean:+.4f} ({change.low:+.4f} … {change.high:+.4f})")
    assert change.low > 0.0
    assert_looks_are_known(beliefs)


def assert_looks_are_known(beliefs: Beliefs) -> None:
    """Within .1 of the truth at every rank."""
    domain = max(Domain, key=lambda each: beliefs.examination[each].observations(1))
    learned = [beliefs.examined(domain, rank) for rank in range(1, 11)]
    assert np.abs(np.array(learned) - LOOKS).max() < 0.1
