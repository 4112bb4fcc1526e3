"""Live evidence: what the live version knows and what was streamed since the last settled cut, integer for integer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from weft.catalog.citations import CITATIONS_FILE
from weft.catalog.learned import LearnedState, LearnedStore, read_evidence, read_snapshot
from weft.catalog.overlays import OFFSET_KEY, TOPIC_KEY, SessionListing, read_listing
from weft.catalog.pointer import Pointer, PointerFile
from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import VersionName
from weft.domain.links import Relation
from weft.learning.evidence import Evidence
from weft.runtime.storage.working_copy import replace_table, working_copy_of

log = logging.getLogger(__name__)

SNAPSHOT_FILE = "evidence.parquet"
"""What each updater replaces atomically below `updaters/<partition>/`."""

Reach = Mapping[str, int]
"""Offset of the first record that is not in, by partition."""

LiveToken = tuple[tuple[str, int, int, int], ...]
"""Name, inode, size and modification time of every file that live evidence depends on."""

RELATIONS_FILE = "relations.json"
"""Replaced atomically; searches see it as they see what is live."""

_RELATIONS = TypeAdapter(tuple[Relation, ...])


class LiveEvidence:
    """Reads live evidence; versions are immutable, so that each is read once."""

    def __init__(self, root: Path, pointer: PointerFile, learned: LearnedStore) -> None:
        self._root = root
        self._copy = working_copy_of(root)
        self._pointer = pointer
        self._learned = learned
        self._read: dict[VersionName, LearnedState] = {}

    def snapshots(self) -> list[Path]:
        """What was published last of every partition; a copy of one, beside it under another name, is none."""
        if self._copy is not None:
            self._copy.follow()
        paths = (self._root / "updaters").glob(f"*/{SNAPSHOT_FILE}")
        return sorted(path for path in paths if path.parent.name.isdecimal())

    def streamed(self) -> Evidence:
        """The sum of all updaters' snapshots."""
        return self.streamed_reach()[0]

    def streamed_reach(self) -> tuple[Evidence, Reach]:
        """The sum of all updaters' snapshots, and how far each of the summed reaches into its partition."""
        read = {path.parent.name: read_snapshot(path) for path in self.snapshots()}
        reach = {partition: int(facts.get(OFFSET_KEY, b"0")) for partition, (_, facts) in read.items()}
        return Evidence.sum(evidence for evidence, _ in read.values()), reach

    def topics(self) -> frozenset[str]:
        """Identities of the topics that updaters read."""
        topics = (read_snapshot(path)[1].get(TOPIC_KEY, b"") for path in self.snapshots())
        return frozenset(topic.decode() for topic in topics if topic)

    def evidence(self, pointer: Pointer | None = None) -> Evidence:
        """Base of the live version + (streamed − cut of the newest version that was ever live).

        Whoever states the version beside it gives the pointer that was read for that.

        A version that waits for its verdict changes nothing: what it folded goes on counting as streamed. A damaged
        live version is stood in for by the nearest readable ancestor, with a warning. Without a readable cut it is
        unknown what is new, and only the base counts.
        """
        # Pointer first: a version is published before it goes live, so that every pair met this way was once in force.
        pointer = pointer or self._pointer.read()
        return self.given(pointer.learned, pointer.decided, self.streamed())

    def given(self, learned: VersionName | None, decided: VersionName | None, streamed: Evidence) -> Evidence:
        """What would be live with these versions in force and that much streamed."""
        base = self._base(learned)
        if decided is None:
            return base + streamed
        try:
            return base + (streamed - self._state(decided).cut)
        except CorruptionError as error:
            log.warning("nothing streamed counts until the next version is published: %s", error)
            return base

    def given_partition(self, partition: int, evidence: Evidence) -> Evidence:
        """What would be live if one partition had published this evidence."""
        pointer = self._pointer.read()
        others = (read_evidence(path) for path in self.snapshots() if path.parent.name != str(partition))
        return self.given(pointer.learned, pointer.decided, Evidence.sum([evidence, *others]))

    def listing(self) -> SessionListing:
        """The sessions that are open now."""
        return read_listing(self.snapshots())

    def token(self) -> LiveToken:
        """A value that changes whenever live evidence, relations or counts may have; costs a few file lookups."""
        watched = [self._pointer.path, self._root / RELATIONS_FILE, self._root / CITATIONS_FILE, *self.snapshots()]
        return tuple(stamp for path in watched if (stamp := _stamp(path)) is not None)

    def _base(self, version: VersionName | None) -> Evidence:
        while version is not None:
            try:
                return self._state(version).evidence
            except CorruptionError as error:
                log.warning("learned version %s is not used: %s", version, error)
                version = self._parent(version)
        return Evidence()

    def _parent(self, version: VersionName) -> VersionName | None:
        try:
            return self._learned.manifest(version).parent
        except StoreError:
            older = [other for other in self._learned.versions() if other < version]
            return older[-1] if older else None

    def _state(self, version: VersionName) -> LearnedState:
        state = self._read.get(version) or self._learned.read(version)
        pointer = self._pointer.read()
        in_use = {pointer.learned, pointer.decided}
        self._read = {name: read for name, read in self._read.items() if name in in_use} | {version: state}
        return state


def _stamp(path: Path) -> tuple[str, int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return (str(path), status.st_ino, status.st_size, status.st_mtime_ns)


def read_relations(root: Path) -> tuple[Relation, ...]:
    """All that were declared in a store, in the order of URI, kind and target."""
    path = root / RELATIONS_FILE
    if (copy := working_copy_of(root)) is not None:
        copy.follow()
    try:
        return _relations_in(path.read_bytes(), path)
    except FileNotFoundError:
        return ()


def change_relations(root: Path, change: Callable[[tuple[Relation, ...]], Iterable[Relation]]) -> None:
    """Replace them; of equal ends and kinds the first one stays. The caller lets nobody else here write."""

    def changed(data: bytes | None) -> bytes:
        distinct: dict[tuple[str, str, str], Relation] = {}
        for each in change(() if data is None else _relations_in(data, root / RELATIONS_FILE)):
            distinct.setdefault((each.uri, each.kind, each.target), each)
        ordered = tuple(distinct[key] for key in sorted(distinct))
        return _RELATIONS.dump_json(ordered, indent=1) + b"\n"

    replace_table(root, RELATIONS_FILE, changed)


def _relations_in(data: bytes, path: Path) -> tuple[Relation, ...]:
    try:
        return _RELATIONS.validate_json(data)
    except ValidationError as error:
        raise CorruptionError(f"{path}: expected declared relations, found: {error}; mend or remove it") from error
