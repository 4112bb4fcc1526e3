"""Pyserini's hybrid searcher over texts and their vectors; prints milliseconds and rows found by question as JSON.

Run by the interpreter that has pyserini: MODEL FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

DEPTH, CANDIDATES, WARM = 10, 100, 40


def main() -> None:
    model, folder = sys.argv[1], Path(sys.argv[2])
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from weft.indexes.text.jvm import java_class

    java_class("java.lang.Object")  # with a Java runtime that pip installed
    lucene = index_texts(folder, java_class)
    dense = index_vectors(folder)
    os.environ.setdefault("OPENAI_API_KEY", "none")  # importing its encoders makes a client that wants one, unused
    from pyserini.encode import AutoQueryEncoder
    from pyserini.search.faiss import FaissSearcher
    from pyserini.search.hybrid import HybridSearcher
    from pyserini.search.lucene import LuceneSearcher

    encoder = AutoQueryEncoder(model, pooling="mean", l2_norm=True)
    sparse = LuceneSearcher(str(lucene))
    sparse.set_bm25(0.9, 0.4)
    searcher = HybridSearcher(FaissSearcher(str(dense), encoder), sparse)
    questions = json.loads((folder / "questions.json").read_text())

    def ask(question: str) -> list[int]:
        hits = searcher.search(question, k0=CANDIDATES, k=DEPTH, alpha=1.0, normalization=True)
        return [int(hit.docid) for hit in hits]

    for question in questions[:WARM]:
        ask(question)
    elapsed, rows = [], []
    for question in questions:
        started = time.perf_counter()
        rows.append(ask(question))
        elapsed.append((time.perf_counter() - started) * 1e3)
    sys.stdout.write("\n" + json.dumps({"ms": elapsed, "rows": rows}) + "\n")


def index_texts(folder: Path, java_class) -> Path:
    """A Lucene index by Anserini's own indexer."""
    (folder / "texts").mkdir(exist_ok=True)
    os.replace(folder / "corpus.jsonl", folder / "texts" / "corpus.jsonl")
    arguments = ["-collection", "JsonCollection", "-input", str(folder / "texts"), "-index", str(folder / "lucene")]
    arguments += ["-generator", "DefaultLuceneDocumentGenerator", "-threads", "2", "-optimize", "-storeRaw"]
    java_class("io.anserini.index.IndexCollection").main(arguments)
    os.replace(folder / "texts" / "corpus.jsonl", folder / "corpus.jsonl")
    return folder / "lucene"


def index_vectors(folder: Path) -> Path:
    """A flat FAISS index as Pyserini reads it."""
    import faiss
    import numpy as np

    vectors = np.load(folder / "vectors.npy")
    (folder / "faiss").mkdir(exist_ok=True)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    faiss.write_index(index, str(folder / "faiss" / "index"))
    (folder / "faiss" / "docid").write_text("".join(f"{row}\n" for row in range(len(vectors))))
    return folder / "faiss"


if __name__ == "__main__":
    main()
