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
    """What simple and complex queries get."""

    enabled: bool
    parts: bool
    limits: Mapping[Complexity, Count]


class ExpansionSettings(_Section):
    """When and how a query is asked in other words, too."""

    enabled: bool
    fewer_than: Whole
    variants: Annotated[int, Field(ge=0, le=3)]
    original_weight: Annotated[float, Field(gt=0.0)]
    feedback_texts: Count


class PrefilterSettings(_Section):
    """From which confidence an inferred filter leaves documents out."""

    enabled: bool
    applied_above: Share
    most_values: Count


class ScopeSettings(_Section):
    """Which domain each agent is at home in."""

    homes: Mapping[str, Domain]
    agreement_weight: Share


class ShiftSettings(_Section):
    """When a session has changed its topic, and what follows."""

    enabled: bool
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
