from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.generations import publish
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.cli.main import main
from weft.domain.documents import Domain, Rejection
from weft.domain.ids import PRIORS_VERSION
from weft.domain.lesson import LessonResult
from weft.indexes.schemas import rejections_to_table
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.lessons.rows import outcome_bin
from weft.learning.uses import UsageKey
from weft.settings import load_settings


@pytest.fixture
def store(tmp_path: Path) -> Path:
    catalog = Catalog(tmp_path)
    for number, name in enumerate(("g1", "g2", "g3")):
        publish(catalog, name, created_at=float(number))
    return tmp_path


def weft(store: Path, *arguments: str) -> int:
    return main([*arguments, "--store", str(store)])


def test_generations_are_listed_with_the_live_one_marked(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ING-26: `weft generations list` shows every generation and which one is live."""
    assert weft(store, "generations", "list", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["id"], row["live"]) for row in rows] == [("g1", False), ("g2", False), ("g3", True)]
    assert weft(store, "generations", "list") == 0
    assert "previous" in capsys.readouterr().out


def test_rolling_back_by_command(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ING-26: `weft generations rollback` makes the named generation live."""
    assert weft(store, "generations", "rollback", "g1") == 0
    assert capsys.readouterr().out == "g1 is live, instead of g3\n"
    assert Catalog(store).pointer().generation == "g1"


def test_pruning_by_command(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ING-26: `weft generations prune` names what it removed."""
    assert weft(store, "generations", "prune", "--keep", "1") == 0
    assert capsys.readouterr().out == "removed g1\n"


def test_showing_and_verifying_the_live_one(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ING-26: `live` stands for the id of the live generation."""
    assert weft(store, "generations", "show", "live") == 0
    assert json.loads(capsys.readouterr().out)["id"] == "g3"
    assert weft(store, "generations", "verify", "live") == 0
    assert capsys.readouterr().out == "g3: 3 files are as they were written\n"


def test_what_was_rejected_is_listed_with_its_reason(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ING-26, OPS-11: of the live generation where none is named; a count by reason says of no file what it lacks."""
    rows = [Rejection("b.bin", "binary", "found a zero byte"), Rejection("a[red].md", "blank", "found \x1b[0m none")]
    pq.write_table(rejections_to_table(rows), store / "generations/g3/chunks/rejected.parquet")
    assert weft(store, "generations", "rejected", "--json") == 0
    assert [row["uri"] for row in printed_rows(capsys)] == ["a[red].md", "b.bin"]
    assert weft(store, "generations", "rejected", "live") == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["a[red].md", "blank", "found", "\N{REPLACEMENT CHARACTER}[0m", "none"]
    assert second.split()[:2] == ["b.bin", "binary"]
    assert weft(store, "generations", "rejected", "g9") == 1
    assert "found no g9" in capsys.readouterr().err


def test_damage_is_one_line_and_exit_code_1(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ARC-2: verification names the damaged file and fails the command."""
    (store / "generations/g3/vectors/words/vectors.npy").write_text("?")
    assert weft(store, "generations", "verify", "g3") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "vectors.npy: expected sha256" in line


@pytest.mark.parametrize(("arguments", "code"), [(("show", "none"), 1), (("rollback",), 2), (("prune",), 2)])
def test_what_cannot_be_done_says_why(store: Path, arguments: tuple[str, ...], code: int) -> None:
    """ING-26: a wrong id is refused with 1, wrong usage with 2."""
    assert weft(store, "generations", *arguments) == code


def test_a_place_that_cannot_be_read_is_a_reason_too(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-4: one line and exit code 1, whatever is wrong with the disk."""
    (store / "current.json").unlink()
    (store / "current.json").mkdir()
    assert weft(store, "generations", "list") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "Is a directory" in line


def test_a_family_that_is_none_is_refused(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-12: an empty table would say that nothing is believed."""
    assert weft(store, "learned", "show", "--family", "wait") == 2
    assert "'wait' is not one of" in capsys.readouterr().err
    assert weft(store, "learned", "show", "--family", "lesson") == 0  # of which nothing was said yet


def test_learned_versions_are_listed(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CON-9: `weft learned list` shows every version and which one is live."""
    catalog = Catalog(store)
    state = LearnedState(parent=None, evidence=Evidence(), cut=Evidence())
    version = catalog.learned.publish(state, expected_newest=None)
    assert weft(store, "learned", "list", "--json") == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["version"], one["live"]) for one in listed] == [(PRIORS_VERSION, True), (version, False)]
    catalog.make_live(version)
    assert weft(store, "learned", "list") == 0
    assert capsys.readouterr().out.splitlines()[2].split()[:2] == ["live", version]


@pytest.fixture
def learned(store: Path) -> Path:
    """A store with two learned versions: in the second, an agent's clicks and a lesson say something."""
    catalog = Catalog(store)
    first = catalog.learned.publish(
        LearnedState(parent=None, evidence=Evidence(), cut=Evidence()), expected_newest=None
    )
    at = (0, "code", "m", "a", "*")
    evidence = Evidence(
        {
            EvidenceKey(*at, "signal.vector.good", "for"): 50 * MICRO,
            EvidenceKey(*at, "decay", "20/4.inaccurate"): 9 * MICRO,
        },
        {
            UsageKey(0, "use-the-lock", outcome_bin(LessonResult.SUCCESS, "report"), name): MICRO
            for name in ("a", "b", "c")
        },
    )
    state = LearnedState(parent=first, evidence=evidence, cut=Evidence())
    catalog.make_live(catalog.learned.publish(state, expected_newest=first))
    return store


def printed_rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_everything_believed_is_shown(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-4, LRN-6 to LRN-10: every family, each with interval, observations, confidence and level."""
    assert weft(learned, "learned", "show", "v000002", "--json") == 0
    rows = printed_rows(capsys)
    families = {str(row["family"]) for row in rows}
    assert families == {
        "weight",
        "decay",
        "threshold",
        "lesson",
        "size",
        "examination",
    }  # nobody judged model or source
    by_key = {(row["family"], row["scope"], row["parameter"]): row for row in rows}
    lesson = by_key["lesson", "use-the-lock", "share of successes"]
    assert lesson["observations"] == 3.0
    assert load_settings(environment={}).priors.lessons.sources["other"] < lesson["mean"] < 1.0
    agent = by_key["weight", "code/m/a", "vector"]
    assert agent["observations"] > 0.0
    assert agent["low"] <= agent["mean"] <= agent["high"]
    assert weft(learned, "learned", "show", "v000002", "--family", "decay", "--scope", "code") == 0
    (_, line) = capsys.readouterr().out.splitlines()
    assert "half-life in hours" in line


def test_what_changed_between_two_versions_is_shown(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-12: the surest first; what is believed as before is left out."""
    assert weft(learned, "learned", "diff", "v000001", "v000002", "--json") == 0
    rows = printed_rows(capsys)
    sure = [row["certainty"] for row in rows]
    assert sure == sorted(sure, reverse=True)
    decay, *others = [row for row in rows if row["family"] == "decay"]
    assert decay["scope"] == "code"
    assert decay["after"] < decay["before"]
    assert len(others) == len(Domain) - 1  # they listen
    assert weft(learned, "learned", "diff", "v000001", "v000002", "--family", "lesson") == 0
    assert "nothing moved beyond chance" in capsys.readouterr().out
    assert weft(learned, "learned", "diff", "v000001", "priors", "--json") == 0
    assert printed_rows(capsys) == []
    changes = []
    for versions in ((), ("priors",), ("priors", "live")):
        assert weft(learned, "learned", "diff", *versions, "--json") == 0
        changes.append(printed_rows(capsys))
    assert changes[0] == changes[1] == changes[2] != []


def test_a_parameter_is_followed_over_versions(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LRN-6: from version to version, to what is live; an unknown one is refused."""
    arguments = ("half-life in hours", "--scope", "code", "--json")
    assert weft(learned, "learned", "history", *arguments) == 0
    rows = printed_rows(capsys)
    assert [row["version"] for row in rows] == ["v000001", "v000002", "live"]
    assert rows[1]["mean"] < rows[0]["mean"]
    assert weft(learned, "learned", "history", "colour") == 1
