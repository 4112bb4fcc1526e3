"""What a training run may spend, how far it is, and how fast it learns there: a cosine over its budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

WARM_UP = 0.05  # share of the budget during which the rate rises
FLOOR = 0.01  # share of the rate that is left at the end
SMOOTHING = 0.98  # of the printed loss, per step


@dataclass(frozen=True, slots=True)
class Schedule:
    """What a run may spend and how fast it learns."""

    words: int  # words to train on at most
    minutes: float  # wall time at most; whichever budget ends first sets the pace of the cosine
    batch_words: int  # words a step
    encoder_rate: float  # peak learning rate of the pretrained encoder
    head_rate: float  # peak learning rate of the new layers
    bf16: bool  # whether matrix products run in bfloat16, twice as fast where the processor has it
    save_minutes: float  # minutes between saved states
    log_every: int  # steps between progress lines


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far a run is. `loss` is per word, smoothed."""

    steps: int = 0
    words: int = 0
    seconds: float = 0.0
    loss: float = math.nan

    def done(self, schedule: Schedule) -> float:
        """Share of the budget that is used, 1 or more at the end.

        The larger of words / budget and seconds / budget, so that a slow machine still anneals fully.
        """
        return max(self.words / schedule.words, self.seconds / (60 * schedule.minutes))

    def after(self, words: int, loss: float, seconds: float) -> TrainingProgress:
        """Progress after one more step on `words` words that ended at `seconds`."""
        mean = loss if math.isnan(self.loss) else SMOOTHING * self.loss + (1 - SMOOTHING) * loss
        return replace(self, steps=self.steps + 1, words=self.words + words, seconds=seconds, loss=mean)


def rate(done: float) -> float:
    """Share of the peak learning rate: a linear rise, then a cosine from 1 to the floor.

    Examples:
        >>> round(rate(WARM_UP / 2), 2), rate(WARM_UP), round(rate(1.0), 2)
        (0.5, 1.0, 0.01)
    """
    if done < WARM_UP:
        return max(done / WARM_UP, FLOOR)
    falling = (min(done, 1.0) - WARM_UP) / (1 - WARM_UP)
    return FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * falling))
