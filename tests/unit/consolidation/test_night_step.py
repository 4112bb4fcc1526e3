"""CON-1, ARC-8: a night step is one file and one line; what it learns is a part of the version like any other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from tests.support.consolidating import the_ui, unmoved
from tests.support.nights import a_day, stream
from weft.app.night import JUDGING
from weft.catalog import learned as stored
from weft.catalog.catalog import Catalog
from weft.consolidation.champion import CHAMPION, follow_champion
from weft.consolidation.night import Night, NightContext, StepResult, When
from weft.consolidation.pipeline import consolidate
from weft.learning.parts import PartChange, PartChanges
from weft.runtime.clock import SECONDS_PER_DAY
from weft.runtime.mlflow.tracking import Tracking
from weft.settings import load_settings

pytestmark = pytest.mark.integration

SETTINGS = load_settings(environment={})
DAY = 20_000


@dataclass(frozen=True)
class Mottos:
    """What contents are to be remembered by."""

    name: ClassVar[str] = "mottos"
    by_content: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.by_content)

    def to_table(self) -> pa.Table:
        return pa.table({"motto": pa.array(self.by_content, pa.string())})

    @classmethod
    def from_table(cls, table: pa.Table) -> Mottos:
        return cls(tuple(table["motto"].to_pylist()))

    def changes(self, before: Mottos | None) -> PartChanges:
        return PartChanges.between(*(self._stated(each) for each in (before, self)))

    @staticmethod
    def _stated(mottos: Mottos | None) -> Iterable[PartChange]:
        return () if mottos is None else (PartChange(each, "a motto") for each in mottos.by_content)


class FindMottos:
    """A night step: one class."""

    name: ClassVar[str] = "mottos"
    says: ClassVar[str] = "looking for mottos"
    when: ClassVar[When] = When.FRESH

    def run(self, context: NightContext) -> StepResult:
        masses = len(context.learned.evidence.counts)
        mottos = Mottos(("less is more", f"{masses} masses"))
        return StepResult(
            part=mottos,
            counts={"weighed": masses},
            examples=[{"motto": each} for each in mottos.by_content],
            note="two mottos",
        )


def test_a_night_step_is_one_file_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CON-1, ARC-8: its part is stored and read back, in summary and report, and a roll-back takes it away."""
    monkeypatch.setattr(stored, "PARTS", (*stored.PARTS, Mottos))  # the line by which a part is read back
    stream(tmp_path, 0, a_day(DAY))
    merging, *others = JUDGING
    plain = Night(
        catalog=Catalog(tmp_path),
        tracking=Tracking.of(SETTINGS.tracking, tmp_path),
        settings=SETTINGS,
        steps=JUDGING,
        now=(DAY + 2.5) * SECONDS_PER_DAY,
        shadow=unmoved,
    )
    first = consolidate(plain)["learned"]
    announced: list[str] = []
    night = replace(
        plain,
        steps=[merging, FindMottos(), *others],  # and the line by which it is done
        announce=lambda step: announced.append(f"{step.name}: {step.says}"),
    )
    summary = consolidate(night)
    learned, counts = summary["learned"], summary["steps"]["mottos"]
    assert learned != first  # nothing new was heard, and what is tended is other
    assert (counts["proposed"], counts["applied"]) == (2, 2)
    assert "mottos: looking for mottos" in announced

    mottos = Catalog(tmp_path).learned.read(learned).part(Mottos)
    assert mottos == Mottos(("less is more", f"{counts['weighed']:.0f} masses"))
    assert "mottos.parquet" in night.catalog.learned.manifest(learned).files
    assert night.catalog.learned.read(first).part(Mottos) is None

    run = the_ui(night).get_run(summary["run"])
    folder = Path(run.info.artifact_uri.removeprefix("file://"))
    assert run.data.metrics["steps/mottos/proposed"] == 2
    assert "- mottos: two mottos; see `tables/mottos.csv`" in run.data.tags["mlflow.note.content"]
    assert pa_csv.read_csv(folder / "tables" / "mottos.csv")["motto"].to_pylist() == list(mottos.by_content)
    assert "less is more" in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "learned" / "mottos.parquet").exists()

    assert consolidate(night)["decision"] == "nothing new"
    night.tracking.set_alias(CHAMPION, first)
    follow_champion(night.catalog, night.tracking)
    assert night.catalog.pointer().learned == first
    assert consolidate(night)["decision"] == "nothing new"  # what was taken back is not proposed at once again
