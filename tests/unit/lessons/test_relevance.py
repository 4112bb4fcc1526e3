"""LES-8: which lessons a tool use calls for, by their conditions."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.lessons import LABELLED, a_lesson, believed, labelled, settings, with_priority
from weft.domain.lesson import Conditions, Lesson, LessonPriority
from weft.domain.lesson_match import BelievedLesson
from weft.lessons.finding import ConditionIndex, ToolUse, file_pattern

WEIGHTS = settings().priors.lessons.relevance


def find(lessons: list[Lesson], use: ToolUse, limit: int = 5) -> list[str]:
    index = ConditionIndex([believed(lesson) for lesson in lessons], WEIGHTS)
    return [match.believed.lesson.content for match in index.find(use, limit=limit)]


def test_each_condition_that_is_met_adds_its_weight() -> None:
    """LES-8: .40 for the tool, .40 for the file, .10 for action words, .10 for context words."""
    lesson = a_lesson(
        "Squash", tools=("Edit",), files=("*.sql",), actions=("rename",), words=("table", "column", "index", "schema")
    )
    use = ToolUse("Edit", ("db/0001.sql",), "rename the column of this table")
    (match,) = ConditionIndex([believed(lesson, 0.5)], WEIGHTS).find(use, limit=1)
    assert {each.name: each.amount for each in match.contributions} == pytest.approx(
        {"tool": 0.40, "file": 0.40, "actions": 0.10, "words": 0.10 * 2 / 3}
    )
    assert match.relevance == sum(each.amount for each in match.contributions)
    assert match.rank == pytest.approx(match.relevance * 0.5 * 1.0)
    assert all(each.amount == each.weight * each.value for each in match.contributions)


def test_a_tool_that_a_pattern_names_counts_half() -> None:
    """LES-8: .20."""
    lesson = a_lesson("Ask for a page at a time", tools=("mcp__*",))
    (match,) = ConditionIndex([believed(lesson)], WEIGHTS).find(ToolUse("mcp__jira"), limit=1)
    assert [(each.name, each.amount) for each in match.contributions] == [("tool_wildcard", 0.20)]


def test_a_tool_is_the_same_in_capitals_and_without() -> None:
    """LES-8: people write "bash" where agents call it "Bash"."""
    assert find([a_lesson("Quote paths", tools=("bash",))], ToolUse("Bash")) == ["Quote paths"]
    assert find([a_lesson("Quote paths", tools=("MCP__*",))], ToolUse("mcp__jira")) == ["Quote paths"]


def test_priority_and_belief_multiply_relevance() -> None:
    """LES-8: critical 2, high 1.5, medium 1, low .5."""
    plain = a_lesson("Quote paths", tools=("Bash",))
    found = {}
    for priority in LessonPriority:
        index = ConditionIndex([believed(with_priority(plain, priority), 0.8)], WEIGHTS)
        (match,) = index.find(ToolUse("Bash"), limit=1)
        found[priority] = match.rank
    assert found == pytest.approx(
        {
            LessonPriority.CRITICAL: 0.64,
            LessonPriority.HIGH: 0.48,
            LessonPriority.MEDIUM: 0.32,
            LessonPriority.LOW: 0.16,
        }
    )


def test_nothing_is_shown_where_nothing_fits() -> None:
    """LES-8: another tool, other files, or no word in common."""
    lessons = [
        a_lesson("Run ANALYZE after bulk loads", tools=("psql",)),
        a_lesson("Keep migrations reversible", files=("migrations/**",)),
        a_lesson("Freeze the clock in tests of expiry"),
    ]
    assert find(lessons, ToolUse("Edit", ("docs/index.md",), "mend a typo in the introduction")) == []


def test_a_lesson_without_conditions_is_called_for_by_its_own_words() -> None:
    """LES-8: nobody needs to state what the text says."""
    lessons = [a_lesson("Run the migrations before starting the API"), a_lesson("Pin the base image by digest")]
    assert find(lessons, ToolUse("Bash", (), "start the api")) == ["Run the migrations before starting the API"]


def test_other_files_rule_a_lesson_out_and_another_tool_does_where_no_file_is_met() -> None:
    """LES-8: "Write" edits a file as "Edit" does."""
    lesson = a_lesson("Use four spaces", tools=("Edit",), files=("*.py",))
    assert find([lesson], ToolUse("Edit", ("main.go",))) == []
    assert find([lesson], ToolUse("Write", ("main.py",))) == ["Use four spaces"]
    assert find([lesson], ToolUse("Bash")) == []
    assert find([lesson], ToolUse("Edit")) == ["Use four spaces"]


PATTERNS = [
    ("*.py", "a/b/c.py", True),
    ("*.py", "a.pyc", False),
    ("Makefile", "sub/Makefile", True),
    ("Makefile", "Makefile.bak", False),
    ("migrations/**", "app/migrations/x/1.py", True),
    ("migrations/**", "immigrations/1.py", False),
    ("src/*.ts", "src/a.ts", True),
    ("src/*.ts", "src/deep/a.ts", False),
    ("src/**/*.ts", "src/a.ts", True),
    ("src/**/*.ts", "/home/x/src/deep/er/a.ts", True),
    ("**/*.tf", "infra/main.tf", True),
    ("/etc/hosts", "/etc/hosts", True),
    ("*.test.?s", "ui/app.test.js", True),
    ("a+b.txt", "a+b.txt", True),
    ("a+b.txt", "aab.txt", False),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), PATTERNS)
def test_patterns_of_files(pattern: str, path: str, expected: bool) -> None:
    """LES-8: names anywhere, folders anywhere, `**` across folders."""
    assert bool(file_pattern(pattern).search(path)) is expected


names = st.sampled_from(["Bash", "Edit", "mcp__*", "*", "Read"])
files = st.sampled_from(["*.py", "*.sql", "src/**", "Makefile"])
vocabulary = st.sampled_from(["deploy", "commit", "cache", "index", "queue", "retry"])
conditions = st.builds(
    Conditions,
    tools=st.lists(names, max_size=2).map(tuple),
    files=st.lists(files, max_size=2).map(tuple),
    actions=st.lists(vocabulary, max_size=4).map(tuple),
    words=st.lists(vocabulary, max_size=5).map(tuple),
)
uses = st.builds(
    ToolUse,
    tool=st.sampled_from(["", "Bash", "Edit", "mcp__x"]),
    files=st.lists(st.sampled_from(["src/a.py", "b.sql", "Makefile", "x.md"]), max_size=2).map(tuple),
    text=st.lists(vocabulary, max_size=4).map(" ".join),
)


def relevance_by_hand(lesson: Lesson, use: ToolUse) -> float:
    """The rule read aloud, one lesson at a time."""
    asked = lesson.conditions
    said = set(use.text.split())
    exact = use.tool in asked.tools
    wildcard = not exact and any("*" in tool and fnmatchcase(use.tool, tool) for tool in asked.tools)
    endings = {"*.py": (".py",), "*.sql": (".sql",), "src/**": ("src/a.py",), "Makefile": ("Makefile",)}
    file = any(path.endswith(endings[pattern]) for pattern in asked.files for path in use.files)
    if (asked.files and use.files and not file) or (asked.tools and use.tool and not (exact or wildcard or file)):
        return 0.0
    words = set(asked.words) or set(lesson.content.lower().split())
    shares = [min(1.0, len(said & stated) / max(1, min(3, len(stated)))) for stated in (set(asked.actions), words)]
    return 0.40 * exact + 0.20 * wildcard + 0.40 * file + 0.10 * shares[0] + 0.10 * shares[1]


@given(stated=st.lists(conditions, max_size=8), use=uses)
def test_the_index_finds_what_the_rule_read_aloud_finds(stated: list[Conditions], use: ToolUse) -> None:
    """LES-8: an independent implementation, lesson by lesson."""
    lessons = [Lesson(section="work", content=f"Cache queue {at}", conditions=each) for at, each in enumerate(stated)]
    index = ConditionIndex([believed(lesson) for lesson in lessons], WEIGHTS)
    found = {match.believed.lesson.id: match.relevance for match in index.find(use, limit=100)}
    by_hand = {lesson.id: relevance_by_hand(lesson, use) for lesson in lessons}
    assert found == pytest.approx({key: value for key, value in by_hand.items() if value >= WEIGHTS.least})


def test_the_best_come_first_and_ties_by_id() -> None:
    """LES-8: deterministic, whatever order the lessons came in."""
    lessons: list[BelievedLesson] = [believed(a_lesson(f"Quote path {at}", tools=("Bash",))) for at in range(20)]
    lessons.append(believed(a_lesson("Quote every path", tools=("Bash",)), 0.9))
    forth = ConditionIndex(lessons, WEIGHTS).find(ToolUse("Bash"), limit=6)
    back = ConditionIndex(lessons[::-1], WEIGHTS).find(ToolUse("Bash"), limit=6)
    assert forth == back
    assert forth[0].believed.p_good == 0.9
    assert [match.believed.lesson.id for match in forth[1:]] == sorted(each.lesson.id for each in lessons[:-1])[:5]


def test_the_right_lesson_is_among_the_first_five() -> None:
    """LES-8: recall@5 .95 at least, by conditions alone, among lessons of the same tools and kinds of files."""
    every = [*labelled("uses", held_out=True), *labelled("uses", held_out=False)]
    lessons = [
        a_lesson(
            each["content"],
            tools=tuple(each["tools"]),
            files=tuple(each["files"]),
            actions=tuple(each["actions"]),
            words=tuple(each["words"]),
        )
        for each in every
    ]
    asked = labelled("uses", held_out=True)
    hits = 0
    for each in asked:
        use = ToolUse(each["use"]["tool"], tuple(each["use"]["files"]), each["use"]["text"])
        hits += each["content"] in find(lessons, use)
    assert len(asked) >= 30
    assert hits >= 0.95 * len(asked)


def test_lessons_that_nothing_calls_for_are_not_shown() -> None:
    """LES-8: of questions about the world, nine in ten show nothing."""
    lessons = [a_lesson(each["content"], words=tuple(each["words"])) for each in labelled("uses", held_out=True)]
    questions: list[str] = json.loads((LABELLED / "unrelated.json").read_text(encoding="utf-8"))
    silent = sum(find(lessons, ToolUse(text=question)) == [] for question in questions)
    assert silent >= 0.9 * len(questions)


@pytest.mark.parametrize(
    ("pattern", "met", "unmet"),
    [
        ("*.{ts,tsx}", ["src/a.ts", "b.tsx"], ["a.js", "a.{ts,tsx}"]),
        ("src/{api,web/{a,b}}/**", ["src/api/x.go", "src/web/b/x.go"], ["src/web/x.go"]),
        ("gen/", ["gen/a.go", "api/gen/v1/a.go"], ["gen", "regen/a.go"]),
        ("./gen/*.go", ["gen/a.go", "/repo/gen/a.go"], ["gen/v1/a.go"]),
        ("~/notes/*.md", ["/home/ada/notes/a.md"], ["/home/ada/a.md"]),
        ("000[0-4]_*.sql", ["db/0003_b.sql"], ["db/0007_b.sql"]),
        ("[!a]?.py", ["bc.py"], ["ab.py"]),
        ("app/[id].tsx", ["app/[id].tsx", "app/d.tsx"], ["app/x.tsx"]),
        ("[z-a].py", ["[z-a].py"], ["b.py"]),
        ("a+b(1).txt", ["a+b(1).txt"], ["aab1.txt"]),
    ],
)
def test_a_pattern_of_files_is_met_as_it_is_written(pattern: str, met: list[str], unmet: list[str]) -> None:
    """LES-8: as shells and agents write patterns."""
    lesson = a_lesson("Generate", files=(pattern,))
    assert [find([lesson], ToolUse("Edit", (path,))) for path in met] == [["Generate"]] * len(met)
    assert [find([lesson], ToolUse("Edit", (path,))) for path in unmet] == [[]] * len(unmet)


def test_a_condition_of_several_words_is_met_where_the_context_has_them() -> None:
    """LES-8: of "git push" each word, whatever stands beside it."""
    lesson = a_lesson("Ask the owner", words=("git push",), actions=("force push!",))
    assert find([lesson], ToolUse(text="git commit && git push --force")) == ["Ask the owner"]
    assert find([lesson], ToolUse(text="bake bread")) == []
