"""FBK-10: learning from clicks of users who look at the top most; run by `make eval`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tests.support.learner import Learner
from weft.catalog.catalog import Catalog
from weft.cli.reports import evaluate
from weft.domain.documents import Domain
from weft.domain.events import Impression, Selection
from weft.domain.ids import QueryId
from weft.domain.ranking import Answer, Query
from weft.embedding.encoders.encoder import load_encoder
from weft.evaluation.measures.beir import Dataset, read_dataset
from weft.evaluation.measures.compare import Difference, compare
from weft.evaluation.measures.measuring import measure_searcher
from weft.feedback.events.producer import impression_of
from weft.feedback.fold.credit import chosen_place, credits_of, note_credits, tally_click, tally_shown, under
from weft.ingestion.sources.corpus import corpus_name
from weft.learning.beliefs import Beliefs
from weft.learning.evidence import SECONDS_PER_DAY
from weft.learning.observe.tallies import Tally
from weft.retrieval.searcher import Searcher
from weft.settings import Settings, load_settings

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
    rules = settings.feedback
    for number in range(rounds):
        tally = Tally()
        rng = np.random.default_rng(number)
        queries = [Query(text=each.text, query_id=QueryId(each.query_id), k=10) for each in dataset.queries]
        for answer in searcher.search_many(queries):
            stamp = {"event_id": "e", "ts": 0, "session_id": answer.query.query_id, "principal": "p"}
            shown: Impression = impression_of(answer, **stamp)
            tally_shown(tally, shown, day=DAY)
            chosen: list[int] = []
            for rank in clicks(rng, answer, dataset.qrels[answer.query.query_id], corpus_name(dataset.corpus)):
                of = answer.results[rank - 1].content_hash
                click = Selection(**stamp, query_id=answer.query.query_id, content_hash=of, rank=rank)
                credited = credits_of(click, shown, chosen=chosen, rules=rules)
                where = under(shown, slope=rules.credit.choice_slope)
                note_credits(tally, credited, where, shown.results, day=DAY, surplus=False)
                clicked = shown.results[chosen_place(click, shown)]
                tally_click(tally, clicked, shown, day=DAY)
                chosen.append(clicked.rank)
        learner.evidence = learner.evidence + tally.freeze()
        searcher.refresh()


def held_out(
    settings: Settings, folder: Path, teach: str, test: str, rounds: int = ROUNDS
) -> tuple[Mapping[str, float], Beliefs]:
    """nDCG@10 by held-out query after learning, and what was learned."""
    learner = Learner(settings, Catalog(Path(settings.storage.root)), now=NOW)
    with Searcher(learner, load_encoder(settings.embedding), settings.retrieval, clock=lambda: NOW) as searcher:
        taught(searcher, learner, read_dataset(folder, teach), settings, rounds)
        judged = read_dataset(folder, test)
        document_id = lambda uri: uri.removeprefix(f"{corpus_name(judged.corpus)}:")  # noqa: E731
        measured = measure_searcher(searcher, judged, settings.evaluation, document_id=document_id)
    return measured.measured["ndcg_at_10"], learner.beliefs


@pytest.fixture(scope="module")
def stored(data_root: Path) -> Settings:
    """Settings of a store in which CoSQA is indexed."""
    dataset = read_dataset(data_root / "cosqa", "dev")
    return evaluate.indexed(dataset, SETTINGS)


def weighed_and_not(stored: Settings, folder: Path, test: str) -> tuple[Difference, Beliefs]:
    """What weighing clicks by examination changes after three rounds, and what was learned with it."""
    without = stored.feedback.credit.model_copy(update={"inverse_clip": 1.0})
    uncorrected = stored.model_copy(update={"feedback": stored.feedback.model_copy(update={"credit": without})})
    (control, _), (treatment, beliefs) = (held_out(settings, folder, "dev", test) for settings in (uncorrected, stored))
    change = compare(control, treatment, SETTINGS.evaluation)
    means = [float(np.mean(list(run.values()))) for run in (control, treatment)]
    Console().print(f"nDCG@10 on {test} {means[0]:.4f} → {means[1]:.4f}: {told(change)}")
    return change, beliefs


def told(difference: Difference) -> str:
    change = difference.change
    return f"{change.mean:+.4f} ({change.low:+.4f} … {change.high:+.4f})"


def assert_looks_are_known(beliefs: Beliefs) -> None:
    """Within .1 of the truth at every rank."""
    domain = max(Domain, key=lambda each: beliefs.examination[each].observations(1))
    learned = [beliefs.examined(domain, rank) for rank in range(1, 11)]
    assert np.abs(np.array(learned) - LOOKS).max() < 0.1


def test_weighing_clicks_by_examination_beats_skip_above_alone(stored: Settings, data_root: Path) -> None:
    """FBK-10: on CoSQA, after three rounds of users whose looks fall off with the rank, paired by held-out query."""
    compared, beliefs = weighed_and_not(stored, data_root / "cosqa", "test")
    assert_looks_are_known(beliefs)
    assert compared.change.low > 0.0


def test_weighing_clicks_by_examination_pays_where_the_same_is_asked_again(stored: Settings, data_root: Path) -> None:
    """FBK-10: what clicks say of single contents is what the rank biases most."""
    compared, beliefs = weighed_and_not(stored, data_root / "cosqa", "dev")
    assert_looks_are_known(beliefs)
    assert compared.change.low > 0.0


def test_clicks_alone_teach_although_the_first_rank_is_looked_at_most(stored: Settings, data_root: Path) -> None:
    """FBK-10: position one does not teach itself: rankings gain, paired by held-out query; and what is learned of looks
    stays right while rankings become better.
    """
    folder = data_root / "cosqa"
    (untaught, _), (taught_long, beliefs) = (held_out(stored, folder, "dev", "test", rounds) for rounds in (0, LONG))
    compared = compare(untaught, taught_long, SETTINGS.evaluation)
    Console().print(f"nDCG@10 by clicks alone {told(compared)}")
    assert_looks_are_known(beliefs)
    assert compared.change.low > 0.0
