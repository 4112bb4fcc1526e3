"""The page of requirements holds every id that is used, once, beside the test files that name it."""

from __future__ import annotations

from collections import Counter

from tests.support.requirements import PAGE, ROOT, ids_of, named_in, rendered, texts_of_tests

TEXT = PAGE.read_text("utf-8")
# The page itself is left out: it would hold its own ids.
NAMING = [
    ROOT / "README.md",
    *(file for file in sorted((ROOT / "docs").rglob("*.md")) if file != PAGE),
    *(file for folder in ("tests", "pipelines", "jobs") for file in sorted((ROOT / folder).rglob("*.py"))),
    *sorted((ROOT / "conf").rglob("*.yaml")),
]


def test_the_page_names_the_test_files_of_today() -> None:
    """OPS-1: a reader goes from a promise to its proof."""
    assert rendered(TEXT, texts_of_tests()) == TEXT, "docs/requirements.md is behind the tests: run `make requirements`"


def test_every_id_that_is_named_stands_in_the_table() -> None:
    """OPS-1: a reader of a test, a comment or a page can look its id up."""
    ids = set(ids_of(TEXT))
    missing = {str(file.relative_to(ROOT)): sorted(named_in(file.read_text("utf-8"), TEXT) - ids) for file in NAMING}
    assert {file: names for file, names in missing.items() if names} == {}, (
        "mend the id, or add its row to docs/requirements.md and run `make requirements`"
    )


def test_no_id_stands_twice() -> None:
    """OPS-1: one id, one promise."""
    twice = [identity for identity, times in Counter(ids_of(TEXT)).items() if times > 1]
    assert twice == [], "keep one row of each in docs/requirements.md and run `make requirements`"


def test_a_row_names_six_files_in_order_and_counts_the_others() -> None:
    """OPS-1: what no test names is open; a longer id does not count for a shorter one."""
    first, longer, other = "XYZ-1", "XYZ-10", "XYZ-1a"
    page = f"| {first} | A. | open |\n| {longer} | B. | `gone.py` |\n| {other} | C. | open |\n"
    files = {f"unit/test_{n}.py": f"{first}: yes" for n in reversed(range(8))} | {"laws/test_a.py": f"{other}: yes"}
    shown = ", ".join(f"`unit/test_{n}.py`" for n in range(6))
    assert rendered(page, files) == (
        f"| {first} | A. | {shown} and 2 more |\n| {longer} | B. | open |\n| {other} | C. | `laws/test_a.py` |\n"
    )
