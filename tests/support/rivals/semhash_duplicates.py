"""Near-duplicates by SemHash, as it comes: `python semhash_duplicates.py TEXTS FOUND MODEL THRESHOLD`.

MODEL is a folder with `tokenizer.json` and `vectors.npy`, a row per token: the same static vectors that weft has, each
times its rarity by Zipf's law, as Model2Vec weighs them.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer


def main(texts_file: str, found_file: str, folder: str, threshold: str) -> None:
    """Deduplicate the texts of a file and say what stands for each."""
    from model2vec import StaticModel
    from semhash import SemHash

    texts = [json.loads(line) for line in Path(texts_file).read_text(encoding="utf-8").splitlines()]
    tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = StaticModel(np.load(Path(folder) / "vectors.npy"), tokenizer, normalize=True)
    began, used = time.perf_counter(), time.process_time()
    result = SemHash.from_records(texts, model=model).self_deduplicate(threshold=float(threshold))
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    place = {text: at for at, text in enumerate(texts)}
    standing = list(range(len(texts)))
    for duplicate in result.filtered:
        standing[place[duplicate.record]] = place[duplicate.duplicate_of]
    for at in range(len(texts)):
        while standing[standing[at]] != standing[at]:
            standing[at] = standing[standing[at]]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"seconds": seconds, "cpu_s": cpu, "peak_mib": peak, "standing": standing}
    Path(found_file).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
