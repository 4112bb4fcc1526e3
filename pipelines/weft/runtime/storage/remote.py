"""Objects of a cloud by obstore, the one importer of it (SCL-3).

An answer may be lost though the write was done. So each conditional write names its writer in the object's metadata,
and whoever is told that another came first, or nothing, looks whether that other was he himself.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore
from obstore import exceptions, store

from weft.domain.errors import StoreError
from weft.runtime.storage.objects import RETRY_S, ListedObject, StoredObject

_PAUSES_S = (0.1, 0.5, 2.0, 5.0)  # before a conditional write without an answer is tried again
_WRITER = "writer"
_PLAIN = ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP")  # unread where other options of a client are given


class RemoteObjects:
    """Objects of S3, Google Cloud Storage or Azure, or in the memory of this process; see `Objects`.

    Endpoint and credentials are read from the environment, as the providers' own tools do.
    """

    def __init__(self, url: str, patience_s: float = RETRY_S) -> None:
        self.url = url
        with self._named(url):
            if url.startswith("memory:"):
                self._store: Any = store.MemoryStore()
            else:
                plain = any(os.environ.get(name, "").lower() in {"true", "1"} for name in _PLAIN)
                self._store = store.from_url(
                    url,
                    client_options={"timeout": timedelta(seconds=patience_s), "allow_http": plain},
                    retry_config={"retry_timeout": timedelta(seconds=patience_s)},
                )

    def get(self, key: str) -> StoredObject | None:
        """See `Objects`."""
        there = self._read(key)
        return None if there is None else StoredObject(*there[:2])

    def fetch(self, key: str, path: Path) -> bool:
        """See `Objects`."""
        with path.open("wb") as file, self._named(key):
            try:
                chunks = obstore.get(self._store, key).stream(min_chunk_size=1 << 20)
            except FileNotFoundError:
                return False
            for chunk in chunks:
                file.write(chunk)
        return True

    def put(self, key: str, data: bytes | Path) -> None:
        """See `Objects`."""
        with self._named(key):
            obstore.put(self._store, key, data)

    def create(self, key: str, data: bytes) -> bool:
        """See `Objects`."""
        return self._conditional(key, data, "create") is not None

    def swap(self, key: str, data: bytes, tag: str | None) -> str | None:
        """See `Objects`."""
        return self._conditional(key, data, "create" if tag is None else json.loads(tag))

    def delete(self, keys: Iterable[str]) -> None:
        """See `Objects`."""
        for key in keys:  # Google and Azure take no list of keys; of missing ones a list tells nothing
            with self._named(key):
                try:
                    obstore.delete(self._store, key)
                except FileNotFoundError:
                    continue

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """See `Objects`."""
        with self._named(prefix):
            listed = [each for some in obstore.list(self._store, prefix or None) for each in some]
        return iter(
            sorted(
                ListedObject(each["path"], each["e_tag"] or "", each["size"], each["last_modified"].timestamp())
                for each in listed
            )
        )

    def _read(self, key: str) -> tuple[bytes, str, Mapping[Any, str]] | None:
        with self._named(key):
            try:
                there = obstore.get(self._store, key)
                return bytes(there.bytes()), _tag_of(there.meta), dict(there.attributes)
            except FileNotFoundError:
                return None

    def _conditional(self, key: str, data: bytes, mode: Any) -> str | None:
        writer = secrets.token_hex(16)
        was_first = (exceptions.AlreadyExistsError, exceptions.PreconditionError)
        for pause in (*_PAUSES_S, None):
            with self._named(key):
                try:
                    named = {_WRITER: writer}
                    result = obstore.put(self._store, key, data, mode=mode, attributes=named, use_multipart=False)
                    return _tag_of(result)
                except was_first:
                    is_decided = True
                except exceptions.GenericError:  # no answer: it may have been written
                    if pause is None:
                        raise
                    is_decided = False
            there = self._read(key)
            if there is not None and there[2].get(_WRITER) == writer:
                return there[1]
            if is_decided:
                return None
            time.sleep(pause or 0.0)
        return None

    @contextmanager
    def _named(self, key: str) -> Iterator[None]:
        try:
            yield
        # There may be no such bucket, and none may be called so.
        except (exceptions.BaseError, FileNotFoundError, ValueError) as error:
            text = str(error)
            stated = _STATED.search(text)  # by S3 and what speaks as it does; the client's own words take lines
            reason = f"{stated[1]}: {stated[2].rstrip('.')}" if stated else next(iter(text.splitlines()), "")
            raise StoreError(f"{self.url}: expected to read and write {key}, found: {reason}: {_HELP}") from error


def _tag_of(written: Mapping[str, Any]) -> str:
    """What names one state of an object: S3 and Azure compare its e-tag, Google its version."""
    return json.dumps({name: written[name] for name in ("e_tag", "version") if written.get(name)})


_STATED = re.compile(r"<Code>([^<]+)</Code>\s*<Message>([^<]+)</Message>")
_HELP = "look at the address, at the network, and at the credentials in the environment and what they permit"
