"""EVA-6, OPS-1: updaters beside a study or a demonstration."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.stores import BackgroundUpdaters, isolated_store
from tests.conftest import ROOT
from tests.support.ingestion import a_plan, a_tree
from weft.catalog.catalog import Catalog
from weft.domain.errors import BrokerUnavailableError
from weft.ingestion.pipeline import ingest
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.stages import HERE
from weft.settings import load_settings

_KILLED = """
import os, signal, sys
from lab.stores import isolated_store
from weft.settings import load_settings
with isolated_store(load_settings([], ["storage.root=" + sys.argv[1]], environment={})) as own:
    print(own.storage.root, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_study_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """EVA-6: a store is as large as its generation; those of running studies stay."""
    source, store = a_tree(tmp_path, files=2), tmp_path / "stores" / "one"
    ingest(a_plan(source, store), Catalog(store), HERE, lambda _: None, clock=time.monotonic)
    settings = load_settings([], [f"storage.root={store}"], environment={})
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(store)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    left = Path(killed.stdout.strip())
    assert (left / "current.json").is_file()
    with isolated_store(settings) as running, isolated_store(settings) as other:
        assert not left.exists()
        for own in (running, other):
            Catalog(Path(own.storage.root)).open_live().close()
    assert sorted(path.name for path in store.parent.iterdir()) == ["model", "one"]


@pytest.mark.timeout(60)
def test_a_broker_that_never_answers_ends_what_waits_for_it(tmp_path: Path) -> None:
    """OPS-1: `jobs.demo --bootstrap` with a port mistyped says so, instead of waiting for ever."""
    with EmbeddedBroker() as gone:
        address = gone.bootstrap
    assignments = ["feedback.unreachable_s=0.5", "kafka.connect_timeout_ms=500", f"kafka.bootstrap={address}"]
    settings = load_settings([], [*assignments, f"storage.root={tmp_path}"], environment={})
    with pytest.raises(BrokerUnavailableError, match="is the broker up"), BackgroundUpdaters(settings, local=True):
        pytest.fail("nothing was ever read")
