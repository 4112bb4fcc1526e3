"""How simulated users behave, and how many there are; `simulation.yaml` beside this module states it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError, model_validator

from weft.domain.errors import ConfigurationError
from weft.domain.sections import Count, Section

Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class SimulationSettings(Section):
    """How simulated users behave, and how many there are."""

    noise: Probability
    random: Probability
    adversarial: Probability
    sessions: Count
    deals: Count

    @model_validator(mode="after")
    def _shares_leave_room(self) -> SimulationSettings:
        if self.random + self.adversarial > 1.0:
            raise ValueError(f"random + adversarial: expected at most 1, found {self.random + self.adversarial}")
        return self


def simulated_users(**chosen: Any) -> SimulationSettings:
    """What is stated of simulated users, but for what is chosen; None chooses nothing.

    Raises:
        ConfigurationError: A value does not fit.
    """
    stated = yaml.safe_load(Path(__file__).with_name("simulation.yaml").read_text(encoding="utf-8"))
    values = stated | {name: value for name, value in chosen.items() if value is not None}
    try:
        return SimulationSettings.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(f"simulated users: {error.errors()[0]['msg']}") from error
