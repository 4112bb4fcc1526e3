"""RET-17: terms that contents are found by because they were once picked from far down."""

from __future__ import annotations

from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.triggers import LEARNED, REMOVED, LearnedTriggers, read_triggers
from weft.learning.uses import UsageKey
from weft.settings import load_settings

PRIOR = load_settings(environment={}).priors.triggers
HASH, OTHER = "ab" * 32, "cd" * 32
TODAY = 20_000


def said(*terms: str, day: int = TODAY - 5, principal: str = "p", content: str = HASH) -> Evidence:
    return Evidence(usage={UsageKey(day, content, LEARNED + term, principal): MICRO for term in terms})


def read(evidence: Evidence, today: int = TODAY, **changes: object) -> LearnedTriggers:
    return read_triggers(PRIOR.model_copy(update=changes), evidence, today)


def terms(found: LearnedTriggers, *asked: str) -> list[str]:
    return [trigger.term for trigger in found.of(asked)]


def test_a_trigger_leads_to_its_content_until_it_goes_stale() -> None:
    """RET-17: 30 days unless reinforced."""
    once = said("flush", day=TODAY - PRIOR.lasts_days) + said("flush", day=TODAY - PRIOR.lasts_days, principal="q")
    assert terms(read(once), "flush", "disk") == ["flush"]
    assert terms(read(once, TODAY + 1), "flush") == []
    assert terms(read(once + said("flush", day=TODAY), TODAY + 1), "flush") == ["flush"]


def test_at_most_eight_of_one_content_are_kept_the_strongest() -> None:
    """RET-17: what is in force before what is on trial."""
    many = said(*(f"term{number}" for number in range(9)))
    strong = said("term8", principal="q")
    found = read(many + strong, least=1.0, trial_days=3)
    assert found.count == 8
    assert terms(found, "term8", "term7") == ["term8"]
    young = Evidence.sum(said("young", day=TODAY, principal=name) for name in "pqr")
    assert terms(read(many + young, least=1.0, trial_days=3), "young") == []


def test_two_principals_must_agree() -> None:
    """RET-17, FBK-11: who says it every day has said it once; until a second one does, it is told and no more."""
    long_ago = TODAY - PRIOR.trial_days
    often = Evidence.sum(said("flush", day=long_ago - back) for back in range(5))
    (alone,) = read(often).of(["flush"])
    assert (alone.strength, alone.on_trial) == (1.0, True)
    (agreed,) = read(often + said("flush", day=TODAY, principal="q")).of(["flush"])
    assert (agreed.strength, agreed.on_trial) == (2.0, False)


def test_for_seven_days_a_trigger_is_on_trial() -> None:
    """RET-17: a shadow period, from its first selection on."""
    young = said("flush", day=TODAY) + said("flush", day=TODAY, principal="q")
    assert [read(young, TODAY + days).of(["flush"])[0].on_trial for days in (0, 6, 7)] == [True, True, False]
    assert [trigger.on_trial for trigger in read(young + said("flush", day=TODAY - 7)).of(["flush"])] == [False]


def removed(term: str, content: str = HASH, principal: str = "boss") -> Evidence:
    return Evidence(usage={UsageKey(TODAY - 1, content, REMOVED + term, principal): MICRO})


def test_a_removed_trigger_leads_nowhere_whoever_picks_it_again() -> None:
    """RET-17: exactly that word of that content, for good, until the removal itself is taken back."""
    both = said("flush", "disk") + said("flush", content=OTHER)
    gone = both + removed("flush")
    assert [(each.term, each.content_hash) for each in read(gone).every()] == [("disk", HASH), ("flush", OTHER)]
    again = Evidence.sum(said("flush", day=TODAY, principal=name) for name in "pqr")
    assert terms(read(gone + again, TODAY + PRIOR.trial_days), "flush", "disk") == ["disk", "flush"]
    assert [each.content_hash for each in read(gone + again).of(["flush"])] == [OTHER]
    assert read(gone - removed("flush")).every() == read(both).every()


def test_what_is_unlearned_is_gone() -> None:
    """RET-17, LRN-17: triggers are evidence like any other."""
    both = said("flush") + said("flush", content=OTHER)
    assert [trigger.content_hash for trigger in read(both - said("flush")).of(["flush"])] == [OTHER]
    assert read(Evidence()).count == 0
