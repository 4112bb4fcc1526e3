"""Cached bytes that the hosts of one object store share, in packs that each worker sends (SCL-5).

A pack holds what was computed for a run that nobody has published yet: when a host is lost with its disk, the next run
goes on from there. What is published holds its own vectors, so packs go when a generation goes live.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from weft.domain.errors import StoreError
from weft.runtime.storage.sqlite import BlobCache
from weft.runtime.storage.working_copy import WorkingCopy, working_copy_of

PACKS = "cache"
"""Folder of packs in the object store; the caches of each host lie under the same name on its disk."""

SENT_S, SENT_BYTES = 30.0, 32 * 1024**2
"""A worker sends a pack when it is so old, or so large: what is younger is computed again after a loss."""

LOOK_S = 30.0
"""Between looks at what others sent."""

_log = logging.getLogger(__name__)


def blobs_at(path: Path) -> BlobCache:
    """The cache in a file of a store's folder for caches, shared with other hosts where the store is."""
    copy = working_copy_of(path.parents[1])
    return BlobCache(path) if copy is None else SharedBlobs(path, copy)


class SharedBlobs(BlobCache):
    """A cache on disk that is also sent, and looks for what it lacks in what others sent. Used by one thread.

    An object store that does not answer costs what is there, and nothing else.
    """

    def __init__(self, path: Path, copy: WorkingCopy) -> None:
        super().__init__(path)
        self._objects = copy.objects
        self._folder = f"{PACKS}/{path.stem}/"
        self._unsent: dict[str, bytes] = {}
        self._sent_s = time.monotonic()
        self._looked_s = float("-inf")

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The blobs of those keys that have one, here or in a pack."""
        blobs = super().get(keys)
        if len(blobs) < len(keys) and time.monotonic() - self._looked_s >= LOOK_S:
            self._looked_s = time.monotonic()
            if self._received():
                blobs |= super().get([key for key in keys if key not in blobs])
        return blobs

    def put(self, blobs: Mapping[str, bytes]) -> None:
        """Keep blobs here, and send them with others."""
        super().put(blobs)
        self._unsent |= blobs
        due = time.monotonic() - self._sent_s >= SENT_S or sum(map(len, self._unsent.values())) >= SENT_BYTES
        if self._unsent and due:
            self._send()

    def _send(self) -> None:
        name = f"{self._folder}{secrets.token_hex(16)}"
        try:
            self._objects.put(name, msgspec.msgpack.encode(self._unsent))
        except StoreError as error:
            _log.warning("what was computed stays on this host alone: %s", error)
        super().put({name: b""})
        self._unsent, self._sent_s = {}, time.monotonic()

    def _received(self) -> bool:
        """Take over the packs that are new here; each is a key, too, once it was read."""
        try:
            names = [each.key for each in self._objects.list(self._folder)]
            new = sorted(set(names) - super().get(names).keys())
            for name in new:
                if (there := self._objects.get(name)) is not None:
                    super().put(msgspec.msgpack.decode(there.data, type=dict[str, bytes]) | {name: b""})
        except (StoreError, msgspec.DecodeError) as error:
            _log.warning("what other hosts computed is computed again: %s", error)
            return False
        return bool(new)
