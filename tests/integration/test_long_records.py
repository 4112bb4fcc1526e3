"""ING-36: the end of a long record is found by meaning, and so is that of a long row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft import Query, index, open_searcher
from weft.domain.ids import chunk_id
from weft.retrieval.searcher import Searcher

pytestmark = pytest.mark.integration

SETTINGS = ("extraction.enabled=false", "embedding.tokens.enabled=false")
WEATHER = " ".join(
    f"On day {day} the station on the ridge measured {day % 7} millimetres of rain and a wind from the west of "
    f"{day % 5 + 3} metres a second, while the valley stayed dry."
    for day in range(1, 31)
)
KITTEN = (
    "In the evening the kitten was asleep beneath the sofa. It had played with a ball of wool all afternoon, and "
    "came out only for its milk. Nobody dared to wake it. The tomcat of the neighbours looked in at the window, and "
    "went away."
)
RECORDS = {
    "diary": f"{WEATHER} {KITTEN}",
    "rain": WEATHER,
    "dog": "Dogs are walked twice a day, and sleep in the yard.",
    "sofa": "The furniture shop has chairs, tables and beds, and is closed on Mondays.",
}


def a_corpus(folder: Path) -> Path:
    path = folder / "notes.jsonl"
    path.write_text("".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in RECORDS.items()))
    return path


def a_table(folder: Path) -> Path:
    path = folder / "notes.parquet"
    pq.write_table(pa.table({"id": list(RECORDS), "text": list(RECORDS.values())}), path)
    return path


def best(searcher: Searcher, text: str) -> str:
    return searcher.search(Query(text=text)).results[0].uris[0]


@pytest.mark.parametrize("make", [a_corpus, a_table])
def test_a_question_about_its_end_leads_to_a_long_record(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    """ING-36: by other words than it has; the record is a chunk under its own id, and another run changes nothing."""
    source = make(tmp_path)
    made = index([source], tmp_path / "store", assignments=SETTINGS)
    with open_searcher(tmp_path / "store", assignments=["retrieval.channels=[dense]"]) as searcher:
        assert best(searcher, "where does the cat take its nap") == "notes:diary"
        chunks = [place.chunk for content in searcher.snapshot.generation.chunks for place in content.occurrences]
    assert {chunk_id(f"notes:{name}", "record") for name in RECORDS} == {
        chunk.chunk_id for chunk in chunks if chunk.level == 0
    }
    assert {chunk.uri for chunk in chunks if chunk.level > 0} == {"notes:diary", "notes:rain"}
    again = index([source], tmp_path / "store", assignments=SETTINGS)
    assert (again.generation, again.unchanged) == (made.generation, len(RECORDS))
