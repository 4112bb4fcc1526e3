"""LES-10: a page of lessons, out and in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.lessons import a_lesson, any_lessons
from weft.domain.lesson import Lesson, LessonPriority, one_line
from weft.lessons.markdown import from_markdown, to_markdown
from weft.lessons.sensitive import sensitive_parts

any_text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(lambda text: bool(one_line(text)))
signs = st.text("[]\"'`,:-#*+> \t\nab", min_size=1, max_size=20).filter(lambda text: bool(one_line(text)))
texts = any_text | signs | st.sampled_from(["- x", "# y", "id: 3", '"quoted"', "a, b", "[1]", "null", "kind: pattern"])
lessons = any_lessons(texts.filter(lambda text: not sensitive_parts(text)), ["general", "git", "api-design", "a.b_c"])


@given(book=st.lists(lessons, max_size=6))
def test_what_is_exported_is_imported_again(book: list[Lesson]) -> None:
    """LES-10: whatever signs the texts hold; a second export is the same page."""
    page = from_markdown(to_markdown(book))
    assert page.problems == ()
    assert page.revised == {}
    by_section = sorted(book, key=lambda each: [other.section for other in book].index(each.section))
    assert list(page.lessons) == by_section
    assert to_markdown(page.lessons) == to_markdown(book)


def test_a_page_says_which_lessons_are_out_of_use() -> None:
    """LES-10: whoever imports it takes them for no live ones; any other status is named with its line."""
    book = [a_lesson("Sign commits"), a_lesson("Tag releases")]
    written = to_markdown(book, {book[1].id})
    assert from_markdown(written).retired == {book[1].id}
    page = from_markdown(written.replace("status: retired", "status: resting"))
    assert (page.retired, len(page.lessons), len(page.problems)) == (frozenset(), 2, 1)


def test_what_holds_a_secret_is_refused_by_its_line_and_stops_nothing() -> None:
    """LES-6, LES-10: the kind is named, never the value."""
    page = from_markdown("# git\n- Log in with password: hunter2!\n- Sign every commit\n")
    assert [lesson.content for lesson in page.lessons] == ["Sign every commit"]
    ((line, problem),) = page.problems
    assert (line, "assigned secret" in problem, "hunter2" in problem) == (2, True, False)


def test_a_page_that_a_person_wrote_is_read() -> None:
    """LES-10: plain lists, other bullets, wrapped lines, any heading."""
    page = from_markdown(
        "# Our rules\n\nSome words.\n\n### Error handling\n* Never swallow an\n  exception\n+ Log the request id\n"
        "    - tools: Bash, Edit\n    - priority: high\n"
    )
    assert page.problems == ()
    assert [(each.section, each.content) for each in page.lessons] == [
        ("error-handling", "Never swallow an exception"),
        ("error-handling", "Log the request id"),
    ]
    assert page.lessons[1].conditions.tools == ("Bash", "Edit")
    assert page.lessons[1].priority is LessonPriority.HIGH


def test_an_edited_text_is_a_revision_of_what_it_was() -> None:
    """LES-10, LES-7: its id still stands below it."""
    old = a_lesson("Sign commits")
    page = from_markdown(to_markdown([old]).replace("Sign commits", "Sign every commit"))
    (new,) = page.lessons
    assert page.revised == {new.id: old.id}


def test_a_bad_line_is_named_and_costs_nothing_else() -> None:
    """LES-10: the line, what was expected and what was found."""
    page = from_markdown("## git\n- Sign\n  - priority: urgent\n- Squash\n  - mood: good\n- Tag\n  - tools: [broken\n")
    assert [each.content for each in page.lessons] == ["Squash", "Tag"]
    assert [line for line, _ in page.problems] == [2, 5, 7]
    assert "priority: expected one of" in page.problems[0][1]


def test_numbered_items_are_lessons_and_code_is_none() -> None:
    """LES-10: as people write pages."""
    page = from_markdown("1. Rebase daily\n2) Squash fixups\n```yaml\n- name: build\n```\n- Tag releases\n")
    assert [lesson.content for lesson in page.lessons] == ["Rebase daily", "Squash fixups", "Tag releases"]
    assert page.problems == ()
