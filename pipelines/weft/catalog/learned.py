"""Learned versions: evidence, calibration and policy as one immutable, numbered whole (CON-9)."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError

from weft.catalog.pointer import PointerFile
from weft.catalog.staging import StagingArea
from weft.domain.errors import CorruptionError, StaleVersionError, StoreError
from weft.domain.ids import PRIORS_VERSION, VersionName, number_of
from weft.learning.aliases import ContentAliases
from weft.learning.calibration.scores import ScoreCalibration
from weft.learning.edges import LearnedEdges
from weft.learning.evidence import SCHEMA, TEXTS_BY_NUMBER, Evidence
from weft.learning.parts import LearnedVersion, Part, parts_of
from weft.learning.pooling.fitted import FittedWeights
from weft.learning.thinned import Thinned
from weft.runtime.storage.errors import named, refused
from weft.runtime.storage.files import (
    exchange,
    file_hashes,
    read_manifest,
    sync_folder,
    sync_tree,
    verify_files,
    write_manifest,
)
from weft.runtime.storage.parquet import read_parquet
from weft.runtime.storage.working_copy import working_copy_of

EVIDENCE_FILE = "evidence.parquet"
CUT_FILE = "cut.parquet"
FORMAT = 1

PARTS: tuple[type[Part], ...] = (
    ContentAliases,  # contents that stand for one another (CON-2)
    LearnedEdges,  # between contents (CON-3, CON-4)
    Thinned,  # contents that searches of everything pass over (CON-5)
    FittedWeights,  # of domains in which a fit beats counting (CON-8)
    ScoreCalibration,  # from score to P(good), where outcomes are enough (CON-8)
)
"""What a version may hold beside evidence: a part is stored and read back because it stands here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedState(LearnedVersion):
    """A learned version as it is published: its evidence is the base that is read with what is streamed since."""

    parent: VersionName | None  # the version it was built on, None for the first
    cut: Evidence  # the sum of the updaters' snapshots when it was cut
    priors: str = ""  # hash of the priors it was judged under
    # further decisions that searches follow, such as the fusion mode
    policy: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)  # where it comes from, for people: counts, gate, run
    mlflow_run_id: str | None = None  # the run that documents it, None where there is none
    created_at: float = 0.0  # seconds since the epoch


NOTHING_LEARNED = LearnedState(parent=None, evidence=Evidence(), cut=Evidence())
"""What `PRIORS_VERSION` is."""


class LearnedManifest(BaseModel):
    """What is known of a learned version without reading its evidence; fields as in `LearnedState`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    version: VersionName
    parent: VersionName | None
    created_at: float
    priors: str
    policy: Mapping[str, Any]
    provenance: Mapping[str, Any]
    mlflow_run_id: str | None
    digest: str
    files: Mapping[str, str]


LEARNED = "learned"
"""Folder of learned versions below a store."""


class LearnedStore:
    """The folder `learned/` of a store. Versions are numbered in the order of publishing."""

    def __init__(self, root: Path, pointer: PointerFile) -> None:
        self._folder = root / LEARNED
        self._copy = working_copy_of(root)
        self._pointer = pointer
        self.staging = StagingArea(self._folder)

    def publish(self, state: LearnedState, *, expected_newest: VersionName | None) -> VersionName:
        """Write a version; it is not live before it is made so."""
        staging = self.staging.stage()
        try:
            with named(staging):
                write_tables(staging, state, state.cut)
            with self._pointer.writing():
                newest = self.newest()
                if newest != expected_newest:
                    raise StaleVersionError(
                        f"expected {expected_newest or 'nothing'} to be the newest learned version, found "
                        f"{newest or 'nothing'}: start `weft consolidate` anew, which builds on that one"
                    )
                version = _following(newest)
                write_manifest(staging, _manifest(version, state, file_hashes(staging)).model_dump(mode="json"))
                sync_tree(staging)
                if self._copy is not None and not self._copy.publish(f"{LEARNED}/{version}", staging):
                    raise StaleVersionError(
                        f"expected to publish {version}, found that another host has: start `weft consolidate` anew"
                    )
                staging.rename(self._folder / version)
                sync_folder(self._folder)
        finally:
            self.staging.release(staging)
        return version

    def rewrite(self, version: VersionName, change: Callable[[Evidence], Evidence]) -> bool:
        """Hold what `change` makes of a version's evidence and cut instead of these; whether that is other.

        For what must not stay in any file (LES-14): else versions never change. Raises as `read`.
        """
        state = self.read(version)
        changed = replace(state, evidence=change(state.evidence), cut=change(state.cut))
        if (changed.evidence, changed.cut) == (state.evidence, state.cut):
            return False
        staging = self.staging.stage()
        try:
            with named(staging):
                write_tables(staging, changed, changed.cut)
            write_manifest(staging, _manifest(version, changed, file_hashes(staging)).model_dump(mode="json"))
            sync_tree(staging)
            if self._copy is not None:
                self._copy.rewrite(f"{LEARNED}/{version}", staging)
            with self._pointer.writing():
                exchange(staging, self._folder / version)
            sync_folder(self._folder)
        finally:
            self.staging.release(staging)
        return True

    def read(self, version: VersionName) -> LearnedState:
        """A version, verified; errors as in `manifest`, and CorruptionError where a file differs from it."""
        if version == PRIORS_VERSION:
            return NOTHING_LEARNED
        manifest = self.manifest(version)
        folder = self.folder_of(version)
        verify_files(folder, manifest.files)
        return LearnedState(
            parent=manifest.parent,
            evidence=read_evidence(folder / EVIDENCE_FILE),
            cut=read_evidence(folder / CUT_FILE),
            parts=parts_of(*(_read_part(folder, kind) for kind in PARTS)),
            priors=manifest.priors,
            policy=manifest.policy,
            provenance=manifest.provenance,
            mlflow_run_id=manifest.mlflow_run_id,
            created_at=manifest.created_at,
        )

    def manifest(self, version: VersionName) -> LearnedManifest:
        """The manifest of a version."""
        if number_of(version) is None:
            raise StoreError(f"expected a learned version such as {_following(None)}, found {version!r}")
        if version == PRIORS_VERSION:
            return _manifest(version, NOTHING_LEARNED, {})
        folder = self.folder_of(version)
        try:
            manifest = LearnedManifest.model_validate(read_manifest(folder))
        except ValidationError as error:
            raise CorruptionError(f"{folder}: expected a learned version, found: {error}; roll back") from error
        if (manifest.format, manifest.version) != (FORMAT, version):
            raise CorruptionError(
                f"{folder}: expected format {FORMAT} of {version}, found format {manifest.format} of "
                f"{manifest.version}; roll back"
            )
        return manifest

    def folder_of(self, version: VersionName) -> Path:
        """Where a version lies."""
        return self._folder / version if self._copy is None else self._copy.bring(f"{LEARNED}/{version}")

    def versions(self) -> list[VersionName]:
        """Every version that was published, oldest first; that of the priors was not."""
        names = [VersionName(path.name) for path in self._folder.glob("v*") if path.is_dir()]
        if self._copy is not None:
            live = self._pointer.read()
            in_force = {each for each in (live.learned, live.decided) if each is not None}
            names = [VersionName(each) for each in {*self._copy.names(LEARNED), *in_force}]
        numbered = [(number, name) for name in names if (number := number_of(name)) is not None]
        return [name for _, name in sorted(numbered)]

    def prune(self, keep: int) -> list[VersionName]:
        """Remove all but the `keep` newest, the live one and what waits for its verdict; what was removed.

        What was live last settles what streamed evidence counts, and stays as well.
        """
        with self._pointer.writing():
            live, versions = self._pointer.read(), self.versions()
            decided = number_of(live.decided) if live.decided is not None else None
            spared = {live.learned, live.decided, *versions[max(0, len(versions) - max(1, keep)) :]}
            removed = [
                each
                for each in versions
                if each not in spared and decided is not None and (number_of(each) or 0) < decided
            ]
            for each in removed:
                if self._copy is not None:
                    self._copy.remove(f"{LEARNED}/{each}")
                if (self._folder / each).is_dir():
                    self.staging.retire(self._folder / each)
        return removed

    def newest(self) -> VersionName | None:
        """The version published last, None before the first."""
        return next(reversed(self.versions()), None)


def read_evidence(path: Path) -> Evidence:
    """The evidence in a Parquet file."""
    return read_snapshot(path)[0]


def read_snapshot(path: Path) -> tuple[Evidence, Mapping[bytes, bytes]]:
    """The evidence in a Parquet file, and the metadata written with it; errors as in `read_evidence`."""
    try:
        written = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise refused(path, error) from error
    try:
        table = read_parquet(io.BytesIO(written), by_number=TEXTS_BY_NUMBER)
        return Evidence.from_table(table.replace_schema_metadata(None)), table.schema.metadata or {}
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, StoreError) as error:
        # The bytes are in memory: an OSError is what Arrow says of a page whose checksum is wrong.
        raise CorruptionError(f"{path}: expected evidence, found: {error}; rebuild or roll back") from error


def _read_part(folder: Path, kind: type[Part]) -> Part | None:
    path = folder / f"{kind.name}.parquet"
    path = path if path.exists() else path.with_suffix(".json")
    if not path.exists():
        return None
    try:
        return kind.from_table(read_parquet(path) if path.suffix == ".parquet" else path.read_text(encoding="utf-8"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, ValueError, StoreError) as error:
        raise CorruptionError(f"{path}: expected what was written, found: {error}; roll back") from error


def write_evidence(path: Path, evidence: Evidence) -> None:
    """Write what `read_evidence` reads."""
    with pq.ParquetWriter(path, SCHEMA, write_page_checksum=True) as writer:
        for table in evidence.tables():
            writer.write_table(table)


def write_tables(folder: Path, learned: LearnedVersion, cut: Evidence) -> None:
    """Write all that a version holds but its manifest."""
    for name, evidence in ((EVIDENCE_FILE, learned.evidence), (CUT_FILE, cut)):
        write_evidence(folder / name, evidence)
    for name, part in learned.parts.items():
        stored = part.to_table()
        path = folder / f"{name}.{'json' if isinstance(stored, str) else 'parquet'}"
        if isinstance(stored, str):
            path.write_text(stored, encoding="utf-8")
        else:
            pq.write_table(stored, path, write_page_checksum=True)


def _manifest(version: VersionName, state: LearnedState, files: Mapping[str, str]) -> LearnedManifest:
    return LearnedManifest(
        version=version,
        parent=state.parent,
        created_at=state.created_at,
        priors=state.priors,
        policy=state.policy,
        provenance=state.provenance,
        mlflow_run_id=state.mlflow_run_id,
        digest=state.evidence.digest(),
        files=files,
    )


def _following(version: VersionName | None) -> VersionName:
    return VersionName(f"v{(number_of(version) or 0) + 1 if version else 1:06d}")
