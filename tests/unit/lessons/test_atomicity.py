"""LES-6: one instruction that says what to do."""

from __future__ import annotations

import pytest

from tests.support.lessons import labelled, settings
from weft.lessons.gate import atomicity, in_english, vague

SETTINGS = settings().lessons
LEAST = SETTINGS.atomicity.least

VAGUE = [
    "Be careful",
    "Always be more careful with the code",
    "Write good code",
    "Double-check your work before finishing",
    "Pay attention to the details",
    "Follow best practices",
    "Think before you act",
    "Make sure everything works",
    "Handle errors properly",
    "Improve the quality of the answers",
    "Do your best to understand the requirements",
    "Always consider all edge cases",
    "Try harder next time",
    "Keep it simple",
    "Avoid making mistakes",
    "Read the instructions carefully",
]
EXACT = [
    "Be careful to close the file handle in a finally block",
    "Double-check the currency of invoices before sending them",
    "Pin numpy",
    "Never use `eval`",
    "Use four spaces",
    "Squash commits",
    "Set a timeout of 30 seconds on outgoing requests",
    "Ask Maria before changing the billing module",
    "Restart nginx after editing its configuration, because it does not reload by itself",
]


@pytest.mark.parametrize("text", VAGUE)
def test_what_nobody_could_break_is_vague(text: str) -> None:
    """LES-6."""
    assert vague(text, SETTINGS)
    assert atomicity(text, SETTINGS).score < LEAST


@pytest.mark.parametrize("text", EXACT)
def test_what_names_what_to_do_passes(text: str) -> None:
    """LES-6."""
    assert atomicity(text, SETTINGS).score >= LEAST


def test_each_further_instruction_costs() -> None:
    """LES-6: two pass, for they may belong together; three are to be added one by one."""
    two = "Run the linter and push the branch"
    three = "Run the linter, push the branch and open a pull request"
    assert atomicity("Run the linter", SETTINGS).score == 1.0
    assert atomicity(two, SETTINGS).score == pytest.approx(1.0 - SETTINGS.atomicity.further)
    assert atomicity(three, SETTINGS).score == pytest.approx(1.0 - 2 * SETTINGS.atomicity.further)
    assert atomicity(three, SETTINGS).score < LEAST
    assert "3 instructions" in atomicity(three, SETTINGS).reasons[0]


def test_two_objects_are_one_instruction() -> None:
    """LES-6."""
    assert atomicity("Quote variables and paths in shell scripts", SETTINGS).score == 1.0


def test_good_lessons_pass() -> None:
    """LES-6: of the labelled pairs nearly all."""
    texts = [pair[side] for pair in labelled("pairs", held_out=True) for side in ("left", "right")]
    assert sum(atomicity(text, SETTINGS).score >= LEAST for text in texts) >= 0.98 * len(texts)


def test_few_english_lessons_are_taken_for_another_language() -> None:
    """LES-13: `add` says of others that their opposites are not recognised."""
    english = {pair[side] for pair in labelled("pairs", held_out=True) for side in ("left", "right")}
    assert sum(not in_english(each, settings().lessons) for each in english) <= 0.02 * len(english)
    others = [
        "部署前先运行测试",
        "デプロイの前にテストを実行する",
        "배포 전에 테스트를 실행하세요",
        "Führe die Tests vor dem Deploy aus",
        "Niemals auf main pushen",
        "Toujours lancer les tests avant de déployer",
        "Ne pas utiliser npm dans ce projet",
        "Ejecuta siempre las pruebas antes de desplegar",
        "Запускай тесты перед деплоем",
    ]
    assert not any(in_english(each, settings().lessons) for each in others)
