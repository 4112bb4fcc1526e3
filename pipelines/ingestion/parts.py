"""Parts on disk: what the stages made of each unit, one folder per unit, in the shape that the builder takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.domain.documents import Rejection
from pipelines.indexes import schemas
from pipelines.ingestion.units import Unit

REPEATED = "repeated_uri"


def write_part(folder: Path, unit: Unit) -> Path:
    """Write a unit's tables; writing the same unit again changes nothing."""
    part = folder / f"{unit.number:08d}"
    part.mkdir(exist_ok=True)
    for name, table in unit.tables.items():
        pq.write_table(table, part / f"{name}.parquet")
    return part


def reject_repeated(parts: Sequence[Path]) -> int:
    """Keep the first document of each URI, by the order of `parts`; later ones become rows of `rejected`.

    Within a part URIs are unique already.

    Returns:
        How many documents were taken out.
    """
    seen: set[str] = set()
    dropped = 0
    for part in parts:
        uris = [str(uri) for uri in pq.read_table(part / "documents.parquet", columns=["uri"])["uri"].to_pylist()]
        if repeated := [uri for uri in uris if uri in seen]:
            _take_out(part, repeated)
            dropped += len(repeated)
        seen.update(uris)
    return dropped


def keep_mentions_once(parts: Sequence[Path]) -> None:
    """Of a content that stands in several parts, keep the mentions in the first one: they are the same in all."""
    seen: set[str] = set()
    for part in parts:
        contents = {
            str(content)
            for content in pq.read_table(part / "chunks.parquet", columns=["content_hash"])["content_hash"].to_pylist()
        }
        path = part / "mentions.parquet"
        if path.exists():
            mentions = pq.read_table(path)
            new = pa.array(sorted(contents - seen), pa.string())
            pq.write_table(mentions.filter(pc.is_in(mentions["content_hash"], new)), path)
        seen |= contents


def repeated_uri(uri: str) -> Rejection:
    """The note on a document whose URI another one has."""
    return Rejection(uri, REPEATED, "expected every document under a URI of its own, another came first")


def _take_out(part: Path, uris: Sequence[str]) -> None:
    for name in ("documents", "chunks"):
        table = pq.read_table(part / f"{name}.parquet")
        kept = table.filter(pc.invert(pc.is_in(table["uri"], pa.array(uris, pa.string()))))
        pq.write_table(kept, part / f"{name}.parquet")
    path = part / "rejected.parquet"
    notes = schemas.rejections_to_table(repeated_uri(uri) for uri in uris)
    pq.write_table(pa.concat_tables([pq.read_table(path), notes]), path)
