"""Generations as earlier versions wrote them: format 1 kept no texts and knew fewer columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from weft.catalog.catalog import Catalog
from weft.runtime.storage.files import file_hashes, read_manifest, write_manifest

_LATER = {
    "documents": [
        "summary", "authors", "intent", "tier", "validation", "citations", "triggers", "links", "made_from",
    ],
    "chunks": ["bundle", "links", "attributes"],
}  # fmt: skip


def age(store: Path) -> Path:
    """Turn the live generation of a store into one of format 1, in place; returns its folder."""
    folder = store / "generations" / str(Catalog(store).pointer().generation)
    for name, columns in _LATER.items():
        path = folder / "chunks" / f"{name}.parquet"
        pq.write_table(pq.read_table(path).drop_columns(columns), path)
    (folder / "chunks" / "texts.parquet").unlink()
    values = {**read_manifest(folder), "format": 1}
    write_manifest(folder, {**values, "files": file_hashes(folder)})
    return folder
