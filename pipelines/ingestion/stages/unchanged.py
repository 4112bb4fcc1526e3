"""Which documents the live generation holds already, just as they would come out again (ING-25, ING-20)."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines import chunking
from pipelines.chunking.units.splitting import ChunkSizes
from pipelines.domain.documents import Document
from pipelines.domain.ids import GenerationId
from pipelines.indexes.manifest import CHUNKS_FOLDER
from pipelines.indexes.merge import REPEATED
from pipelines.runtime.storage.files import canonical, files_below, write_atomically
from pipelines.runtime.storage.sqlite import blob_key

_KEY = np.dtype("S32")  # half a key is enough: 128 bits do not meet by chance
_TIMES = frozenset({"modified_at"})


def document_key(document: Document, sizes: ChunkSizes, made_with: str) -> str:
    """Key of everything that decides a document's rows but the time it was changed: the document, sizes, models.

    Args:
        made_with: What all documents of a run have in common: models, their settings, and the code that cuts.
    """
    facts = {name: value for name, value in asdict(document).items() if name not in _TIMES}
    return blob_key(made_with, repr(sizes), canonical(facts).decode("utf-8", "surrogatepass"))


class KnownDocuments:
    """Keys of the documents of one generation: 32 bytes each, so that every worker may hold them."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._keys = np.sort(np.array([key[: _KEY.itemsize] for key in keys if key], dtype=_KEY))

    @classmethod
    def of(cls, generation: Path) -> KnownDocuments:
        """The documents of a generation that went through without a note."""
        folder = generation / CHUNKS_FOLDER
        documents = pq.read_table(folder / "documents.parquet", columns=["uri", "made_from"])
        rejected = pq.read_table(folder / "rejected.parquet", columns=["uri", "reason"])
        # A document with a note, such as on a parser that crashed, is cut again: so the note is made again.
        noted = rejected.filter(pc.not_equal(rejected["reason"], pa.scalar(REPEATED)))["uri"].combine_chunks()
        plain = documents.filter(pc.invert(pc.is_in(documents["uri"], value_set=noted)))
        return cls([str(key) for key in plain["made_from"].to_pylist()])

    def __or__(self, other: KnownDocuments) -> KnownDocuments:
        return KnownDocuments([key.decode() for key in np.union1d(self._keys, other._keys).tolist()])

    def __contains__(self, key: str) -> bool:
        wanted = np.array(key[: _KEY.itemsize], dtype=_KEY)
        at = int(np.searchsorted(self._keys, wanted))
        return at < len(self._keys) and bool(self._keys[at] == wanted)

    def __len__(self) -> int:
        return len(self._keys)

    def as_bytes(self) -> bytes:
        """All keys, one after the other."""
        return self._keys.tobytes()


class FoundAgain:
    """Keys under which the live generation's content was found once more, though it was made under others.

    Code that cuts changes more often than what it makes of a document. A run that finds the content as it is publishes
    nothing; without these keys all later ones would read and cut everything again. A cache: what is lost is cut anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, generation: GenerationId) -> KnownDocuments:
        """The keys noted for this generation; none where another one's are noted."""
        try:
            noted, _, keys = self._path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return KnownDocuments()
        if noted.decode("utf-8", "replace") != generation:
            return KnownDocuments()
        size = _KEY.itemsize
        whole = (keys[start : start + size] for start in range(0, len(keys) - size + 1, size))
        return KnownDocuments([key.decode("ascii", "replace") for key in whole])

    def note(self, generation: GenerationId, staged: Path) -> None:
        """Remember the keys of a staged generation, whose content turned out to be that of `generation`."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, generation.encode() + b"\n" + KnownDocuments.of(staged).as_bytes())

    def forget(self) -> None:
        """Remember nothing."""
        self._path.unlink(missing_ok=True)


@functools.cache
def cutting_code() -> str:
    """SHA-256 of the source of all chunkers: after any change to them every document is cut again."""
    digest = hashlib.sha256()
    for folder in chunking.__path__:
        for path in files_below(Path(folder)):
            if path.suffix in {".py", ".scm"}:
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
