"""The training loop: a budget of words or minutes, a cosine of the learning rate, checkpoints on the way."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from pipelines.extraction.training.sampling import Packed, Sampler

logger = logging.getLogger(__name__)

WARM_UP = 0.05  # share of the budget during which the rate rises
FLOOR = 0.01  # share of the rate that is left at the end
POSITIVE_WEIGHT = 0.75  # of a right span against 0.25 of a wrong one: wrong ones are far more
CLIP = 10.0  # norm of the gradient of the summed loss
SMOOTHING = 0.98  # of the printed loss, per step


@dataclass(frozen=True, slots=True)
class Schedule:
    """What a run may spend and how fast it learns.

    Attributes:
        words: Words to train on at most.
        minutes: Wall time at most; whichever budget ends first sets the pace of the cosine.
        batch_words: Words a step.
        encoder_rate: Peak learning rate of the pretrained encoder.
        head_rate: Peak learning rate of the new layers.
        bf16: Whether matrix products run in bfloat16, twice as fast where the processor has it.
        save_minutes: Minutes between saved states.
        log_every: Steps between progress lines.
    """

    words: int
    minutes: float
    batch_words: int
    encoder_rate: float
    head_rate: float
    bf16: bool
    save_minutes: float
    log_every: int


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


def batches(sampler: Sampler, words: int) -> Iterator[list[Packed]]:
    """Batches of about `words` words, for ever."""
    batch: list[Packed] = []
    size = 0
    while True:
        text = sampler.draw()
        if batch and size + len(text.words) > words:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text.words)


def train(
    model: Any, stream: Iterator[Sequence[Packed]], schedule: Schedule, state: Path, *, resume: bool = False
) -> TrainingProgress:
    """Train until a budget ends, saving to `state` on the way and at the end.

    Args:
        model: The recogniser to train, in place.
        stream: Batches, without end.
        schedule: Budget and rates.
        state: Where weights, optimiser and progress are kept.
        resume: Go on from `state`, if it exists, within the same budget.
    """
    optimizer = _optimizer(model, schedule)
    progress = _restore(model, optimizer, state) if resume and state.exists() else TrainingProgress()
    collate = model.data_collator_class(model.config, data_processor=model.data_processor, prepare_labels=True)
    start, saved = time.monotonic() - progress.seconds, progress.seconds
    model.train()
    while (done := progress.done(schedule)) < 1.0:
        batch = next(stream)
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * rate(done)
        words = sum(len(text.words) for text in batch)
        examples = [{"tokenized_text": text.words, "ner": text.spans, "ner_labels": text.labels} for text in batch]
        loss = _step(model, optimizer, collate(examples), bf16=schedule.bf16)
        progress = progress.after(words, loss / words, time.monotonic() - start)
        if progress.steps % schedule.log_every == 0:
            _report(progress, schedule)
        if progress.seconds - saved > 60 * schedule.save_minutes:
            _save(model, optimizer, progress, state)
            saved = progress.seconds
    _save(model, optimizer, progress, state)
    return progress


def _optimizer(model: Any, schedule: Schedule) -> torch.optim.Optimizer:
    learned = [(name, p) for name, p in model.model.named_parameters() if p.requires_grad]
    groups = [
        {"params": [p for name, p in learned if ("bert_layer" in name) is encoder], "lr": peak, "peak": peak}
        for encoder, peak in ((True, schedule.encoder_rate), (False, schedule.head_rate))
    ]
    return torch.optim.AdamW(groups, weight_decay=0.01, fused=True)


def _step(model: Any, optimizer: torch.optim.Optimizer, inputs: Any, *, bf16: bool) -> float:
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        loss = model.model(**inputs, alpha=POSITIVE_WEIGHT, gamma=0.0, reduction="sum").loss
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.model.parameters(), CLIP)
    optimizer.step()
    return float(loss.detach())


def _report(progress: TrainingProgress, schedule: Schedule) -> None:
    done = progress.done(schedule)
    logger.info(
        "step %d, %d words, %.0f words/s, loss %.4f a word, %.1f %% done, %.0f s left",
        progress.steps,
        progress.words,
        progress.words / progress.seconds,
        progress.loss,
        100 * done,
        progress.seconds * (1 - done) / done,
    )


def _save(model: Any, optimizer: torch.optim.Optimizer, progress: TrainingProgress, state: Path) -> None:
    # A run killed while saving leaves the state before it.
    part = state.with_suffix(".part")
    values = {"model": model.model.state_dict(), "optimizer": optimizer.state_dict(), "progress": asdict(progress)}
    torch.save(values, part)
    part.replace(state)


def _restore(model: Any, optimizer: torch.optim.Optimizer, state: Path) -> TrainingProgress:
    values = torch.load(state, map_location="cpu", weights_only=True)
    model.model.load_state_dict(values["model"])
    optimizer.load_state_dict(values["optimizer"])
    return TrainingProgress(**values["progress"])
