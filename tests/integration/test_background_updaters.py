"""EVA-6, OPS-1: updaters beside a study or a demonstration."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs._background import BackgroundUpdaters
from pipelines.domain.errors import BrokerUnavailableError
from pipelines.runtime.broker import EmbeddedBroker
from pipelines.settings import load_settings


@pytest.mark.timeout(60)
def test_a_broker_that_never_answers_ends_what_waits_for_it(tmp_path: Path) -> None:
    """OPS-1: `jobs.demo --bootstrap` with a port mistyped says so, instead of waiting for ever."""
    with EmbeddedBroker() as gone:
        address = gone.bootstrap
    assignments = ["feedback.unreachable_s=0.5", "kafka.connect_timeout_ms=500", f"kafka.bootstrap={address}"]
    settings = load_settings([], [*assignments, f"storage.root={tmp_path}"], environment={})
    with pytest.raises(BrokerUnavailableError, match="is the broker up"), BackgroundUpdaters(settings, local=True):
        pytest.fail("nothing was ever read")
