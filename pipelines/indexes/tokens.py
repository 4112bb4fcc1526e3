"""The token store: each content's token embeddings, in row order in one memory-mapped file (ING-19, RET-10)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.domain.errors import CorruptionError, StoreError
from pipelines.indexes import schemas

TOKENS_FILE = "tokens.npy"
OFFSETS_FILE = "token_offsets.npy"
PROJECTION_FILE = "projection.npy"
_ROWS = 4_096  # contents read at once: bounds memory, changes nothing else

Found = tuple[np.ndarray, list[np.ndarray]]
"""Content hashes, and for each of them int8 (tokens, width)."""


class TokenStore:
    """Token embeddings of a generation's contents under one encoder; immutable, shared by threads.

    Attributes:
        projection: float32 (width of the encoder's tokens, width stored): queries' tokens are multiplied by it.
    """

    def __init__(self, folder: Path) -> None:
        """Open the files.

        Raises:
            CorruptionError: The files do not belong together.
        """
        self._tokens = np.load(folder / TOKENS_FILE, mmap_mode="r", allow_pickle=False)
        self._offsets = np.load(folder / OFFSETS_FILE, mmap_mode="r", allow_pickle=False)
        self.projection: np.ndarray = np.load(folder / PROJECTION_FILE, allow_pickle=False)
        found = (int(self._offsets[-1]), self.projection.shape[1])
        if self._tokens.shape != found:
            raise CorruptionError(f"{folder}: expected tokens of shape {found}, found {self._tokens.shape}; rebuild")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def bytes_per_content(self) -> float:
        """Bytes stored for a content on average, offsets included."""
        return float(self._tokens.nbytes + self._offsets.nbytes) / max(1, len(self))

    def tokens(self, rows: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """Stored tokens of some contents, by row: int8 (tokens, width) each, directions of any length."""
        return [np.asarray(self._tokens[self._offsets[row] : self._offsets[row + 1]]) for row in rows]


def has_tokens(folder: Path) -> bool:
    """Whether an encoder's folder holds token embeddings."""
    return (folder / TOKENS_FILE).is_file()


def gather_tokens(
    parts: Sequence[Path],
    inherited: Path | None,
    inherited_hashes: Path,
    *,
    hashes: np.ndarray,
    out: Path,
    encoder: str,
) -> None:
    """Write the token store of one encoder, where the parts or else the generation before have token embeddings.

    A content met in two places keeps the tokens whose bytes sort first, whichever place is read first.

    Args:
        inherited: The encoder's folder in the generation before, if its tokens were made in the same way.
        inherited_hashes: That generation's table of contents.
        hashes: Sorted content hashes of this generation, row by row.

    Raises:
        StoreError: A content has no token embeddings, though others have.
    """
    files = [path for part in parts for path in sorted(part.glob("tokens*.parquet"))]
    files = [path for path in files if encoder in pq.read_table(path, columns=["encoder"])["encoder"].to_pylist()]
    before = inherited if inherited is not None and has_tokens(inherited) else None
    if before is None and not files:
        return

    def found() -> Iterator[Found]:
        if before is not None:
            yield from _of_store(TokenStore(before), inherited_hashes)
        for path in files:
            yield from _of_part(path, encoder)

    projection = before / PROJECTION_FILE if before is not None else _projection_of(files[0])
    _write(found, hashes, out, np.load(projection, allow_pickle=False).shape[1], encoder)
    shutil.copyfile(projection, out / PROJECTION_FILE)


def _write(found: Callable[[], Iterator[Found]], hashes: np.ndarray, out: Path, width: int, encoder: str) -> None:
    # Read twice: the first time tells how many tokens each row has, the second puts them there.
    counts = np.full(len(hashes), -1, dtype=np.int64)
    for names, tokens in found():
        for row, one in _placed(names, tokens, hashes):
            counts[row] = max(counts[row], len(one))
    if (counts < 0).any():
        missing = hashes[int(np.flatnonzero(counts < 0)[0])].decode()
        raise StoreError(f"expected token embeddings of {encoder} for every content, found none for {missing}")
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    shape = (int(offsets[-1]), width)
    stored = np.lib.format.open_memmap(out / TOKENS_FILE, mode="w+", dtype=np.int8, shape=shape)
    seen = np.zeros(len(hashes), dtype=bool)
    for names, tokens in found():
        for row, one in _placed(names, tokens, hashes):
            place = slice(offsets[row], offsets[row + 1])
            longest = len(one) == counts[row]
            if longest and (not seen[row] or one.tobytes() < np.asarray(stored[place]).tobytes()):
                stored[place] = one
                seen[row] = True
    stored.flush()
    np.save(out / OFFSETS_FILE, offsets)


def _placed(names: np.ndarray, tokens: Sequence[np.ndarray], hashes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Tokens with the row of their content; what is no content of this generation is left out."""
    if not len(hashes):
        return
    rows = np.minimum(np.searchsorted(hashes, names), len(hashes) - 1)
    for row, name, one in zip(rows, names, tokens, strict=True):
        if hashes[row] == name:
            yield int(row), one


def _of_store(store: TokenStore, contents: Path) -> Iterator[Found]:
    start = 0
    for batch in pq.ParquetFile(contents).iter_batches(batch_size=_ROWS, columns=["content_hash"]):
        yield _names(batch["content_hash"]), store.tokens(range(start, start + len(batch)))
        start += len(batch)


def _of_part(path: Path, encoder: str) -> Iterator[Found]:
    table = pq.read_table(path)
    rows = table.filter(pc.equal(table["encoder"], pa.scalar(encoder)))
    for batch in rows.to_batches(max_chunksize=_ROWS):
        columns: Any = [batch[name].to_pylist() for name in ("tokens", "width")]
        blobs = zip(*columns, strict=True)
        yield _names(batch["content_hash"]), [np.frombuffer(b, dtype=np.int8).reshape(-1, w) for b, w in blobs]


def _projection_of(path: Path) -> Path:
    metadata: Any = pq.read_schema(path).metadata
    return Path(metadata[schemas.PROJECTION].decode())


def _names(hashes: pa.Array[Any]) -> np.ndarray:
    return np.array(hashes.to_pylist(), dtype=np.dtype("S64"))
