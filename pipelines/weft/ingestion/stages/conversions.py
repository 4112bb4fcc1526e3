"""Files in formats, each read once: what came of one is kept by its bytes (ING-25)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache, cached_property
from importlib.metadata import packages_distributions, version
from pathlib import Path

import msgspec

from weft.chunking.chunker import CRASHED
from weft.domain.documents import Rejection
from weft.ingestion import sources
from weft.ingestion.git.safe_files import UNREADABLE, VANISHED, UnreadableError
from weft.ingestion.parser.parser import MEMORY, TIMEOUT
from weft.ingestion.sources.formats.registry import Conversion, Convert, Read, digest_of
from weft.ingestion.sources.formats.source import Written
from weft.ingestion.sources.transcripts import Transcript
from weft.ingestion.stages.reuse import code_of
from weft.runtime.extras import EXTRAS
from weft.runtime.storage.sqlite import BlobCache, blob_key

_KINDS: dict[str, type[Read]] = {kind.__name__: kind for kind in (Transcript, Written, Rejection)}
_OF_THE_MOMENT = frozenset({CRASHED, TIMEOUT, MEMORY, UNREADABLE, VANISHED})  # reasons that may be gone next time


class Conversions:
    """Reads files in their formats, those with the same bytes as before from what is kept.

    Documents are kept one by one, as they come, and last how many they are: a file whose reading was broken off is read
    again.
    """

    def __init__(self, path: Path, convert: Convert) -> None:
        self._path = path
        self._convert = convert

    @cached_property
    def _cache(self) -> BlobCache:
        return BlobCache(self._path)

    def __call__(self, conversion: Conversion) -> Iterator[Read]:
        """Documents of a file, one after the other, and what of it cannot be read, or is left out."""
        try:
            facts = (conversion.format, conversion.uri, str(conversion.limit), digest_of(conversion))
        except UnreadableError as error:
            yield error.rejection(conversion.uri)
            return
        key = blob_key(_reading_code(), *facts)
        if (count := self._cache.get([key]).get(key)) is not None:
            for number in range(int(count)):
                kind, fields = json.loads(self._cache.get([f"{key}/{number}"])[f"{key}/{number}"])
                yield msgspec.convert(fields, _KINDS[kind])
            return
        number, lasting = 0, True
        for one in self._convert(conversion):
            lasting = lasting and not (isinstance(one, Rejection) and one.reason in _OF_THE_MOMENT)
            if lasting:
                self._cache.put({f"{key}/{number}": json.dumps((type(one).__name__, asdict(one))).encode()})
            number += 1
            yield one
        if lasting:
            self._cache.put({key: str(number).encode()})


@cache
def _reading_code() -> str:
    """Key of the source of all readers, and of the libraries that they use."""
    distributions = packages_distributions()
    used = {each for name, extra in EXTRAS.items() if extra == "formats" for each in distributions.get(name, ())}
    return blob_key(code_of(sources), json.dumps({each: version(each) for each in used}, sort_keys=True))
