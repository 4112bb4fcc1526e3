"""Simulated users (EVA-6): what somebody who knows the right answer would do with a list of results."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pipelines.domain.ids import ContentHash

Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class SimulationSettings(BaseModel):
    """How simulated users behave."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    persistence: Probability
    verdict_rate: Probability
    noise: Probability


@dataclass(frozen=True, slots=True)
class Reaction:
    """One thing a user does about one result.

    Attributes:
        satisfaction: A verdict in [−1, 1], or None for merely opening the result.
    """

    content_hash: ContentHash
    rank: int
    satisfaction: float | None = None


def react(
    shown: Sequence[ContentHash], relevant: Collection[ContentHash], settings: SimulationSettings, rng: random.Random
) -> list[Reaction]:
    """Read a list from the top, open what looks right, and now and then say what one thinks of it.

    A cascade (Craswell et al., WSDM 2008): after a result that looks wrong the user reads on with probability
    `persistence`; the first that looks right is opened and ends the reading. With probability `noise` a result looks
    the opposite of what it is; with probability `verdict_rate` a read result gets a thumb up or down.

    Examples:
        >>> certain = SimulationSettings(persistence=1.0, verdict_rate=0.0, noise=0.0)
        >>> [r.rank for r in react(["a", "b", "c"], {"b"}, certain, random.Random(0))]
        [2]
    """
    reactions = []
    for rank, content in enumerate(shown, start=1):
        looks_right = (content in relevant) != (rng.random() < settings.noise)
        if looks_right:
            reactions.append(Reaction(content, rank))
        if rng.random() < settings.verdict_rate:
            reactions.append(Reaction(content, rank, 1.0 if looks_right else -1.0))
        if looks_right or rng.random() >= settings.persistence:
            break
    return reactions
