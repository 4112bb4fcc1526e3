"""What the logs of a store hold of one person, taken out of their files (OPS-13a)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weft.evaluation.ground_truth.collect import JUDGEMENTS
from weft.evaluation.queries.days import OUTCOME_LOG, QUERY_LOG, files_of, put_file, remove_file

_ASKED = ["principal", "text", "query_id"]


def erase_from_logs(root: Path, principal: str) -> Mapping[str, int]:
    """Take out what a principal asked, did about answers, and judged; how many rows of each log were theirs.

    Judgements that were made of feedback on a question go with it, unless others asked the same. A file is replaced
    whole. What a running process has not written yet is not there: it writes within seconds.
    """
    queries = root / QUERY_LOG
    texts, asked = _texts_and_ids(queries, principal)
    return {
        "queries": _erase(queries, {"principal": {principal}}),
        "outcomes": _erase(root / OUTCOME_LOG, {"principal": {principal}, "query_id": asked}),
        "judgements": _erase(root / JUDGEMENTS, {"by": {principal}, "text": texts}),
    }


def _texts_and_ids(folder: Path, principal: str) -> tuple[set[str], set[str]]:
    """Texts that a principal alone asked, and the ids of its queries."""
    rows = [row for file in files_of(folder) for row in pq.read_table(file, columns=_ASKED).to_pylist()]
    theirs = [row for row in rows if row["principal"] == principal]
    others = {row["text"] for row in rows if row["principal"] != principal}
    return {row["text"] for row in theirs} - others, {row["query_id"] for row in theirs}


def _erase(folder: Path, named: Mapping[str, set[str]]) -> int:
    """Remove the rows of a log that have one of some values in a column; how many there were."""
    erased = 0
    # A process that merges a day's files may bring rows back from before: it is looked again until there are none.
    while now := sum(_erase_in(file, named) for file in files_of(folder)):
        erased += now
    return erased


def _erase_in(file: Path, named: Mapping[str, set[str]]) -> int:
    keys = pq.read_table(file, columns=list(named)).to_pylist()
    staying = [not any(row[column] in values for column, values in named.items()) for row in keys]
    if not any(staying):
        remove_file(file)
    elif not all(staying):
        sink = pa.BufferOutputStream()
        table = pq.read_table(file).filter(pa.array(staying))
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        put_file(file.with_name(f"{uuid.uuid4().hex}.parquet"), sink.getvalue().to_pybytes(), instead_of=[file])
    return len(staying) - sum(staying)
