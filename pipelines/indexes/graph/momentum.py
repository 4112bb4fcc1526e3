"""How the degree of contents changed over the last generations (GRA-2): each hands on what it and those before had."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.domain.errors import CorruptionError
from pipelines.indexes.graph.graph import ANALYTICS_FILE, FORMER_DEGREES, GRAPH_FOLDER
from pipelines.indexes.manifest import CHUNKS_FOLDER, read_generation_manifest
from pipelines.runtime.storage.files import verify_some

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]


def former_degrees(contents: NDArray[np.bytes_], earlier: Path | None) -> Floats:
    """Degrees that contents had in the last generations, float64 (contents, `FORMER_DEGREES`), the newest last.

    NaN where a content was not there, and all of them where the generation before was built without or is damaged.

    Args:
        contents: Hashes, ascending.
        earlier: The folder of the generation before; None of the first.
    """
    former = np.full((len(contents), FORMER_DEGREES), np.nan)
    names = f"{CHUNKS_FOLDER}/contents.parquet", f"{GRAPH_FOLDER}/{ANALYTICS_FILE}"
    if earlier is None or not (earlier / names[1]).exists():
        return former
    files = read_generation_manifest(earlier).files
    try:
        verify_some(earlier, {name: files[name] for name in names})
    except (CorruptionError, KeyError) as error:
        log.warning("how degrees change begins anew, for the generation before cannot be read: %s", error)
        return former
    held = hashes_in(earlier / names[0])
    table = pq.read_table(earlier / names[1]).slice(0, len(held))
    had = table["degree"].to_numpy()[:, None]
    if "former_degrees" in table.column_names:  # of generations that were built before degrees were kept
        former_had = pc.list_flatten(table["former_degrees"]).to_numpy()
        had = np.concatenate([former_had.reshape(-1, FORMER_DEGREES), had], axis=1)[:, -FORMER_DEGREES:]
    _, here, there = np.intersect1d(contents, held, assume_unique=True, return_indices=True)
    former[here, FORMER_DEGREES - had.shape[1] :] = had[there]
    return former


def degree_changes(degrees: Floats, former: Floats) -> Floats:
    """What degrees are above the oldest that is kept of each, (contents,); NaN of what was not there before.

    Examples:
        >>> degree_changes(np.array([3.0, 1.0]), np.array([[np.nan, 1.0, 2.5], [np.nan] * 3])).tolist()
        [2.0, nan]
    """
    oldest = np.argmax(~np.isnan(former), axis=1)
    return np.asarray(degrees - former[np.arange(len(former)), oldest], dtype=np.float64)


def hashes_in(path: Path) -> NDArray[np.bytes_]:
    """The content hashes of a table of contents, in its order."""
    column: pa.ChunkedArray[pa.StringScalar] = pq.read_table(path, columns=["content_hash"])["content_hash"]
    return np.array(column.to_pylist(), dtype="S64")
