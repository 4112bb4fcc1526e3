"""What tunes the understanding of queries; the values stand in `conf/base/retrieval.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.domain.documents import Domain
from pipelines.domain.understanding import Complexity, QueryType

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TypeSettings(_Section):
    """How the type is told, and from which confidence it is the intent that weights are read for."""

    cues: Mapping[QueryType, tuple[str, ...]]
    intent_from: Share

    @model_validator(mode="after")
    def _every_type_has_cues(self) -> Self:
        if missing := [kind.value for kind in QueryType if kind not in self.cues]:
            raise ValueError(f"cues: expected a list per type, none for {missing}")
        return self


class RouterSettings(_Section):
    """What makes a query simple or complex, and what each kind gets."""

    enabled: bool
    parts: bool
    simple_words: Whole
    complex_words: Count
    complex_questions: Count
    limits: Mapping[Complexity, Count]


class ExpansionSettings(_Section):
    """When and how a query is asked in other words, too."""

    enabled: bool
    fewer_than: Whole
    most_words: Count
    variants: Annotated[int, Field(ge=0, le=3)]
    original_weight: Annotated[float, Field(gt=0.0)]
    feedback_texts: Count
    background_texts: Whole
    feedback_terms: Count
    neighbours: Count
    shortest_term: Count


class PrefilterSettings(_Section):
    """From which confidence an inferred filter leaves documents out, and how sure each way of saying it is."""

    enabled: bool
    applied_above: Share
    stated: Share
    named_path: Share
    mentioned_path: Share
    most_values: Count


class ScopeSettings(_Section):
    """Which domain each agent is at home in."""

    homes: Mapping[str, Domain]
    agreement_weight: Share


class ShiftSettings(_Section):
    """When a session has changed its topic, and what follows."""

    enabled: bool
    window: Count
    least: Count
    distance: Annotated[float, Field(ge=0.0, le=2.0)]
    deviations: Annotated[float, Field(ge=0.0)]
    usage_kept: Share
    widening: Annotated[float, Field(ge=1.0)]


class UnderstandingSettings(_Section):
    """Everything that is read out of a query."""

    type: TypeSettings
    router: RouterSettings
    expansion: ExpansionSettings
    prefilter: PrefilterSettings
    scope: ScopeSettings
    shift: ShiftSettings
