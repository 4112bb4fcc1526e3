"""Sealed folders that stand for generations where nothing is searched: a catalog reads only their manifests."""

from __future__ import annotations

from pathlib import Path

from weft.catalog.catalog import Catalog
from weft.domain.ids import GenerationId
from weft.indexes.manifest import Manifest, seal
from weft.settings import load_settings


def a_staged_generation(catalog: Catalog, name: str, *, created_at: float = 0.0) -> Path:
    """A staged folder of three files that say `name`, sealed."""
    staging = catalog.stage()
    for file in ("chunks/chunks.parquet", "vectors/words/vectors.npy", "text/lucene/segments_1"):
        (staging / file).parent.mkdir(parents=True, exist_ok=True)
        (staging / file).write_text(name)
    seal(staging, a_manifest(name, created_at))
    return staging


def publish(catalog: Catalog, name: str, *, created_at: float = 0.0) -> GenerationId:
    """Stage and publish on top of whatever is live."""
    parent = catalog.pointer().generation
    return catalog.publish(a_staged_generation(catalog, name, created_at=created_at), expected_parent=parent)


def a_manifest(name: str, created_at: float = 0.0) -> Manifest:
    """The manifest of an empty generation."""
    return Manifest(
        id=GenerationId(name),
        parent=None,
        content_hash=name,
        created_at=created_at,
        counts={},
        settings="",
        models={},
        dense={},
        lexical=load_settings(environment={}).index.lexical,
        facts={},
        files={},
    )
