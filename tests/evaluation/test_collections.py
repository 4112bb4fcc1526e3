"""EVA-5, RET-9, RET-14: the table of every collection, measured the way `jobs.evaluate` does; run by `make eval`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from weft.cli.reports import evaluate
from weft.domain.ranking import Channel
from weft.evaluation.measures.beir import Dataset, read_dataset
from weft.evaluation.measures.compare import compare
from weft.evaluation.measures.measuring import Measurement
from weft.retrieval.settings import FusionMode, RetrievalSettings
from weft.settings import Settings, load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(7200)]

SETTINGS = evaluate.measuring(load_settings())
COLLECTIONS = [
    ("scifact", "test"),
    ("nfcorpus", "dev"),
    ("cosqa", "test"),
    ("locomo", "dev"),
    ("cacm", "test"),
    ("vaswani", "test"),
]
BOTH = (Channel.DENSE, Channel.LEXICAL)
CONFIGURATIONS = {
    "BM25": ((Channel.LEXICAL,), FusionMode.RRF),
    "dense": ((Channel.DENSE,), FusionMode.RRF),
    "RRF": (BOTH, FusionMode.RRF),
    "RSF": (BOTH, FusionMode.RSF),
    "weft": (BOTH, FusionMode.LEARNED),
}
PUBLISHED_IN = {"dense": "fp32"}
"""Precision of the encoder, where another one moves the figure beyond rounding."""
PUBLISHED_WORDS = "english"
"""How texts become words in the published figures, where that counts: by the analyser alone."""

Row = Mapping[str, Measurement]


class Measured:
    """Every configuration on every collection, each measured once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.rows: dict[tuple[str, str], Row] = {}

    def __call__(self, name: str, split: str) -> Row:
        if (name, split) not in self.rows:
            if not (self._root / name).is_dir():
                pytest.skip(f"no collection {name} in {self._root}")
            self.rows[name, split] = self._measure(self._root / name, split)
        return self.rows[name, split]

    def published(self, configuration: str) -> Measurement:
        """A configuration on SciFact's test split, in the precision and by the analysis in which it was published."""
        precision = PUBLISHED_IN.get(configuration, SETTINGS.embedding.precision)
        embedding = SETTINGS.embedding.model_copy(update={"precision": precision})
        lexical = SETTINGS.index.lexical.model_copy(update={"analysis": PUBLISHED_WORDS})
        index = SETTINGS.index.model_copy(update={"lexical": lexical})
        matching = SETTINGS.model_copy(update={"embedding": embedding, "index": index})
        dataset = read_dataset(self._root / "scifact", "test")
        # Who published them ranked records alone, without the windows of long ones.
        queries = tuple(replace(query, text=f"{query.text} level:document") for query in dataset.queries)
        return self._measured(replace(dataset, queries=queries), matching, [configuration])[configuration]

    def _measure(self, folder: Path, split: str) -> Row:
        return self._measured(read_dataset(folder, split), SETTINGS, CONFIGURATIONS)

    def _measured(self, dataset: Dataset, settings: Settings, configurations: Iterable[str]) -> Row:
        stored = evaluate.indexed(dataset, settings)
        row = {}
        for label in configurations:
            channels, fusion = CONFIGURATIONS[label]
            retrieval = settings.retrieval if fusion is FusionMode.LEARNED else in_its_own_words(settings.retrieval)
            tuned = retrieval.model_copy(update={"channels": channels, "fusion": fusion})
            row[label] = evaluate.run(dataset, stored.model_copy(update={"retrieval": tuned}))
        return row


def in_its_own_words(settings: RetrievalSettings) -> RetrievalSettings:
    """Settings by which a query is asked as it stands alone, as plain rankings do."""
    expansion = settings.understanding.expansion.model_copy(update={"enabled": False})
    understanding = settings.understanding.model_copy(update={"expansion": expansion})
    return settings.model_copy(update={"understanding": understanding})


@pytest.fixture(scope="module")
def measured(data_root: Path) -> Iterator[Measured]:
    found = Measured(data_root)
    yield found
    Console(width=120).print(as_table(found.rows))


def as_table(rows: Mapping[tuple[str, str], Row]) -> Table:
    table = Table("collection", "queries", *CONFIGURATIONS, "weft − RRF", "p50 ms", "p95 ms", box=None, title="nDCG@10")
    for (name, split), row in rows.items():
        weft = row["weft"]
        change = compare(row["RRF"].measured["ndcg_at_10"], weft.measured["ndcg_at_10"], SETTINGS.evaluation).change
        table.add_row(
            f"{name} {split}",
            str(len(weft.run)),
            *(f"{measurement.estimates['ndcg_at_10'].mean:.3f}" for measurement in row.values()),
            f"{change.mean:+.3f} ({change.low:+.3f} … {change.high:+.3f})",
            f"{weft.p50_ms:.0f}",
            f"{weft.p95_ms:.0f}",
        )
    return table


@pytest.mark.parametrize(
    ("configuration", "published", "tolerance"),
    [("BM25", 0.679, 0.002), ("dense", 0.645, 0.003), ("RRF", 0.718, 0.004)],
)
def test_scifact_reproduces_the_published_baselines(
    measured: Measured, configuration: str, published: float, tolerance: float
) -> None:
    """EVA-5: nDCG@10 of BM25 (k1 .9, b .4), MiniLM exact, and RRF with k = 60 at depth 100."""
    found = measured.published(configuration).estimates["ndcg_at_10"].mean
    assert found == pytest.approx(published, abs=tolerance)


def test_weft_at_its_priors_is_not_below_reciprocal_rank_fusion_on_scifact(measured: Measured) -> None:
    """RET-14."""
    row = measured("scifact", "test")
    assert row["weft"].estimates["ndcg_at_10"].mean >= row["RRF"].estimates["ndcg_at_10"].mean


@pytest.mark.parametrize(("name", "split"), COLLECTIONS)
def test_weft_at_its_priors_is_nowhere_significantly_below_reciprocal_rank_fusion(
    measured: Measured, name: str, split: str
) -> None:
    """RET-14, EVA-1: paired by query; and no channel was lost while measuring."""
    row = measured(name, split)
    control, treatment = (row[label].measured["ndcg_at_10"] for label in ("RRF", "weft"))
    assert compare(control, treatment, SETTINGS.evaluation).change.high >= 0.0
    assert all(not measurement.failed_channels for measurement in row.values())
