"""ARC-8: what few switch on is loaded by its name: without these modules all else works, and nothing imports them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from weft.cli.registry import COMMANDS

ROOT = Path(__file__).parents[2]
BY_NAME = {
    "weft.cli.commands.ubi": "the import of User Behavior Insights, a command",
    "weft.feedback.events.ubi": "its rules",
    "weft.consolidation.steps.providers": "who counts citations",
    "weft.embedding.encoders.sparse": "what weighs terms",
    "weft.indexes.text.impact": "what indexes these weights",
    "weft.retrieval.channels.sparse": "what searches them",
}
LIFE = """
import sys

for name in sys.argv[2:]:
    sys.modules[name] = None

from contextlib import closing
from pathlib import Path

from tests.support.feedback_events import NOON, explicit, impression, shown
from tests.support.feedback_source import FakeLog, FakeSource
from weft.app.indexing import plan_of, run
from weft.app.night import asking_night
from weft.app.searching.engines import opened
from weft.cli.registry import COMMANDS, load_command
from weft.consolidation.pipeline import consolidate
from weft.domain.ranking import Query
from weft.feedback.events.codec import encode
from weft.feedback.run.updater import Updater
from weft.runtime.kafka.log import Record
from weft.runtime.stages import HERE
from weft.settings import load_settings

root = Path(sys.argv[1])
settings = load_settings([], [f"storage.root={root / 'store'}", "extraction.enabled=false"], environment={})
run(plan_of(settings, [root / "source"]), watch=lambda _: None, executor=HERE)
with opened(settings) as searcher:
    print(searcher.search(Query(text="where are offsets committed", k=1)).results[0].uris[0])
events = [impression(results=[shown(1), shown(2)]), explicit(1.0)]
records = [Record(0, at, NOON, b"s", encode(event)) for at, event in enumerate(events)]
with closing(Updater.open(FakeSource(FakeLog.of(records)), root / "store", [0], settings.feedback)) as updater:
    while updater.step(0.0):
        pass
    updater.publish()
    print(sum(each.report.applied for each in updater.progress()))
with asking_night(settings) as night:
    print(consolidate(night)["learned"])
for name in COMMANDS:
    if name != "ubi":
        load_command(name)
"""


@pytest.mark.slow
@pytest.mark.integration
def test_without_them_a_store_is_indexed_searched_updated_and_consolidated(tmp_path: Path) -> None:
    """ARC-8, RET-7, CIT-1, FBK-2: whatever does not name them does without."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "offsets.md").write_text("# Offsets\n\nKafka offsets are committed with the evidence.\n")
    (source / "fruit.md").write_text("# Fruit\n\nBananas are yellow when they are ripe.\n")
    command = [sys.executable, "-c", LIFE, str(tmp_path), *BY_NAME]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["source/offsets.md", "2", "v000001"]


def test_nothing_imports_them() -> None:
    """ARC-8: but one of them another."""
    importers: dict[str, set[str]] = {name: set() for name in BY_NAME}
    for path in (ROOT / "pipelines" / "weft").rglob("*.py"):
        own = ".".join(path.relative_to(ROOT / "pipelines").with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in importers:
                importers[node.module].add(own)
    assert {name: by for name, by in importers.items() if by - BY_NAME.keys()} == {}
    assert f"weft.cli.{COMMANDS['ubi'].place.partition(':')[0]}" in BY_NAME
