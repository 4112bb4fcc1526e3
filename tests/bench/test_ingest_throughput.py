"""What ingestion costs beside its own models and beside others' pipelines: ratios of one run on one machine.

    make bench-ingest

Every figure is a ratio of two measurements taken one after the other, so that it says the same on a faster machine.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer

from weft.catalog.catalog import Catalog
from weft.cli.commands import reindex
from weft.embedding.encoders.encoder import load_encoder
from weft.embedding.models import locate
from weft.extraction.entities import EntityExtractor
from weft.ingestion.report import IndexOutcome
from weft.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]
RIVALS = ROOT / "tests" / "support" / "rivals"
RIVAL_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
CORES = os.cpu_count() or 1
SAMPLE = 192  # texts in one round of the encoders
ROUNDS = 3
FILES = 422  # modules of the standard library: some 20,000 chunks, beside which ten seconds of starting count little
FILES_WITH_ENTITIES = 120  # entities cost twice as much as vectors
UNCHANGED = 0.05  # of the first run's time is what a run may take that finds nothing new
RECORDS = 3_000  # two minutes of the slower ones: beside them, seconds of starting count little

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
Line = Callable[[str, str, float, str], None]


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    """Collects lines of the table, shown when all is measured."""
    lines: list[str] = []

    def add(what: str, measured: str, ratio: float, goal: str) -> None:
        lines.append(f"{what:<46} {ratio:>6.2f}  {goal:<10} {measured}")

    yield add
    sys.stderr.write("\n".join(["", f"{'what':<46} {'ratio':>6}  {'goal':<10} measured, {CORES} cores", *lines, ""]))


@pytest.fixture(scope="module")
def abstracts(data_root: Path) -> list[dict[str, str]]:
    """SciFact's corpus."""
    with gzip.open(data_root / "scifact" / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(found) for found in file]


def test_the_encoder_beside_plain_pytorch(line: Line, abstracts: list[dict[str, str]]) -> None:
    """ING-21: the CPU path beside fp32 in evaluation mode, on the same texts in the same batches."""
    settings = settings_with(f"embedding.threads={CORES}").embedding
    texts = [text_of(one) for one in abstracts[:SAMPLE]]
    plain = SentenceTransformer(str(locate(settings)), device="cpu", local_files_only=True).eval()
    fast = load_encoder(settings)
    slow_s, fast_s = alternating(
        lambda: plain.encode(texts, batch_size=32, show_progress_bar=False), lambda: fast.encode(texts)
    )
    cosines = (plain.encode(texts[:32], normalize_embeddings=True) * fast.encode(texts[:32])).sum(axis=1)
    measured = f"fp32 {SAMPLE / slow_s:.1f}/s, ours {SAMPLE / fast_s:.1f}/s, least cosine {cosines.min():.4f}"
    line("encoder / plain PyTorch fp32", measured, slow_s / fast_s, ">= 1.8")
    assert slow_s / fast_s >= 1.8


@pytest.mark.usefixtures("cluster_of_all_cores")
def test_the_pipeline_beside_the_bare_encoder(line: Line, tmp_path: Path) -> None:
    """ING-21, ING-25, ING-27: read to published, beside encoding the same texts and nothing else."""
    settings = settings_with(f"storage.root={tmp_path / 'store'}", "extraction.enabled=false")
    outcome, seconds = ingested(settings, a_tree(tmp_path, FILES))
    texts = texts_in(settings)
    bare_s = encoding_seconds(settings, texts)
    measured = (
        f"{outcome.documents} documents, {len(texts)} texts: bare {len(texts) / bare_s:.1f}/s, "
        f"pipeline {len(texts) / seconds:.1f}/s ({seconds:.1f} s)"
    )
    line("pipeline without entities / bare encoder", measured, bare_s / seconds, ">= 0.85")
    again, again_s = ingested(settings, tmp_path / "tree")
    line(
        "unchanged again / the first time", f"{again_s:.1f} s, {again.embedded} embedded", again_s / seconds, "<= 0.05"
    )
    assert (again.embedded, again_s / seconds <= UNCHANGED) == (0, True)
    share = edited(tmp_path / "tree")
    changed, changed_s = ingested(settings, tmp_path / "tree")
    measured = f"{changed_s:.1f} s, {changed.embedded} texts embedded, {share:.1%} of all text in edited files"
    line("one file in a hundred changed / the first time", measured, changed_s / seconds, f"<= {UNCHANGED + share:.3f}")
    assert changed_s / seconds <= UNCHANGED + share
    assert bare_s / seconds >= 0.85


@pytest.mark.usefixtures("cluster_of_all_cores")
def test_the_pipeline_with_entities_beside_its_models(line: Line, tmp_path: Path) -> None:
    """ING-16, ING-21: with entities, beside the two models working one after the other on all cores."""
    settings = settings_with(f"storage.root={tmp_path / 'store'}")
    _, seconds = ingested(settings, a_tree(tmp_path, FILES_WITH_ENTITIES))
    texts = texts_in(settings)
    encoding_s = encoding_seconds(settings, texts)
    extractor = EntityExtractor(settings.extraction, threads=CORES)
    extracting_s = timed(lambda: extractor.extract(texts))
    both = encoding_s + extracting_s
    measured = f"{len(texts)} texts: {encoding_s:.1f} s + {extracting_s:.1f} s alone, {seconds:.1f} s together"
    line("pipeline with entities / the two models", measured, both / seconds, ">= 0.80")
    assert both / seconds >= 0.80


@pytest.mark.usefixtures("cluster_of_all_cores")
def test_documents_per_second_beside_others(line: Line, tmp_path: Path, abstracts: list[dict[str, str]]) -> None:
    """ING-21: the same corpus and encoder through the ingestion pipelines of Haystack and LlamaIndex."""
    if not RIVAL_PYTHON.exists():
        pytest.skip("no .venv-bench: `make bench-ingest` makes it")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(one) + "\n" for one in abstracts[:RECORDS]), encoding="utf-8")
    settings = settings_with(f"storage.root={tmp_path / 'store'}", "extraction.enabled=false")
    _, seconds = ingested(settings, corpus)
    for name in ("haystack", "llama_index"):
        found = told(RIVAL_PYTHON, RIVALS / f"{name}_ingest.py", str(locate(settings.embedding)), str(corpus))
        measured = f"{RECORDS} records: {RECORDS / found['seconds']:.1f}/s, ours {RECORDS / seconds:.1f}/s"
        line(f"documents per second / {name}", measured, found["seconds"] / seconds, ">= 2")
        assert found["seconds"] / seconds >= 2.0


@pytest.fixture(scope="module")
def cluster_of_all_cores() -> Iterator[None]:
    """A local cluster that knows how many cores there are."""
    from weft.runtime.ray.cluster import connect, disconnect

    # Ray gives its workers less of a busy machine than other processes get; beside those it is compared with, as much.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  Ray's own spelling
    connect(settings_with("cluster.address=local").cluster)
    yield
    disconnect()


def settings_with(*assignments: str) -> Settings:
    return load_settings(assignments=list(assignments), environment={})


def text_of(record: dict[str, str]) -> str:
    return f"{record.get('title', '')}\n\n{record['text']}".strip()


def a_tree(folder: Path, files: int) -> Path:
    """A copy of some modules of the standard library, the same ones for one Python."""
    library = Path(sysconfig.get_paths()["stdlib"])
    tree = folder / "tree"
    tree.mkdir()
    modules = [*sorted(library.glob("[a-z]*.py")), *sorted(library.glob("[a-hj-su-z]*/[a-z]*.py"))]  # not idlelib, test
    for path in [path for path in modules if "site-packages" not in path.parts][:files]:
        target = tree / path.relative_to(library)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
    return tree


def edited(tree: Path) -> float:
    """Changes every hundredth file by a comment at its head; the share of all text that these files hold."""
    files = sorted(tree.rglob("*.py"))
    some = files[::100]
    share = sum(path.stat().st_size for path in some) / sum(path.stat().st_size for path in files)
    for path in some:
        path.write_bytes(b"# edited\n" + path.read_bytes())
    return share


def ingested(settings: Settings, source: Path) -> tuple[IndexOutcome, float]:
    from weft.runtime.ray.stages import ON_CLUSTER

    started = time.perf_counter()
    outcome = reindex.run(reindex.plan_of(settings, [source]), executor=ON_CLUSTER)
    return outcome, time.perf_counter() - started


def texts_in(settings: Settings) -> list[str]:
    """Every distinct text that was embedded."""
    root = Path(settings.storage.root)
    folder = root / "generations" / str(Catalog(root).pointer().generation) / "chunks"
    chunks = pq.read_table(folder / "chunks.parquet", columns=["content_hash", "text"])
    return list(dict(zip(chunks["content_hash"].to_pylist(), chunks["text"].to_pylist(), strict=True)).values())


def encoding_seconds(settings: Settings, texts: Sequence[str]) -> float:
    encoder = load_encoder(settings.embedding.model_copy(update={"threads": CORES}))
    encoder.encode(texts[:8])
    return timed(lambda: encoder.encode(texts))


def alternating(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Median seconds of two things done in turn, after one round that does not count."""
    rounds = [(timed(first), timed(second)) for _ in range(ROUNDS + 1)][1:]
    return statistics.median(one for one, _ in rounds), statistics.median(other for _, other in rounds)


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def told(python: Path, script: Path, *arguments: str) -> dict[str, float]:
    """What a script printed last, as JSON."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [python, script, *arguments], capture_output=True, text=True, check=False, env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))
