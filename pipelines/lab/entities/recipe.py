"""A training run from annotated sentences to a checkpoint with its card, step by step, and its loop."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import torch

from lab.entities.card import CardFacts, card
from lab.entities.evaluation import LOWEST, ExtractionReport, measure
from lab.entities.labels import UNSEEN
from lab.entities.model import build, export, reached, restore, unpack_backbone
from lab.entities.sampling import Packed, Packing, Sampler
from lab.entities.schedule import Schedule, TrainingProgress, rate
from lab.entities.sentences import Sentence, names_in, read_sentences, templated
from weft.domain.chunks import Mention
from weft.extraction.entities import EntityExtractor
from weft.extraction.scores import SCORES_FILE, LabelScores
from weft.extraction.settings import ExtractionSettings

logger = logging.getLogger(__name__)

TEMPLATED = 6000  # sentences made from templates: over a run each is seen a few times
STATE = "state.pt"
TIMED_TEXTS = 60

POSITIVE_WEIGHT = 0.75  # of a right span against 0.25 of a wrong one: wrong ones are far more
CLIP = 10.0  # norm of the gradient of the summed loss


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One training run."""

    data: Path  # folder with train.jsonl.gz and dev.jsonl.gz
    out: Path  # folder for the state, and for the checkpoint in `out / "checkpoint"`
    seed: int  # of the weights and of the drawn texts
    threads: int  # threads of the training and of the measured speed
    schedule: Schedule  # budget and rates
    settings: ExtractionSettings  # labels, windows and the threshold to measure with
    start: Path | None = None  # state of an earlier run whose weights this one begins with, on a schedule of its own

    @property
    def checkpoint(self) -> Path:
        """Where the exported checkpoint goes."""
        return self.out / "checkpoint"


def fit(run: TrainingRun, *, resume: bool) -> TrainingProgress:
    """Train and export."""
    torch.set_num_threads(run.threads)
    torch.manual_seed(run.seed)
    rng = Random(run.seed)  # noqa: S311
    sentences = read_sentences(run.data / "train.jsonl.gz")
    sentences["templates"] = templated(names_in(sentences), TEMPLATED, rng)
    stream = batches(Sampler(sentences, Packing(), rng), run.schedule.batch_words)
    model = build(unpack_backbone(run.out / "backbone"))
    if run.start is not None:
        restore(model, run.start)
    progress = train(model, stream, run.schedule, run.out / STATE, resume=resume)
    export(model, run.checkpoint)
    return progress


def export_saved(run: TrainingRun) -> TrainingProgress:
    """Export the weights of a saved state, as of a run that was stopped early."""
    model = build(unpack_backbone(run.out / "backbone"))
    progress = restore(model, run.out / STATE)
    export(model, run.checkpoint)
    return progress


def assess(run: TrainingRun, progress: TrainingProgress) -> tuple[ExtractionReport, CardFacts]:
    """Measure the exported checkpoint and write its card."""
    sentences = read_sentences(run.data / "dev.jsonl.gz")
    measured = run.settings.model_copy(update={"model": str(run.checkpoint)})
    (run.checkpoint / SCORES_FILE).unlink(missing_ok=True)  # of an earlier state: scores are measured as they are

    def recognise(texts: Sequence[str], labels: Sequence[str]) -> list[list[Mention]]:
        asked = measured.model_copy(update={"labels": tuple(labels), "threshold": LOWEST})
        return EntityExtractor(asked, threads=run.threads).extract(texts)

    report = measure(
        recognise,
        sentences,
        run.settings.labels,
        default=run.settings.threshold,
        unseen=read_sentences(run.data / "dev.jsonl.gz", UNSEEN),
    )
    scores = LabelScores(report.thresholds, {label: tuple(points) for label, points in report.confidences.items()})
    (run.checkpoint / SCORES_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(scores)))
    facts = CardFacts(
        size=sum(file.stat().st_size for file in run.checkpoint.iterdir() if file.suffix != ".md"),
        speed=speed(EntityExtractor(measured, threads=run.threads), sentences),
        threads=run.threads,
        offered=len(measured.labels),
        training=_training(run, progress),
        mentions=_taken_part(run.data),
    )
    (run.checkpoint / "README.md").write_text(card(report, facts), encoding="utf-8")
    return report, facts


def speed(extractor: EntityExtractor, sentences: Mapping[str, Sequence[Sentence]]) -> float:
    """Texts of about 170 words per second of processor time, which other work on the machine distorts little."""
    words = [word for each in sentences.values() for sentence in each for word in sentence.words]
    texts = [" ".join(words[first : first + 170]) for first in range(0, 170 * TIMED_TEXTS, 170)]
    extractor.extract(texts[:4])
    start = time.process_time()
    extractor.extract(texts)
    return len(texts) / (time.process_time() - start)


def _training(run: TrainingRun, progress: TrainingProgress) -> str:
    schedule = run.schedule
    earlier = "" if run.start is None else f"From the weights of a run of {reached(run.start).words:,} words: "
    return (
        f"{earlier}{progress.words:,} words in {progress.steps:,} steps and {progress.seconds / 60:.0f} minutes on "
        f"{run.threads} CPU threads{' in bfloat16' if schedule.bf16 else ''}; AdamW, peak rate "
        f"{schedule.encoder_rate:g} for the encoder and {schedule.head_rate:g} for the rest, 5 % warm-up, cosine, "
        f"about {schedule.batch_words} words a batch, gradient norm at most 10, binary cross-entropy with weight 0.75 "
        f"for right spans and 0.25 for wrong ones, seed {run.seed}."
    )


def _taken_part(data: Path) -> str:
    sentences = read_sentences(data / "train.jsonl.gz")
    count = sum(map(len, sentences.values()))
    mentions = sum(len(sentence.spans) for each in sentences.values() for sentence in each)
    return f"{count:,} annotated sentences with {mentions:,} mentions, and {TEMPLATED:,} sentences from templates."


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
    """Train until a budget ends, saving to `state` on the way and at the end."""
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
