"""RET-17: terms that contents are found by because they were once picked from far down."""

from __future__ import annotations

from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.observe.triggers import LEARNED, LearnedTriggers, read_triggers
from pipelines.learning.uses import UsageKey
from pipelines.settings import load_settings

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
    once = said("flush", day=TODAY - PRIOR.lasts_days)
    assert terms(read(once), "flush", "disk") == ["flush"]
    assert terms(read(once, TODAY + 1), "flush") == []
    assert terms(read(once + said("flush", day=TODAY), TODAY + 1), "flush") == ["flush"]


def test_at_most_eight_of_one_content_are_kept_the_strongest() -> None:
    """RET-17."""
    many = said(*(f"term{number}" for number in range(9)))
    strong = said("term8", principal="q")
    found = read(many + strong)
    assert found.count == 8
    assert terms(found, "term8", "term7") == ["term8"]


def test_one_principal_counts_once() -> None:
    """RET-17, FBK-11: who says it every day has said it once."""
    often = Evidence.sum(said("flush", day=TODAY - back) for back in range(5))
    assert [trigger.strength for trigger in read(often).of(["flush"])] == [1.0]
    assert [trigger.strength for trigger in read(often + said("flush", principal="q")).of(["flush"])] == [2.0]
    assert terms(read(often, least=2.0), "flush") == []


def test_a_young_trigger_is_on_trial() -> None:
    """RET-17: a shadow period, from its first selection on."""
    young = said("flush", day=TODAY)
    assert [trigger.on_trial for trigger in read(young).of(["flush"])] == [True]
    assert [trigger.on_trial for trigger in read(young, TODAY + PRIOR.trial_days).of(["flush"])] == [False]
    assert [trigger.on_trial for trigger in read(young + said("flush")).of(["flush"])] == [False]


def test_what_is_unlearned_is_gone() -> None:
    """RET-17, LRN-17: triggers are evidence like any other."""
    both = said("flush") + said("flush", content=OTHER)
    assert [trigger.content_hash for trigger in read(both - said("flush")).of(["flush"])] == [OTHER]
    assert read(Evidence()).count == 0
