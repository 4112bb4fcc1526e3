"""Pyserini's own REST server over given texts and vectors: by words alone, and by words and vectors.

Run by the interpreter that has pyserini: MODEL FOLDER PORT. Its server loads indexes by the names of its own; here they
are put where it keeps what it has loaded.
"""

from __future__ import annotations

import json
import os
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_hybrid import CANDIDATES, index_texts, index_vectors


@dataclass
class Hit:
    """What its server reads of a hit of an index of words."""

    docid: str
    score: float
    lucene_document: Any


def main() -> None:
    model, folder, port = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from weft.indexes.text.jvm import java_class

    java_class("java.lang.Object")  # with a Java runtime that pip installed
    lucene, dense = index_texts(folder, java_class), index_vectors(folder)
    os.environ.setdefault("OPENAI_API_KEY", "none")  # importing its encoders makes a client that wants one, unused
    # Its server imports an encoder of pictures, whose package it does not require.
    pictures = types.ModuleType("pyserini.encode.optional._uniir")
    pictures.UniIRQueryEncoder = None
    sys.modules[pictures.__name__] = pictures
    import uvicorn
    from pyserini.encode import AutoQueryEncoder
    from pyserini.search.faiss import FaissSearcher
    from pyserini.search.hybrid import HybridSearcher
    from pyserini.search.lucene import LuceneSearcher
    from pyserini.server.models import IndexConfig
    from pyserini.server.rest.app import app
    from pyserini.server.search_controller import get_controller

    words = LuceneSearcher(str(lucene))
    words.set_bm25(0.9, 0.4)
    both = HybridSearcher(FaissSearcher(str(dense), AutoQueryEncoder(model, pooling="mean", l2_norm=True)), words)

    class Hybrid:
        def search(self, query: str, k: int) -> list[Hit]:
            hits = both.search(query, k0=CANDIDATES, k=k, alpha=1.0, normalization=True)
            return [Hit(each.docid, each.score, words.doc(each.docid).lucene_document()) for each in hits]

    for name, searcher in (("words", words), ("hybrid", Hybrid())):
        config = IndexConfig(name=name, searcher=searcher, base_index=name, index_type="tf")
        get_controller().indexes[name] = config
    sys.stdout.write(json.dumps({"ready": port}) + "\n")
    sys.stdout.flush()
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
