"""A training run from annotated sentences to a checkpoint with its card, step by step."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec
import torch

from pipelines.domain.chunks import Mention
from pipelines.extraction.entities import EntityExtractor
from pipelines.extraction.scores import SCORES_FILE, LabelScores
from pipelines.extraction.settings import ExtractionSettings
from pipelines.extraction.training.card import CardFacts, card
from pipelines.extraction.training.evaluation import LOWEST, ExtractionReport, measure
from pipelines.extraction.training.labels import UNSEEN
from pipelines.extraction.training.loop import batches, train
from pipelines.extraction.training.model import build, export, reached, restore, unpack_backbone
from pipelines.extraction.training.sampling import Packing, Sampler
from pipelines.extraction.training.schedule import Schedule, TrainingProgress
from pipelines.extraction.training.sentences import Sentence, names_in, read_sentences, templated

logger = logging.getLogger(__name__)

TEMPLATED = 6000  # sentences made from templates: over a run each is seen a few times
STATE = "state.pt"
TIMED_TEXTS = 60


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One training run.

    Attributes:
        data: Folder with train.jsonl.gz and dev.jsonl.gz.
        out: Folder for the state, and for the checkpoint in `out / "checkpoint"`.
        seed: Of the weights and of the drawn texts.
        threads: Threads of the training and of the measured speed.
        schedule: Budget and rates.
        settings: Labels, windows and the threshold to measure with.
        start: State of an earlier run whose weights this one begins with, on a schedule of its own.
    """

    data: Path
    out: Path
    seed: int
    threads: int
    schedule: Schedule
    settings: ExtractionSettings
    start: Path | None = None

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
    measured = run.settings.model_copy(
        update={
            "model": str(run.checkpoint),
        }
    )
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
