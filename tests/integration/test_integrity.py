from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from tests.support.ingestion import a_plan, a_tree
from weft.catalog.catalog import Catalog
from weft.cli.main import main
from weft.domain.errors import CorruptionError
from weft.domain.ids import GenerationId
from weft.ingestion.pipeline import ingest
from weft.runtime.stages import HERE

FLIPS = 3
# An approximate index too, so that every kind of file is there; what it finds does not matter here.
WAYS = (
    "extraction.enabled=true",
    "ingest.unit_documents=90",
    "index.vectors.exact_below=10",
    "index.vectors.target_recall=0.1",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Catalog, GenerationId, GenerationId]:
    """A store with a previous and a live generation, both real."""
    folder = tmp_path_factory.mktemp("integrity")
    source = a_tree(folder, files=270)
    catalog = Catalog(folder / "store")
    plan = a_plan(source, catalog.root, *WAYS)
    previous = ingest(plan, catalog, HERE, lambda _: None, clock=time.monotonic).generation
    (source / "notes.md").write_text("# Notes\n\nAbout something new.\n")
    live = ingest(plan, catalog, HERE, lambda _: None, clock=time.monotonic).generation
    return catalog, previous, live


def _damaged(data: bytes, rng: random.Random) -> Iterator[bytes]:
    """One flipped bit at some places, the end cut off at others, and one byte too many."""
    for _ in range(FLIPS):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield bytes(flipped)
    yield data[: rng.randrange(len(data))]
    yield data[:-1]
    yield data + b"\0"


def test_damage_to_any_file_is_found_before_it_is_served(
    store: tuple[Catalog, GenerationId, GenerationId], capsys: pytest.CaptureFixture[str]
) -> None:
    """ARC-2: whatever happens to whichever file, the previous generation answers, and verifying names the file."""
    catalog, previous, live = store
    folder = catalog.folder_of(live)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    rng = random.Random(7)
    for path in files:
        whole = path.read_bytes()
        for data in _damaged(whole, rng):
            path.write_bytes(data)
            with pytest.raises(CorruptionError, match=path.name):
                catalog.verify(live)
        served = catalog.open_live()
        served.close()
        assert served.manifest.id == previous
        assert main(["generations", "verify", "live", "--store", str(catalog.root)]) == 1
        assert path.relative_to(folder).as_posix() in capsys.readouterr().err.replace("\n", "")
        path.write_bytes(whole)
    kinds = {path.relative_to(folder).parts[0] for path in files}
    names = {path.name for path in files}
    assert {"chunks", "text", "vectors", "manifest.json"} <= kinds
    assert {"documents.parquet", "texts.parquet", "mentions.parquet", "vectors.npy", "index.faiss"} <= names
    assert catalog.verify(live).id == live


def test_a_file_that_is_missing_or_foreign_is_named(store: tuple[Catalog, GenerationId, GenerationId]) -> None:
    """ARC-2: a generation holds exactly the files of its manifest."""
    catalog, _, live = store
    folder = catalog.folder_of(live)
    texts = folder / "chunks" / "texts.parquet"
    texts.rename(folder.parent / "aside")
    with pytest.raises(CorruptionError, match=r"texts\.parquet: .* found no file"):
        catalog.verify(live)
    (folder.parent / "aside").rename(texts)
    (folder / "chunks" / "more.parquet").write_bytes(b"x")
    with pytest.raises(CorruptionError, match=r"more\.parquet: expected no such file"):
        catalog.verify(live)
    (folder / "chunks" / "more.parquet").unlink()


def test_a_damaged_live_generation_is_built_anew(store: tuple[Catalog, GenerationId, GenerationId]) -> None:
    """ARC-2, ING-25: nothing is taken from damaged files; the same content is made and published again."""
    catalog, _, live = store
    plan = a_plan(catalog.root.parent / "tree", catalog.root, *WAYS)
    path = catalog.folder_of(live) / "chunks" / "chunks.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    mended = ingest(plan, catalog, HERE, lambda _: None, clock=time.monotonic)
    path.write_bytes(whole)
    assert (mended.published, mended.unchanged) == (True, 0)
    assert mended.content_hash == catalog.verify(live).content_hash
