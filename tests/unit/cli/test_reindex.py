from __future__ import annotations

from pathlib import Path

import pytest

from weft.cli.commands.reindex import headline, keep_record, plan_of, reindex
from weft.cli.console.options import run_job
from weft.domain.errors import ConfigurationError
from weft.domain.ids import GenerationId
from weft.ingestion.report import IndexOutcome, IndexProgress
from weft.settings import load_settings


def test_progress_adds_up_over_units() -> None:
    """ING-27: counts, rates, rejects and the time left come from the units done."""
    progress = IndexProgress("embedding", total=10, begun=100.0, now=100.0)
    progress = progress.after({"chunks": 6, "rejected:binary": 1}, now=102.0)
    progress = progress.after({"chunks": 4, "rejected:binary": 2, "rejected:blank": 1}, now=104.0)
    assert progress.rate("chunks") == pytest.approx((6 + 4) / 4.0)
    assert progress.rejected == {"binary": 3, "blank": 1}
    assert progress.seconds_left == pytest.approx(4.0 / 2 * (10 - 2))


def test_a_run_without_sources_is_refused(tmp_path: Path) -> None:
    """OPS-3: what is missing is named; a store that keeps its texts needs none, so this one is new."""
    with pytest.raises(ConfigurationError, match="--source"):
        plan_of(load_settings([], [f"storage.root={tmp_path}"], environment={}), [])


def an_outcome(*, published: bool = True) -> IndexOutcome:
    facts = dict.fromkeys(("documents", "chunks", "entities", "embedded", "embedding_cache_hits"), 1)
    more = dict.fromkeys(("extracted", "entity_cache_hits", "skipped", "unchanged"), 0)
    empty: dict[str, dict[str, int]] = {name: {} for name in ("rejected", "by_type", "by_domain", "by_language")}
    return IndexOutcome(
        generation=GenerationId("g"), content_hash="h", published=published, seconds=1.0, **facts, **more, **empty
    )


def test_a_run_that_cannot_be_recorded_says_why(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """OPS-7: a generation that was removed before its run was recorded leaves a line, and the job ends well."""
    settings = load_settings([], [f"storage.root={tmp_path}"], environment={})
    keep_record(settings, plan_of(settings, [tmp_path]), an_outcome())
    assert caplog.messages == ["this run is not recorded in MLflow: its generation was removed meanwhile"]


def test_the_last_line_says_whether_something_changed() -> None:
    """ING-26: content that is live already is not published again, and the run says so."""
    headlines = [headline(an_outcome(published=new)) for new in (True, False)]
    assert headlines[0] != headlines[1]
    assert all("generation g" in line for line in headlines)


@pytest.mark.parametrize("option", ["--source", "--store"])
def test_an_empty_path_is_wrong_usage(tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-3: a variable without a value must not index the working directory, nor make a store of it."""
    other = {"--source": "--store", "--store": "--source"}[option]
    assert run_job(reindex, [other, str(tmp_path), option, ""]) == 2
    assert option in capsys.readouterr().err
    assert run_job(reindex, ["", "--store", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []
