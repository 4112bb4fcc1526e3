"""Measures what authority is worth where documents refer to one another: a folder's own questions with and without it.

    python -m tests.support.authority_measure FOLDER … [--weights 0 0.1] [--set KEY=VALUE …]

The folders are indexed into a store that is thrown away. Its own questions, each taken from one content that answers
it, are asked under each weight of authority in all domains, against the first of these.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from weft.app.indexing import plan_of
from weft.app.questions import by_chunk, own, questions_of
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.domain.documents import Domain
from weft.evaluation.measures.compare import compare
from weft.evaluation.measures.metrics import measure
from weft.evaluation.measures.runs import Run
from weft.ingestion.pipeline import ingest
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

MEASURE = "ndcg_at_10"


def weighing(root: Path, weight: float, changes: Sequence[str]) -> Settings:
    """Settings of the store in which every domain weighs authority so."""
    weights = [f"priors.signals.weights.{domain.value}.authority={weight}" for domain in Domain]
    return load_settings(
        assignments=[f"storage.root={root}", "storage.settings=given", *weights, *changes], environment={}
    )


def asked(settings: Settings) -> tuple[Run, dict[str, dict[str, int]], Counter[str]]:
    """What the store's own questions are answered with, their answers, and the quadrants of results."""
    questions, run, quadrants = own(questions_of(settings)), {}, Counter[str]()
    with opened(by_chunk(settings)) as searcher:
        for answer in searcher.search_many(questions.queries):
            run[str(answer.query.query_id)] = {str(each.content_hash): -float(each.rank) for each in answer.results}
            quadrants.update(each.authority.quadrant.value for each in answer.results if each.authority is not None)
    return run, {query: dict(grades) for query, grades in questions.qrels.items()}, quadrants


def main(arguments: Sequence[str] | None = None) -> int:
    """Print nDCG@10 under each weight, and how it differs from that under the first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--weights", nargs="+", type=float, default=[0.0, 0.05, 0.1, 0.2])
    parser.add_argument("--set", nargs="*", default=[])
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        root, measured = Path(folder) / "store", []
        settings = weighing(root, given.weights[0], given.set)
        ingest(plan_of(settings, given.folders), Catalog(root), HERE, lambda _: None, clock=time.monotonic)
        for weight in given.weights:
            settings = weighing(root, weight, given.set)
            run, qrels, quadrants = asked(settings)
            measured.append(measure(run, qrels)[MEASURE])
            mean = sum(measured[-1].values()) / len(measured[-1])
            change = compare(measured[0], measured[-1], settings.evaluation).change
            sys.stdout.write(
                f"authority {weight:g}: nDCG@10 {mean:.4f} of {len(qrels)} questions, {change.mean:+.4f} "
                f"({change.low:+.4f} to {change.high:+.4f}); results by quadrant: {dict(sorted(quadrants.items()))}\n"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
