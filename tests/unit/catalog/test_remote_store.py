"""SCL-4: a store in an object store, seen from several hosts."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.copies import Host, hosts_of, memory_url
from tests.support.generations import staged_generation
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.domain.errors import ConfigurationError, CorruptionError, StaleVersionError, StoreError
from weft.domain.ids import GenerationId
from weft.learning.evidence import Evidence
from weft.runtime.storage import working_copy
from weft.runtime.storage.working_copy import make_working_copy, place_of, working_copy_of


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(working_copy, "FOLLOW_S", 0.0)
    return hosts_of(memory_url(), tmp_path)


def published(catalog: Catalog, text: str = "one") -> GenerationId:
    parent = catalog.pointer().generation
    return catalog.publish(staged_generation(catalog, text), expected_parent=parent)


def objects_of(root: Path) -> list[str]:
    copy = working_copy_of(root)
    assert copy is not None
    return [each.key for each in copy.objects.list("")]
