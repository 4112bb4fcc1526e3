"""The training loop: a budget of words or minutes, a cosine of the learning rate, checkpoints on the way."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from pipelines.extraction.training.sampling import Packed, Sampler
from pipelines.extraction.training.schedule import Schedule, TrainingProgress, rate

logger = logging.getLogger(__name__)

POSITIVE_WEIGHT = 0.75  # of a right span against 0.25 of a wrong one: wrong ones are far more
CLIP = 10.0  # norm of the gradient of the summed loss


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
