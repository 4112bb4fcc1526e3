from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.generations import a_staged_generation, publish
from weft.catalog.catalog import Catalog
from weft.domain.errors import CorruptionError, NothingPublishedError, StaleVersionError, StoreError
from weft.domain.ids import GenerationId

pytestmark = pytest.mark.integration


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "store")


def test_publishing_makes_a_generation_live_and_counts(catalog: Catalog) -> None:
    """ING-26: the pointer names the published generation, counts every move and remembers the one before."""
    publish(catalog, "g1")
    publish(catalog, "g2")
    pointer = catalog.pointer()
    assert (pointer.generation, pointer.previous, pointer.sequence) == ("g2", "g1", 2)
    assert json.loads((catalog.root / "current.json").read_text())["generation"] == "g2"


def test_nothing_of_the_staging_remains(catalog: Catalog) -> None:
    """ING-26: what is published was renamed, not copied."""
    publish(catalog, "g1")
    assert [path.name for path in (catalog.root / "generations").iterdir()] == ["g1"]


def test_a_build_that_was_overtaken_is_refused(catalog: Catalog) -> None:
    """ARC-2: publishing is compare-and-set; the error names expected and found."""
    publish(catalog, "g1")
    late = a_staged_generation(catalog, "late")
    publish(catalog, "g2")
    with pytest.raises(StaleVersionError, match="expected g1 to be live, found g2"):
        catalog.publish(late, expected_parent=GenerationId("g1"))
    assert catalog.pointer().generation == "g2"


def test_a_staged_file_that_changed_is_not_published(catalog: Catalog) -> None:
    """ARC-2: verified against the manifest before anything becomes visible."""
    staging = a_staged_generation(catalog, "g1")
    (staging / "chunks/chunks.parquet").write_text("other")
    with pytest.raises(CorruptionError, match=r"chunks\.parquet: expected sha256"):
        catalog.publish(staging, expected_parent=None)
    assert catalog.pointer().generation is None


def test_every_flipped_bit_is_found(catalog: Catalog) -> None:
    """ARC-2: one bit in any file of a generation, its manifest included, fails verification."""
    name = publish(catalog, "g1")
    folder = catalog.root / "generations" / name
    for path in (path for path in sorted(folder.rglob("*")) if path.is_file()):
        data = path.read_bytes()
        for bit in range(0, 8 * len(data), 29 if path.name == "manifest.json" else 1):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            with pytest.raises(CorruptionError):
                catalog.verify(name)
        path.write_bytes(data)
    assert catalog.verify(name).id == name


@pytest.mark.parametrize("change", ["remove", "add"])
def test_missing_and_foreign_files_are_found(catalog: Catalog, change: str) -> None:
    """ARC-2: a generation holds exactly the files of its manifest."""
    name = publish(catalog, "g1")
    segments = catalog.root / "generations" / name / "text/lucene/segments_1"
    segments.unlink() if change == "remove" else segments.with_name("segments_2").write_text("")
    with pytest.raises(CorruptionError, match="segments_"):
        catalog.verify(name)


def test_rolling_back_makes_an_older_generation_live(catalog: Catalog) -> None:
    """ARC-2: roll-back is making an older version current."""
    for name in ("g1", "g2", "g3"):
        publish(catalog, name)
    assert catalog.rollback(GenerationId("g1")).generation == "g1"
    assert catalog.pointer().previous == "g3"


def test_rolling_back_to_damage_changes_nothing(catalog: Catalog) -> None:
    """ARC-2: a file that does not match its manifest is never served."""
    publish(catalog, "g1")
    publish(catalog, "g2")
    (catalog.root / "generations/g1/chunks/chunks.parquet").write_text("")
    with pytest.raises(CorruptionError):
        catalog.rollback(GenerationId("g1"))
    assert catalog.pointer().generation == "g2"


@pytest.mark.parametrize("name", ["none", "../g1", ".staging-1", ""])
def test_a_generation_that_is_not_there_is_named(catalog: Catalog, name: str) -> None:
    """ING-26: a wrong id is an error that says so, and never leads out of the folder."""
    publish(catalog, "g1")
    with pytest.raises(StoreError):
        catalog.rollback(GenerationId(name))


def test_pruning_spares_the_live_one_and_the_one_before(catalog: Catalog) -> None:
    """ING-26: prune removes old generations, never what is or was just served."""
    for number in range(6):
        publish(catalog, f"g{number}", created_at=float(number))
    catalog.rollback(GenerationId("g1"))
    assert catalog.prune(1) == ["g0", "g2", "g3", "g4"]
    assert [manifest.id for manifest in catalog.generations()] == ["g1", "g5"]


def test_an_empty_store_says_what_to_do(catalog: Catalog) -> None:
    """ING-26: nothing published is its own error."""
    with pytest.raises(NothingPublishedError, match="weft index"):
        catalog.open_live()


def test_a_pointer_that_is_none_is_refused(catalog: Catalog) -> None:
    """ARC-2: a damaged pointer is reported, not guessed around."""
    publish(catalog, "g1")
    (catalog.root / "current.json").write_text("[]")
    with pytest.raises(CorruptionError, match=r"current\.json"):
        catalog.pointer()


def test_leftovers_of_the_dead_are_cleaned_and_those_of_the_living_stay(catalog: Catalog) -> None:
    """ING-26: a killed run's leftovers are cleaned by the next; a running one keeps its folder."""
    alive = catalog.stage()
    folder = catalog.root / "generations"
    stage_and_die = "; ".join(
        (
            "import sys, pathlib",
            "from weft.catalog.staging import StagingArea",
            "StagingArea(pathlib.Path(sys.argv[1])).stage()",
        )
    )
    subprocess.run([sys.executable, "-c", stage_and_die, str(folder)], check=True)
    assert len(Catalog(catalog.root).clean_leftovers()) == 1
    assert [path for path in folder.iterdir() if path.is_dir()] == [alive]
