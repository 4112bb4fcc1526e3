"""The page of requirements holds every id that is used, once, beside the test files that name it."""

from __future__ import annotations

from collections import Counter

from tests.support.requirements import PAGE, ROOT, ids_of, named_in, rendered, texts_of_tests, unbuilt

TEXT = PAGE.read_text("utf-8")
# The page itself is left out: it would hold its own ids.
NAMING = [
    ROOT / "README.md",
    *(file for file in sorted((ROOT / "docs").rglob("*.md")) if file != PAGE),
    *(file for folder in ("tests", "pipelines", "jobs") for file in sorted((ROOT / folder).rglob("*.py"))),
    *sorted((ROOT / "conf").rglob("*.yaml")),
]


def test_the_page_names_the_test_files_of_today() -> None:
    """A reader goes from a promise to its proof."""
    assert rendered(TEXT, texts_of_tests()) == TEXT, "docs/requirements.md is behind the tests: run `make requirements`"


def test_every_id_that_is_named_stands_in_the_table() -> None:
    """A reader of a test, a comment or a page can look its id up."""
    ids = set(ids_of(TEXT))
    missing = {str(file.relative_to(ROOT)): sorted(named_in(file.read_text("utf-8"), TEXT) - ids) for file in NAMING}
    assert {file: names for file, names in missing.items() if names} == {}, (
        "mend the id, or add its row to docs/requirements.md and run `make requirements`"
    )


def test_no_id_stands_twice() -> None:
    """One id, one promise."""
    twice = [identity for identity, times in Counter(ids_of(TEXT)).items() if times > 1]
    assert twice == [], "keep one row of each in docs/requirements.md and run `make requirements`"


def test_a_row_names_six_files_in_order_and_counts_the_others() -> None:
    """What no test names is open; a longer id does not count for a shorter one."""
    first, longer, other = "XYZ-1", "XYZ-10", "XYZ-1a"
    page = f"| {first} | A. | open |\n| {longer} | B. | `gone.py` |\n| {other} | C. | open |\n"
    files = {f"unit/test_{n}.py": f"{first}: yes" for n in reversed(range(8))} | {"laws/test_a.py": f"{other}: yes"}
    shown = ", ".join(f"`unit/test_{n}.py`" for n in range(6))
    assert rendered(page, files) == (
        f"| {first} | A. | {shown} and 2 more |\n| {longer} | B. | open |\n| {other} | C. | `laws/test_a.py` |\n"
    )


def test_no_test_claims_what_is_not_there() -> None:
    """An id of which nothing is built proves nothing, whoever names it."""
    missing = unbuilt(TEXT)
    claimed = {file: sorted(named_in(text, TEXT) & missing) for file, text in texts_of_tests().items()}
    assert {file: names for file, names in claimed.items() if names} == {}, (
        'take the id out of the test, or "Not yet" out of docs/requirements.md'
    )


def test_the_counts_tell_what_is_shown_in_whole_and_in_part() -> None:
    """A promise that a test names and of which something is missing counts as shown in part."""
    page = "Of 9 promises, none.\n| XYZ-1 | A. | - |\n| XYZ-2 | B. *Not yet:* C. | - |\n| XYZ-3 | D. | - |\n"
    page += "| XYZ-4 | E. *Not yet:* all of it. | - |\n"
    first = rendered(page, {"test_a.py": "XYZ-1, XYZ-2: yes"}).splitlines()[0]
    assert first == "Of 4 promises, 1 are shown by tests, 1 in part, and 2 are open."
    assert unbuilt(page) == {"XYZ-4"}
