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
ROUNDS = 6
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


def taught(searcher: Searcher, learner: Learner, dataset: Dataset, settings: Settings, rounds: int) -> None:
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


def held_out(settings: Settings, folder: Path, *, rounds: int) -> tuple[Mapping[str, float], Beliefs]:
    """nDCG@10 by held-out query after so many rounds of learning, and what was learned."""
    learner = Learner(settings, Catalog(Path(settings.storage.root)), now=NOW)
    with Searcher(learner, load_encoder(settings.embedding), settings.retrieval, clock=lambda: NOW) as searcher:
        taught(searcher, learner, read_dataset(folder, "dev"), settings, rounds)
        judged = read_dataset(folder, "test")
        document_id = lambda uri: uri.removeprefix(f"{corpus_name(judged.corpus)}:")  # noqa: E731
        measured = measure_searcher(searcher, judged, settings.evaluation, document_id=document_id)
    return measured.measured["ndcg_at_10"], learner.beliefs


@pytest.fixture(scope="module")
def stored(data_root: Path) -> Settings:
    """Settings of a store in which CoSQA is indexed."""
    dataset = read_dataset(data_root / "cosqa", "dev")
    return evaluate.indexed(dataset, SETTINGS, before=lambda: connect(SETTINGS.cluster))


@pytest.fixture(scope="module")
def weighed(stored: Settings, data_root: Path) -> tuple[Mapping[str, float], Beliefs]:
    """What comes of clicks that are weighed by how often their rank is looked at."""
    return held_out(stored, data_root / "cosqa", rounds=ROUNDS)


def test_clicks_alone_teach_although_the_first_rank_is_looked_at_most(
    stored: Settings, data_root: Path, weighed: tuple[Mapping[str, float], Beliefs]
) -> None:
    """FBK-10: position one does not teach itself: rankings gain, paired by held-out query.

    Clicks as they are come to the same within chance, since signals are measured against their page
    (docs/evaluation.md).
    """
    without = stored.feedback.credit.model_copy(update={"inverse_clip": 1.0})
    as_they_are = stored.model_copy(update={"feedback": stored.feedback.model_copy(update={"credit": without})})
    runs = [
        held_out(stored, data_root / "cosqa", rounds=0)[0],
        held_out(as_they_are, data_root / "cosqa", rounds=ROUNDS)[0],
        weighed[0],
    ]
    change = compare(runs[0], runs[2], SETTINGS.evaluation).change
    means = [float(np.mean(list(run.values()))) for run in runs]
    Console().print(
        f"nDCG@10 {means[0]:.4f} → {means[2]:.4f}, clicks as they are {means[1]:.4f}: "
        f"{change.mean:+.4f} ({change.low:+.4f} … {change.high:+.4f})"
    )
    assert change.low > 0.0


@pytest.mark.xfail(strict=True, reason="looks at ranks below the first are taken for rarer, the better rankings become")
def test_how_often_ranks_are_looked_at_is_learned_while_rankings_change(
    weighed: tuple[Mapping[str, float], Beliefs],
) -> None:
    """FBK-10: within .1 of the truth at every rank; it is .06 to .14 after 1,500 answers, and .2 after 3,000."""
    beliefs = weighed[1]
    domain = max(Domain, key=lambda each: beliefs.examination[each].observations(1))
    learned = [beliefs.examined(domain, rank) for rank in range(1, 11)]
    assert np.abs(np.array(learned) - LOOKS).max() < 0.1
