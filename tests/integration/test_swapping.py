from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.parts import ENCODER, a_document, embed, write_part
from weft.catalog.catalog import Catalog
from weft.domain.documents import ContentType
from weft.domain.errors import CorruptionError
from weft.domain.ids import GenerationId
from weft.indexes.builder import GenerationBuilder
from weft.indexes.manifest import read_generation_manifest, seal
from weft.settings import load_settings

SWAPS, READERS = 50, 4


def staged(folder: Path, colour: str) -> Path:
    """A real generation whose every text names its colour."""
    part = write_part(
        folder / "part", [a_document(f"{n}.txt", f"{colour} text {n}", kind=ContentType.TEXT) for n in range(5)]
    )
    (folder / "staged").mkdir()
    GenerationBuilder(folder / "staged", load_settings(environment={}).index).build([part], {"created_at": 1.0})
    return folder / "staged"


def publish_copy(catalog: Catalog, original: Path, name: str, created_at: float) -> GenerationId:
    staging = catalog.stage()
    shutil.copytree(original, staging, dirs_exist_ok=True)
    changes = {"id": GenerationId(name), "created_at": created_at, "files": {}}
    manifest = read_generation_manifest(staging).model_copy(update=changes)
    (staging / "manifest.json").unlink()
    seal(staging, manifest)
    return catalog.publish(staging, expected_parent=catalog.pointer().generation)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {colour: staged(tmp_path_factory.mktemp(colour), colour) for colour in ("red", "blue")}


def test_readers_never_fail_nor_mix_generations(originals: dict[str, Path], tmp_path: Path) -> None:
    """ING-26, ARC-2: four readers over fifty swaps with pruning: none fails, none sees two generations at once."""
    catalog = Catalog(tmp_path)
    publish_copy(catalog, originals["red"], "red-000", 0.0)
    done = threading.Event()

    def read() -> list[tuple[str, set[str]]]:
        seen = []
        while not done.is_set():
            generation = catalog.open_live()
            rows = [row for row, _ in generation.lexical.search("text", 5)]
            rows += generation.dense(ENCODER).search(embed("text"), 5)[0][0].tolist()
            colours = {content.text.split()[0] for content in generation.chunks.contents(rows)}
            seen.append((generation.manifest.id, colours))
            generation.close()
        return seen

    with ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(read) for _ in range(READERS)]
        try:
            for number in range(1, SWAPS + 1):
                colour = ("red", "blue")[number % 2]
                publish_copy(catalog, originals[colour], f"{colour}-{number:03d}", float(number))
                catalog.prune(1)
        finally:
            done.set()
        seen = [item for reader in readers for item in reader.result()]
    assert all(colours == {name.partition("-")[0]} for name, colours in seen)
    assert len({name for name, _ in seen}) > 3  # readers did meet several generations


def test_a_damaged_live_generation_is_stood_in_for(
    originals: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """ARC-2: what differs from its manifest is never served; the one before it is, with the reason logged."""
    catalog = Catalog(tmp_path)
    for number, colour in enumerate(("red", "blue")):
        publish_copy(catalog, originals[colour], colour, float(number))
    vectors = tmp_path / "generations" / "blue" / "vectors" / ENCODER / "vectors.npy"
    vectors.write_bytes(vectors.read_bytes()[:-1] + b"?")
    assert catalog.open_live().manifest.id == "red"
    assert "vectors.npy: expected sha256" in caplog.text
    shutil.rmtree(tmp_path / "generations" / "red")
    with pytest.raises(CorruptionError, match=r"vectors\.npy"):
        catalog.open_live()
