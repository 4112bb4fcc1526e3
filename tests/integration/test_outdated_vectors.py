"""CON-7, CON-7a: a generation is trained anew where most of its contents are others than those it was trained on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.rebuilding import NOTES, index, settings_of
from weft.app.rebuilding import Rebuild, RebuildResult
from weft.catalog.catalog import Catalog
from weft.indexes.manifest import Manifest
from weft.runtime.stages import HERE

pytestmark = pytest.mark.integration


def live(catalog: Catalog) -> Manifest:
    return next(one for one in catalog.generations() if one.id == catalog.pointer().generation)


def trained_on(catalog: Catalog) -> float:
    (facts,) = live(catalog).dense.values()
    assert facts.kind == "ivfpq"
    return facts.trained_on


@pytest.mark.slow
def test_vectors_are_trained_anew_once_most_contents_are_others(tmp_path: Path) -> None:
    """CON-7: what stayed counts through all generations since; what is made holds the same contents; a rehearsal makes
    nothing, the next night has nothing to do, and what is rolled back is not made again.
    """
    settings, catalog = settings_of(tmp_path / "store"), Catalog(tmp_path / "store")
    rebuild = Rebuild(settings, executor=HERE)
    assert rebuild.rebuilt(may=True) == RebuildResult()
    for gone, share in ((0, 1.0), (100, 2 / 3), (200, (2 / 3) ** 2)):
        index(settings, tmp_path / "notes.parquet", range(gone, gone + NOTES))
        assert trained_on(catalog) == pytest.approx(share)
        found = rebuild.rebuilt(may=False)
        assert (found.changed, found.due) == (pytest.approx(1.0 - share), share < 0.5)
    before = live(catalog)
    never = Rebuild(settings_of(tmp_path / "store", "consolidation.rebuild.most_changed=1"), executor=HERE)
    assert not never.rebuilt(may=True).due

    made = rebuild.rebuilt(may=True)
    after = live(catalog)
    assert (made.as_step()["applied"], made.generation) == (1, after.id)
    assert (after.content_hash, after.counts, trained_on(catalog)) == (before.content_hash, before.counts, 1.0)
    changed = {Path(name).name for name in after.files if after.files[name] != before.files[name]}
    assert "index.faiss" in changed
    assert changed.isdisjoint({"vectors.npy", "chunks.parquet", "contents.parquet", "texts.parquet"})
    assert not rebuild.rebuilt(may=True).due

    catalog.rollback(before.id)
    declined = rebuild.rebuilt(may=True)
    assert (declined.declined, declined.due, catalog.pointer().generation) == (True, False, before.id)
