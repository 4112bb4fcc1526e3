"""LES-13: what two short texts are to each other."""

from __future__ import annotations

import pytest

from tests.support.lessons import a_lesson, settings
from weft.lessons.duplicates import DuplicateIndex, compare_lessons
from weft.wording.comparison import TextRelation, Thresholds, compare
from weft.wording.text import Text
from weft.wording.words import stem_of, written_words

RULES = settings().lessons.duplicates


def relation(one: str, other: str) -> TextRelation:
    both = Text(one), Text(other)
    forth, back = (compare(*pair, Thresholds(RULES.proposed, RULES.bound)) for pair in (both, both[::-1]))
    assert forth.relation is back.relation
    return forth.relation


IN_ONE_PLACE = [
    ("Use == for comparisons in JavaScript", "Use === for comparisons in JavaScript"),
    ("Chain shell commands with &&", "Chain shell commands with ||"),
    ("Chain shell commands with `&&`.", "Chain shell commands with `;`."),
    ("Quote strings with ' in Python", 'Quote strings with " in Python'),
    ("Name the loop variable i", "Name the loop variable j"),
    ("Reply with 👍 when the build is done", "Reply with 👎 when the build is done"),
    ("Mark finished tasks with ✅", "Mark finished tasks with ❌"),
    ("Sort results with x < y", "Sort results with x > y"),
    ("Begin list items with * in Markdown", "Begin list items with - in Markdown"),
    ("Use + to join strings", "Use . to join strings"),
    ("Start private names with _", "Start private names with #"),
    ("Use the € sign for prices", "Use the $ sign for prices"),
    ("Set x to the width", "Set y to the width"),
    ("Pin numpy to >=2", "Pin numpy to <=2"),
    ("Pin numpy to ==2", "Pin numpy to !=2"),
    ("Return -1 on errors", "Return 1 on errors"),
    ("Use -O2 for builds", "Use -O3 for builds"),
    ("Write new tools in C", "Write new tools in C++"),
    ("Set DEBUG=1", "Set DEBUG=0"),
    ("Match file names with .*", "Match file names with .+"),
    ("Limit uploads to 10 MB", "Limit uploads to 10 GB"),
]


@pytest.mark.parametrize(("one", "other"), IN_ONE_PLACE)
def test_another_sign_number_or_letter_in_one_place_is_an_opposite(one: str, other: str) -> None:
    """LES-13: both cannot be followed."""
    assert relation(one, other) is TextRelation.OPPOSITE


NEVER_SURE = [
    ("Use @ts-ignore for type errors", "Use ts-ignore for type errors"),
    ("Never commit .env files", "Never commit env files"),
    ("Use x in loops", "Use X in loops"),
    ("Call x++ in loops", "Call ++x in loops"),
    ("Compare with x <= y", "Compare with y <= x"),
    ("Prefix hooks with use_", "Prefix hooks with use-"),
    ("Name it a", "Name it b"),
    ("Listen with -p", "Listen with -P"),
    ("Limit a page to 10 MB", "Limit a page to 10 Mb"),
    ("Write dates as DD/MM", "Write dates as MM/DD"),
    ("Call foo() before exit", "Call bar() before exit"),
    ("Deploy the production image", "Deploy the product image"),
    ("部署前先运行测试", "部署后先运行测试"),
    ("Escape & as &amp;", "Escape < as &lt;"),
]


@pytest.mark.parametrize(("one", "other"), NEVER_SURE)
def test_where_a_sign_number_name_or_letter_differs_sameness_is_not_sure(one: str, other: str) -> None:
    """LES-13: such two are never merged without asking."""
    assert relation(one, other) is not TextRelation.SAME
    assert relation(one, one) is relation(other, other) is TextRelation.SAME


ANOTHER_SUBJECT = [
    ("The staging broker is kafka3", "The production broker is kafka1"),
    ("Validate the input with pydantic", "Validate the output with pydantic"),
    ("Set the client timeout in config.toml", "Set the server timeout in config.toml"),
    ("Add unit tests under tests/unit for new modules", "Remove unit tests under tests/unit for old modules"),
    ("Enable tracing in staging", "Enable tracing in production"),
    ("Mock time.time() in tests", "Mock time.sleep() in tests"),
    ("Call foo() before exit", "Call bar() before exit"),
    ("Log every request", "Never cache an answer"),
]


@pytest.mark.parametrize(("one", "other"), ANOTHER_SUBJECT)
def test_another_subject_is_no_contradiction(one: str, other: str) -> None:
    """LES-13: each names another thing, and both can be followed."""
    assert relation(one, other) is TextRelation.OTHER


SAME = [
    ("Pin versions in requirements.txt", "Lock versions in requirements.txt"),
    ("Use 2 spaces", "Use two spaces."),
    ("Use `==` in shell tests", "In shell tests, use =="),
    ("Delete environment variables", "Remove env vars"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_other_words_for_the_same_are_the_same(one: str, other: str) -> None:
    """LES-13: synonyms, numerals, marks around what is written, and parts turned around."""
    assert relation(one, other) is TextRelation.SAME


OPPOSITE = [
    ("Log at debug level in tests", "Log at info level in tests"),
    ("Upgrade React first and the router afterwards", "Upgrade the router first and React afterwards"),
    ("Copy files from the bucket to the local disk", "Copy files from the local disk to the bucket"),
    ("Treat warnings as errors", "Treat errors as warnings"),
    ("Deploy without a plan", "Never deploy without a plan"),
    ("Merge before a review", "Never merge before a review"),
    ("Use npm ci in builds, not npm install", "Use npm install in builds, not npm ci"),
]


@pytest.mark.parametrize(("one", "other"), OPPOSITE)
def test_what_cannot_both_be_followed_is_opposite(one: str, other: str) -> None:
    """LES-13: one of a set, an order, a direction, or what the other denies."""
    assert relation(one, other) is TextRelation.OPPOSITE


def test_two_turns_undo_each_other() -> None:
    """LES-13: what is not disabled is enabled; a person is asked."""
    assert relation("Keep the cache enabled", "Never keep the cache disabled") is TextRelation.PROPOSED


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"files": ("*.go",)}, {"files": ("*.py",)}, TextRelation.OTHER),
        ({"files": ("frontend/**",)}, {"files": ("backend/**",)}, TextRelation.OTHER),
        ({"tools": ("Bash",)}, {"tools": ("Edit",)}, TextRelation.OTHER),
        ({"files": ("*.py",)}, {"files": ("src/*.py",)}, TextRelation.OPPOSITE),
        ({"files": ("src/**",)}, {"files": ("src/api/**",)}, TextRelation.OPPOSITE),
        ({"tools": ("mcp__*",)}, {"tools": ("mcp__jira",)}, TextRelation.OPPOSITE),
        ({"files": ("*.py",)}, {}, TextRelation.OPPOSITE),
    ],
)
def test_scopes_that_exclude_each_other_leave_nothing_to_contradict(
    one: dict[str, tuple[str, ...]], other: dict[str, tuple[str, ...]], expected: TextRelation
) -> None:
    """LES-13: tabs for Go and spaces for Python; where one file may meet both, both cannot be followed."""
    pair = a_lesson("Indent with tabs", **one), a_lesson("Indent with spaces", **other)  # type: ignore[arg-type]
    assert compare_lessons(*pair, RULES).relation is expected
    assert compare_lessons(*pair[::-1], RULES).relation is expected


def test_a_comparison_says_which_words_decided() -> None:
    """LES-13: whoever reviews a pair reads words, and no stems."""
    pairs = [("Use == here", "Use === here"), ("Validate inputs twice", "Validate outputs twice")]
    why = [compare(Text(one), Text(other), Thresholds(0.0)).why for one, other in pairs]
    assert why == ["in one place: == and ===", "one is about inputs, the other about outputs"]


def test_words_of_chinese_japanese_and_korean_are_pairs_of_letters() -> None:
    """LES-8: no mark stands between such words; two letters together tell most of them."""
    assert written_words("部署前测试 and 배포") == ["部署", "署前", "前测", "测试", "and", "배포"]
    shared = set(written_words("デプロイの前にテストを実行")) & set(written_words("デプロイの前にテストを実行する"))
    assert len(shared) >= 10


@pytest.mark.parametrize(("one", "other"), [("product", "production"), ("universe", "university"), ("fill", "file")])
def test_a_stem_stands_for_forms_of_one_word(one: str, other: str) -> None:
    """LES-13: stems of stemmers for search are coarser, and made one of two of these."""
    assert stem_of(one) != stem_of(other)


SLOTS = [
    ("Use PostgreSQL for the session store", "Use MySQL for the session store"),
    ("Use postgresql for sessions", "Use mysql for sessions"),
    ("Install packages with npm", "Install packages with pnpm"),
    ("Use node.js for scripts", "Use deno for scripts"),
    ("Use PostgreSQL 14 for the session store", "Use MySQL 8 for the session store"),
    ("Edit with Visual Studio on Windows", "Edit with Vim on Windows"),
    ("Write docs in English", "Write docs in German"),
]


@pytest.mark.parametrize(("one", "other"), SLOTS)
def test_two_values_in_one_place_are_for_a_person(one: str, other: str) -> None:
    """LES-13: of else equal sentences perhaps one alone holds; nothing merges them."""
    assert relation(one, other) is TextRelation.PROPOSED
    compared = compare(Text(one), Text(other), Thresholds(0.6))
    assert compared.rivals
    index = DuplicateIndex(settings().lessons.duplicates)
    index.add(a_lesson(one))
    index.add(a_lesson(other))
    assert [each.relation for *_, each in index.pairs()] == [TextRelation.PROPOSED]
