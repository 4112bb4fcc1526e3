"""Learned versions: evidence, calibration and policy as one immutable, numbered whole (CON-9)."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError

from weft.catalog.pointer import PointerFile
from weft.catalog.staging import StagingArea
from weft.domain.errors import CorruptionError, StaleVersionError, StoreError
from weft.domain.ids import PRIORS_VERSION, VersionName
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.calibration.scores import ScoreCalibration
from weft.learning.edges import NO_EDGES, LearnedEdges
from weft.learning.evidence import SCHEMA, TEXTS_BY_NUMBER, Evidence
from weft.learning.pooling.fitted import FittedWeights
from weft.learning.thinned import NOTHING_THINNED, Thinned, thinned_of, thinned_table
from weft.runtime.storage.errors import named, refused
from weft.runtime.storage.files import (
    file_hashes,
    read_manifest,
    sync_folder,
    sync_tree,
    verify_files,
    write_manifest,
)
from weft.runtime.storage.parquet import read_parquet

EVIDENCE_FILE = "evidence.parquet"
CUT_FILE = "cut.parquet"
CALIBRATION_FILE = "calibration.json"
FITTED_FILE = "fitted.json"
ALIASES_FILE = "aliases.parquet"
EDGES_FILE = "edges.parquet"
THINNED_FILE = "thinned.parquet"
FORMAT = 1

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedState:
    """What a night learned."""

    parent: VersionName | None  # the version it was built on, None for the first
    evidence: Evidence  # the base that searches read together with what is streamed since
    cut: Evidence  # the sum of the updaters' snapshots when it was cut
    calibration: ScoreCalibration | None = None  # from score to P(good), None while outcomes are too few
    # weights fitted to logged outcomes, of the domains in which they go live; None where there are none
    fitted: FittedWeights | None = None
    aliases: ContentAliases = NO_ALIASES  # contents that stand for one another (CON-2)
    edges: LearnedEdges = NO_EDGES  # between contents, found by nights (CON-3, CON-4)
    thinned: Thinned = NOTHING_THINNED  # contents that searches of everything pass over (CON-5)
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


class LearnedStore:
    """The folder `learned/` of a store. Versions are numbered in the order of publishing."""

    def __init__(self, root: Path, pointer: PointerFile) -> None:
        self._folder = root / "learned"
        self._pointer = pointer
        self.staging = StagingArea(self._folder)

    def publish(self, state: LearnedState, *, expected_newest: VersionName | None) -> VersionName:
        """Write a version; it is not live before it is made so.

        Raises:
            StaleVersionError: Another version was published meanwhile; cut again.
        """
        staging = self.staging.stage()
        try:
            with named(staging):
                write_tables(staging, state)
            with self._pointer.writing():
                newest = self.newest()
                if newest != expected_newest:
                    raise StaleVersionError(
                        f"expected {expected_newest or 'nothing'} to be the newest learned version, found "
                        f"{newest or 'nothing'}: start `python -m jobs.consolidate` anew, which builds on that one"
                    )
                version = _following(newest)
                write_manifest(staging, _manifest(version, state, file_hashes(staging)).model_dump(mode="json"))
                sync_tree(staging)
                staging.rename(self._folder / version)
                sync_folder(self._folder)
        finally:
            self.staging.release(staging)
        return version

    def read(self, version: VersionName) -> LearnedState:
        """A version, verified; errors as in `manifest`, and CorruptionError where a file differs from it.

        The priors' has nothing to read: no evidence, and no cut.
        """
        if version == PRIORS_VERSION:
            return NOTHING_LEARNED
        manifest = self.manifest(version)
        folder = self.folder_of(version)
        verify_files(folder, manifest.files)
        return LearnedState(
            parent=manifest.parent,
            evidence=read_evidence(folder / EVIDENCE_FILE),
            cut=read_evidence(folder / CUT_FILE),
            calibration=_read(folder / CALIBRATION_FILE, ScoreCalibration.from_json),
            fitted=_read(folder / FITTED_FILE, FittedWeights.from_json),
            aliases=_read_table(folder / ALIASES_FILE, ContentAliases.from_table, NO_ALIASES),
            edges=_read_table(folder / EDGES_FILE, LearnedEdges.from_table, NO_EDGES),
            thinned=_read_table(folder / THINNED_FILE, thinned_of, NOTHING_THINNED),
            priors=manifest.priors,
            policy=manifest.policy,
            provenance=manifest.provenance,
            mlflow_run_id=manifest.mlflow_run_id,
            created_at=manifest.created_at,
        )

    def manifest(self, version: VersionName) -> LearnedManifest:
        """The manifest of a version.

        Raises:
            StoreError: There is no such version.
            CorruptionError: It is damaged or of another format.
        """
        if _number(version) is None:
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
        return self._folder / version

    def versions(self) -> list[VersionName]:
        """Every version that was published, oldest first; that of the priors was not."""
        names = [VersionName(path.name) for path in self._folder.glob("v*") if path.is_dir()]
        numbered = [(number, name) for name in names if (number := _number(name)) is not None]
        return [name for _, name in sorted(numbered)]

    def newest(self) -> VersionName | None:
        """The version published last, None before the first."""
        return next(reversed(self.versions()), None)


def read_evidence(path: Path) -> Evidence:
    """The evidence in a Parquet file.

    Raises:
        CorruptionError: The file is not what was written.
        FileNotFoundError: There is none.
        DiskError: It is there and cannot be read.
    """
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


def _read_table(path: Path, reader: Callable[[pa.Table], Part], absent: Part) -> Part:
    if not path.exists():
        return absent
    try:
        return reader(read_parquet(path))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, StoreError) as error:
        raise CorruptionError(f"{path}: expected what was written, found: {error}; roll back") from error


def write_evidence(path: Path, evidence: Evidence) -> None:
    """Write what `read_evidence` reads."""
    with pq.ParquetWriter(path, SCHEMA, write_page_checksum=True) as writer:
        for table in evidence.tables():
            writer.write_table(table)


def write_tables(folder: Path, state: LearnedState) -> None:
    """Write all that a version holds but its manifest."""
    for name, evidence in ((EVIDENCE_FILE, state.evidence), (CUT_FILE, state.cut)):
        write_evidence(folder / name, evidence)
    if len(state.aliases):
        pq.write_table(state.aliases.to_table(), folder / ALIASES_FILE, write_page_checksum=True)
    if len(state.edges):
        pq.write_table(state.edges.to_table(), folder / EDGES_FILE, write_page_checksum=True)
    if state.thinned:
        pq.write_table(thinned_table(state.thinned), folder / THINNED_FILE, write_page_checksum=True)
    if state.calibration is not None:
        (folder / CALIBRATION_FILE).write_text(state.calibration.to_json(), encoding="utf-8")
    if state.fitted is not None:
        (folder / FITTED_FILE).write_text(state.fitted.to_json(), encoding="utf-8")


def _read(path: Path, reader: Callable[[str], Part]) -> Part | None:
    return reader(path.read_text(encoding="utf-8")) if path.exists() else None


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


def _number(version: str) -> int | None:
    digits = version.removeprefix("v")
    return int(digits) if version.startswith("v") and digits.isascii() and digits.isdigit() else None


def _following(version: VersionName | None) -> VersionName:
    return VersionName(f"v{(_number(version) or 0) + 1 if version else 1:06d}")
