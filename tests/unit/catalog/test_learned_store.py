from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState, read_evidence
from weft.domain.errors import CorruptionError, StaleVersionError, StoreError
from weft.domain.ids import VersionName
from weft.learning.calibration.scores import Isotonic, ScoreCalibration
from weft.learning.evidence import Evidence
from weft.learning.parts import parts_of
from weft.learning.uses import UsageKey
from weft.runtime.storage.files import write_atomically


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "store")


def used(count: int, day: int = 20_000) -> Evidence:
    return Evidence(usage={UsageKey(day, "ab" * 32, "positive"): count})


def stream(catalog: Catalog, partition: int, evidence: Evidence) -> None:
    path = catalog.root / "updaters" / str(partition) / "evidence.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(evidence.to_table().replace_schema_metadata({"weft.offset": "7"}), path.with_suffix(".new"))
    write_atomically(path, path.with_suffix(".new").read_bytes())


def night(catalog: Catalog, *, live: bool = True) -> VersionName:
    """Fold what is live into a new version, as consolidation does."""
    versions = catalog.learned.versions()
    newest = versions[-1] if versions else None
    state = LearnedState(
        parent=catalog.pointer().learned, evidence=catalog.live.evidence(), cut=catalog.live.streamed_reach()[0]
    )
    version = catalog.learned.publish(state, expected_newest=newest)
    if live:
        catalog.make_live(version)
    return version


def test_a_learned_version_comes_back_as_it_was(catalog: Catalog) -> None:
    """CON-9: evidence, cut, calibration, policy and provenance of a version are kept exactly."""
    state = LearnedState(
        parent=None,
        evidence=used(7),
        cut=used(3),
        parts=parts_of(ScoreCalibration(Isotonic(scores=(0.0, 1.0), probabilities=(0.25, 0.75)))),
        priors="p",
        policy={"fusion": "rrf"},
        provenance={"observations": 12},
        mlflow_run_id="run",
        created_at=1e9,
    )
    version = catalog.learned.publish(state, expected_newest=None)
    assert catalog.learned.read(version) == state
    assert catalog.pointer().learned is None  # publishing is not going live
    assert catalog.learned.manifest(version).digest == used(7).digest()


def test_live_evidence_without_a_version_is_what_was_streamed(catalog: Catalog) -> None:
    """FBK-7: a store that never consolidated learns from its updaters alone."""
    stream(catalog, 0, used(5))
    stream(catalog, 1, used(2, day=20_001))
    assert catalog.live.evidence() == used(5) + used(2, day=20_001)


def test_a_copy_of_a_partition_does_not_count(catalog: Catalog) -> None:
    """LRN-1: whoever keeps a copy of `updaters/0` beside it, before mending something, does not teach it all twice."""
    stream(catalog, 0, used(1))
    folder = catalog.root / "updaters" / "0"
    shutil.copytree(folder, folder.with_name("0.copy"))
    assert catalog.live.evidence() == catalog.live.streamed_reach()[0] == used(1)


def test_a_night_changes_nothing_that_is_known(catalog: Catalog) -> None:
    """LRN-1: moving evidence from the stream into the base keeps the sum."""
    stream(catalog, 0, used(5))
    night(catalog)
    assert catalog.live.evidence() == used(5)
    stream(catalog, 0, used(9))
    assert catalog.live.evidence() == used(9)


def test_rolling_back_takes_exactly_that_night_out(catalog: Catalog) -> None:
    """CON-9: what the rolled-back night folded is gone, what came before and after stays."""
    stream(catalog, 0, used(5))
    first = night(catalog)
    stream(catalog, 0, used(5 + 20))  # the second night's 20
    night(catalog)
    stream(catalog, 0, used(5 + 20 + 3))
    assert catalog.live.evidence() == used(28)
    catalog.make_live(first)
    assert catalog.live.evidence() == used(5 + 3)


def test_a_version_that_waits_changes_nothing(catalog: Catalog) -> None:
    """CON-9, FBK-7: what is streamed counts until a version that holds it was live, and then only through it."""
    stream(catalog, 0, used(5))
    first = night(catalog)
    stream(catalog, 0, used(5 + 20))
    second = night(catalog, live=False)
    assert catalog.live.evidence() == used(25)
    catalog.make_live(second)
    assert catalog.live.evidence() == used(25)
    catalog.make_live(first)
    assert catalog.live.evidence() == used(5)


def test_a_version_cut_beside_another_is_refused(catalog: Catalog) -> None:
    """CON-9: two nights at once would count the same evidence twice."""
    night(catalog)
    with pytest.raises(StaleVersionError, match="found v000001"):
        catalog.learned.publish(LearnedState(parent=None, evidence=used(1), cut=used(1)), expected_newest=None)
    assert catalog.learned.versions() == ["v000001"]
    assert not list((catalog.root / "learned").glob(".staging*"))


def test_a_damaged_live_version_falls_back_to_its_parent(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    """ARC-2: a file that differs from its manifest is never served; searches go on with what is sound."""
    stream(catalog, 0, used(5))
    night(catalog)
    stream(catalog, 0, used(25))
    second = night(catalog)
    path = catalog.root / "learned" / second / "evidence.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    fresh = Catalog(catalog.root)
    assert fresh.live.evidence() == used(5)
    assert "evidence.parquet" in caplog.text
    with pytest.raises(CorruptionError, match=r"evidence\.parquet"):
        fresh.make_live(second)


@pytest.mark.parametrize("name", ["v9", "v000009", "../learned", "latest"])
def test_an_unknown_version_is_named(catalog: Catalog, name: str) -> None:
    """CON-9: an alias that names nothing of this store changes nothing."""
    with pytest.raises(StoreError):
        catalog.make_live(VersionName(name))


def test_the_token_moves_with_everything_that_live_evidence_depends_on(catalog: Catalog) -> None:
    """FBK-7: readers know when to read again without reading."""
    seen = [catalog.live.token()]
    for step in (
        lambda: stream(catalog, 0, used(1)),
        lambda: stream(catalog, 0, used(2)),
        lambda: night(catalog),
    ):
        step()
        seen.append(catalog.live.token())
    assert len(set(seen)) == len(seen)
    assert catalog.live.token() == seen[-1]


def test_a_damaged_snapshot_is_reported(catalog: Catalog) -> None:
    """ARC-2: garbage in the place of a snapshot is an error that names the file."""
    stream(catalog, 0, used(1))
    (catalog.root / "updaters/0/evidence.parquet").write_bytes(b"PAR1 garbage")
    with pytest.raises(CorruptionError, match=r"updaters/0/evidence\.parquet"):
        catalog.live.evidence()


def test_evidence_that_cannot_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    """ARC-2: nor is what is not there; a folder in a file's place stands for any failure to read."""
    path = tmp_path / "evidence.parquet"
    with pytest.raises(FileNotFoundError):
        read_evidence(path)
    path.mkdir()
    with pytest.raises(StoreError, match="expected to read and write it") as raised:
        read_evidence(path)
    assert not isinstance(raised.value, CorruptionError)
    path.rmdir()
    path.write_bytes(b"PAR1 and nothing that belongs there PAR1")
    with pytest.raises(CorruptionError, match="expected evidence"):
        read_evidence(path)


def test_old_versions_go_and_what_matters_stays(catalog: Catalog) -> None:
    """OPS-12: beyond the newest ones go; never what is live, what was live last, or what waits for its verdict."""
    versions = []
    for day in range(6):
        stream(catalog, 0, used(day + 1))
        versions.append(night(catalog))
    catalog.make_live(versions[1])  # somebody rolls back
    waiting = night(catalog, live=False)
    before = catalog.live.evidence()
    assert catalog.learned.prune(1) == [versions[0], *versions[2:5]]
    assert catalog.learned.versions() == [versions[1], versions[5], waiting]
    assert catalog.live.evidence() == before
    assert catalog.learned.prune(1) == []


def test_nothing_goes_before_a_version_was_live(catalog: Catalog) -> None:
    """OPS-12: what waits may be the only one that holds what was learned."""
    stream(catalog, 0, used(1))
    waiting = night(catalog, live=False)
    assert catalog.learned.prune(1) == []
    assert catalog.learned.versions() == [waiting]
