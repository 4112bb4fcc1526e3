"""What is taken from the live generation: documents that would come out again just as they are (ING-25, ING-20)."""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft import chunking
from weft.catalog.catalog import Catalog
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import Document
from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import GenerationId
from weft.indexes.manifest import ANSWERING, DESCRIBED, Manifest, read_generation_manifest, tables_of
from weft.indexes.merge import REPEATED, MergedTables
from weft.ingestion.sources.files import DECODED, FLOOD
from weft.ingestion.sources.formats.registry import LEFT_OUT
from weft.runtime.storage.files import canonical, files_below, verify_some
from weft.runtime.storage.sqlite import blob_key

log = logging.getLogger(__name__)

# what says since when documents are indexed, and what they said: in a generation's own folder, or in its shards'
_EARLIER_FILES = frozenset(f"{name}.parquet" for name in ("documents", "chunks", "revisions", "former_places"))
_OF_READING = (REPEATED, DECODED, FLOOD, LEFT_OUT)
_KEY = np.dtype("S32")  # half a key is enough: 128 bits do not meet by chance


def document_key(document: Document, sizes: ChunkSizes, made_with: str) -> str:
    """Key of everything that decides a document's rows but the time it was changed: the document, sizes, models."""
    facts = {name: value for name, value in asdict(document).items() if name != "modified_at"}
    return blob_key(made_with, repr(sizes), canonical(facts).decode("utf-8", "surrogatepass"))


def cutting_code() -> str:
    """SHA-256 of the source of all chunkers: after any change to them every document is cut again."""
    return code_of(chunking)


@functools.cache
def code_of(package: ModuleType) -> str:
    """SHA-256 of the source of a package."""
    digest = hashlib.sha256()
    for folder in package.__path__:
        for path in files_below(Path(folder)):
            if path.suffix in {".py", ".scm"}:
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class DocumentKeys:
    """Keys of the documents of one generation: 32 bytes each, so that every worker may hold them."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._keys = np.sort(np.array([key[: _KEY.itemsize] for key in keys if key], dtype=_KEY))

    @classmethod
    def of(cls, generation: Path) -> DocumentKeys:
        """The documents of a generation that went through without a note on how they were cut."""
        documents, rejected = (
            pa.concat_tables([pq.read_table(file, columns=["uri", column]) for file in tables_of(generation, name)])
            for name, column in (("documents", "made_from"), ("rejected", "reason"))
        )
        # A document with a note, such as on a parser that crashed, is cut again: so the note is made again. Others are
        # made when a document is read, which it is in any case.
        of_cutting = pc.invert(pc.is_in(rejected["reason"], value_set=pa.array(_OF_READING)))
        noted = rejected.filter(of_cutting)["uri"].combine_chunks()
        plain = documents.filter(pc.invert(pc.is_in(documents["uri"], value_set=noted)))
        return cls([str(key) for key in plain["made_from"].to_pylist()])

    def __contains__(self, key: str) -> bool:
        wanted = np.array(key[: _KEY.itemsize], dtype=_KEY)
        at = int(np.searchsorted(self._keys, wanted))
        return at < len(self._keys) and bool(self._keys[at] == wanted)

    def __len__(self) -> int:
        return len(self._keys)


@dataclass(frozen=True, slots=True)
class Base:
    """What a run builds on."""

    generation: GenerationId | None  # the live one, if there is any
    folder: Path | None = None  # where unchanged documents are taken from; None where everything is made anew
    content_hash: str | None = None  # of what lies there; None likewise
    sources: Sequence[str] = ()  # where its documents came from
    # where it stands since when documents are indexed, and what they said; None where that is damaged, too
    earlier: Path | None = None

    @classmethod
    def of(cls, catalog: Catalog, *, full: bool) -> Base:
        """The live generation, unless everything is to be made anew or it cannot be built on."""
        live = catalog.pointer().generation
        if live is None:
            return cls(live)
        try:
            manifest = read_generation_manifest(catalog.folder_of(live)) if full else catalog.verify(live)
        except StoreError as error:
            log.warning("everything is made anew, for the live generation cannot be built on: %s", error)
            return cls(live)
        folder = catalog.folder_of(live)
        try:
            tables_of(folder, "documents")
        except CorruptionError as error:
            log.warning("everything is made anew: %s", error)
            full = True
        if full:
            return cls(live, sources=manifest.sources, earlier=_with_whole_tables(folder, manifest))
        return cls(live, folder, manifest.content_hash, manifest.sources, folder)

    def documents(self) -> DocumentKeys:
        """The documents that need not be made."""
        return DocumentKeys() if self.folder is None else DocumentKeys.of(self.folder)

    def description(self, merged: MergedTables, least: float) -> Mapping[str, object]:
        """What was found out about the documents of this generation, for one that has most of them; else empty."""
        facts = {} if self.folder is None else read_generation_manifest(self.folder).facts
        share = float(facts.get(DESCRIBED, 0.0)) * merged.unchanged / max(1, merged.counts["documents"])
        if ANSWERING not in facts or share < least:
            return {}
        return {ANSWERING: facts[ANSWERING], DESCRIBED: share}


def _with_whole_tables(folder: Path, manifest: Manifest) -> Path | None:
    """The folder of a generation, where its tables of documents, chunks and what became of them are intact."""
    files = {name: digest for name, digest in manifest.files.items() if Path(name).name in _EARLIER_FILES}
    try:
        verify_some(folder, files)
    except CorruptionError:
        return None
    return folder
