"""txtai's hybrid search over texts and their vectors; prints milliseconds and rows found by question as JSON.

Run by the interpreter that has txtai: MODEL FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

DEPTH, WARM = 10, 40


def main() -> None:
    import numpy as np
    from sentence_transformers import SentenceTransformer
    from txtai import Embeddings

    model, folder = SentenceTransformer(sys.argv[1], device="cpu"), Path(sys.argv[2])
    texts = [json.loads(line)["contents"] for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]
    known = dict(zip(texts, np.load(folder / "vectors.npy"), strict=True))

    def transform(inputs):
        # The corpus was embedded before; questions are embedded here.
        fresh = [text for text in inputs if text not in known]
        made = dict(zip(fresh, model.encode(fresh, normalize_embeddings=True), strict=True)) if fresh else {}
        return np.array([known[text] if text in known else made[text] for text in inputs], dtype=np.float32)

    embeddings = Embeddings(method="external", transform=transform, hybrid=True, content=False)
    embeddings.index((str(row), text, None) for row, text in enumerate(texts))
    questions = json.loads((folder / "questions.json").read_text())
    for question in questions[:WARM]:
        embeddings.search(question, DEPTH)
    elapsed, rows = [], []
    for question in questions:
        started = time.perf_counter()
        found = embeddings.search(question, DEPTH)
        elapsed.append((time.perf_counter() - started) * 1e3)
        rows.append([int(row) for row, _ in found])
    sys.stdout.write("\n" + json.dumps({"ms": elapsed, "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
