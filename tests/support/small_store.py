"""A real generation of a few texts, without models and without a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.support.parts import ENCODER, embed, write_part
from weft.catalog.catalog import Catalog
from weft.domain.chunks import Chunk
from weft.domain.documents import Document
from weft.indexes.builder import GenerationBuilder
from weft.settings import load_settings


class DirectionEncoder:
    """The encoder that the parts are made with."""

    name = ENCODER

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([embed(text) for text in texts])


def published_store(root: Path, documents: Sequence[tuple[Document, list[Chunk]]]) -> Catalog:
    """A store in which a generation of these documents is live."""
    catalog = Catalog(root)
    part = write_part(root / "part", documents)
    staging = catalog.stage()
    builder = GenerationBuilder(staging, load_settings(environment={}).index)
    builder.build([part], {"created_at": 1e9, "models": {"encoder": ENCODER}})
    catalog.publish(staging, expected_parent=catalog.pointer().generation)
    return catalog
