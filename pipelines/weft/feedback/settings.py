"""What the feedback flow is tuned by; every value is stated in `conf/base/feedback.yaml`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Self, get_args

from pydantic import Field, SecretStr, field_validator, model_validator

from weft.domain.events import Report
from weft.domain.sections import Section, Share
from weft.domain.signatures import SigningKey
from weft.runtime.storage.locks import Patience

MS = 1_000
DAY_MS = 86_400 * MS
COMPARING = ("counterfactual", "attention", "semantic")
"""Methods of attribution that compare, the most telling one first, each by the view that it is named after."""
WEIGHTS = ""
"""The allowance of observations that move weights; each reported one is named by its type of event (LRN-20)."""
_REPORTS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Report))
_STOPPED_S = 2.0  # a stopped updater lets go of nothing: waiting longer for its partition helps nobody


def milliseconds(seconds: float) -> int:
    """Of a time in seconds; whole ones."""
    return round(seconds * MS)


EVENT_ID_RECORDS = 5_000_000
"""Newest records of a partition whose event ids are remembered: at 32 bytes each, 160 MB, and days of a busy log."""


class CreditSettings(Section):
    """How much one piece of feedback weighs, in observations."""

    retrieved: float = Field(ge=0.0)
    included: float = Field(ge=0.0)
    referenced: float = Field(ge=0.0)
    success: float = Field(ge=0.0)
    explicit: float = Field(ge=0.0)
    selected: float = Field(ge=0.0)
    skipped: float = Field(ge=0.0)
    # implicit feedback is weighed by 1 / P(its rank is looked at), at most so much (FBK-10)
    inverse_clip: float = Field(ge=1.0)
    # logarithm of the odds of a choice per unit of score, by which choices of the first result are expected; 0
    # takes the first as any other (LRN-22)
    choice_slope: float = Field(ge=0.0, allow_inf_nan=False)


class TriggerSettings(Section):
    """Which words of a query become triggers of a result that was picked from far down (RET-17)."""

    stop: tuple[str, ...]  # words that say nothing about what is looked for

    @cached_property
    def stop_words(self) -> frozenset[str]:
        """`stop`, to look up."""
        return frozenset(self.stop)


class AttributionSettings(Section):
    """How an outcome is shared among the contents a response was made from (FBK-9)."""

    encoder: bool  # whether responses are compared with contents, by producers that see them and by updaters
    # weights of the counterfactual, the attention and the semantic view; they sum to 1
    views: tuple[Share, Share, Annotated[float, Field(gt=0.0, le=1.0)]]
    confidence: Mapping[str, Share]  # how far to rely on the method that each of these names

    @model_validator(mode="after")
    def _covers_every_method(self) -> Self:
        if self.confidence.keys() != set(COMPARING):
            raise ValueError(f"expected how far to rely on {sorted(COMPARING)}, found {sorted(self.confidence)}")
        if not math.isclose(sum(self.views), 1.0, abs_tol=1e-9):
            raise ValueError(f"feedback.attribution.views: expected weights that sum to 1, found {self.views}")
        return self

    def mix(self, method: str) -> tuple[float, ...]:
        """Weights of the three views under a method that one of them names; those before it have none.

        Examples:
            >>> reliance = dict.fromkeys(COMPARING, 0.9)
            >>> rules = AttributionSettings(encoder=True, views=(0.5, 0.3, 0.2), confidence=reliance)
            >>> [rules.mix(method) for method in COMPARING]
            [(0.5, 0.3, 0.2), (0.0, 0.6, 0.4), (0.0, 0.0, 1.0)]
        """
        first = COMPARING.index(method)
        whole = sum(self.views[first:])
        return tuple(0.0 if at < first else weight / whole for at, weight in enumerate(self.views))

    def reliance(self, method: str) -> float:
        """How far to rely on a method; fully on equal shares, which compare nothing."""
        return self.confidence.get(method, 1.0)


class TimeSettings(Section):
    """Which event times are believed, and how long an event is waited for."""

    lead_s: float = Field(ge=0.0)
    clock_step_s: float = Field(gt=0.0)
    clock_alone_records: int = Field(gt=0)
    window_s: float = Field(gt=0.0)
    session_idle_s: float = Field(gt=0.0)
    session_suspended_s: float = Field(gt=0.0)
    session_remembered_s: float = Field(gt=0.0)


class LimitSettings(Section):
    """What bounds memory and disk, and what one principal may say, per partition."""

    event_bytes: int = Field(gt=0)
    dead_letter_records: int = Field(gt=0)
    waiting_records: int = Field(gt=0)
    session_records: int = Field(gt=0)
    principals: int = Field(gt=0)
    names: int = Field(gt=0)
    principal_daily: float = Field(gt=0.0)  # observations of one principal per day that move weights
    # principals that need no history, the first ones; and so many have one after a day, at least (FBK-13)
    newcomers: int = Field(ge=1)
    # the same of what is reported outright, by type of event; of each source by itself
    reports_daily: Mapping[str, Annotated[float, Field(gt=0.0)]]

    @model_validator(mode="after")
    def _covers_every_report(self) -> Self:
        if self.reports_daily.keys() != _REPORTS:
            raise ValueError(
                f"expected an allowance for each of {sorted(_REPORTS)}, found {sorted(self.reports_daily)}"
            )
        return self

    @cached_property
    def daily_micro(self) -> int:
        """`principal_daily` in micro-units."""
        return round(self.principal_daily * 1_000_000)

    def daily_of(self, allowance: str) -> int:
        """How much an allowance grants a day, in micro-units."""
        if allowance == WEIGHTS:
            return self.daily_micro
        return round(self.reports_daily[allowance.partition(".")[0]] * 1_000_000)


class UbiSettings(Section):
    """What actions of OpenSearch User Behavior Insights mean, by their `action_name`."""

    selections: tuple[str, ...]  # the object was chosen
    verdicts: Mapping[str, Annotated[float, Field(ge=-1.0, le=1.0)]]  # from −1 to 1, on the object


WITHOUT_KEY = (
    "without a key, anybody who can write to the topic can teach: set WEFT__FEEDBACK__SIGNING_KEY (docs/kafka.md)"
)
_KEY_CHARACTERS = 32  # of a key: whoever holds a token can try keys at leisure


class FeedbackSettings(Section):
    """The topic, the updaters, and the rules events are judged by."""

    # shared by services and updaters; None lets anybody teach who can write to the topic (FBK-13)
    signing_key: SecretStr | None
    topic: str = Field(min_length=1)
    dead_letter_topic: str = Field(min_length=1)
    partitions: int = Field(gt=0)
    replication: int | None = Field(gt=0)
    updaters: int = Field(gt=0)
    poll_records: int = Field(gt=0)
    publish_every_s: float = Field(gt=0.0)
    retry_s: float = Field(gt=0.0)
    unreachable_s: float = Field(gt=0.0)
    lock_timeout_s: float = Field(gt=0.0)
    checkpoint_records: int = Field(gt=0)
    question_characters: int = Field(ge=0, le=4_096)
    credit: CreditSettings
    triggers: TriggerSettings
    attribution: AttributionSettings
    time: TimeSettings
    limits: LimitSettings
    ubi: UbiSettings

    @field_validator("signing_key")
    @classmethod
    def _is_long_enough(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key.get_secret_value()) < _KEY_CHARACTERS:
            raise ValueError(f"expected at least {_KEY_CHARACTERS} characters, such as `openssl rand -hex 32` prints")
        return key

    @property
    def key(self) -> SigningKey | None:
        """What impressions are signed with and tokens are made by; None where anybody may teach."""
        return None if self.signing_key is None else SigningKey(self.signing_key.get_secret_value())

    @property
    def patience(self) -> Patience:
        """With others that hold a partition's files."""
        return Patience(min(_STOPPED_S, self.lock_timeout_s), self.lock_timeout_s)
