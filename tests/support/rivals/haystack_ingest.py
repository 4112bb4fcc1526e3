"""Haystack's ingestion of a corpus: split, embed, write to its in-memory store; prints documents and seconds as JSON.

Run by the interpreter that has haystack-ai and sentence-transformers-haystack: MODEL CORPUS
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    from haystack import Document, Pipeline
    from haystack.components.preprocessors import DocumentSplitter
    from haystack.components.writers import DocumentWriter
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack_integrations.components.embedders.sentence_transformers import SentenceTransformersDocumentEmbedder

    model, corpus = sys.argv[1:]
    records = [json.loads(line) for line in Path(corpus).read_text(encoding="utf-8").splitlines()]
    documents = [
        Document(content=f"{one.get('title', '')}\n\n{one['text']}", meta={"title": one.get("title", "")})
        for one in records
    ]
    store = InMemoryDocumentStore()
    embedder = SentenceTransformersDocumentEmbedder(model=model, progress_bar=False, normalize_embeddings=True)
    embedder.warm_up()
    pipeline = Pipeline()
    pipeline.add_component("split", DocumentSplitter(split_by="word", split_length=512))
    pipeline.add_component("embed", embedder)
    pipeline.add_component("write", DocumentWriter(document_store=store))
    pipeline.connect("split", "embed")
    pipeline.connect("embed", "write")
    started = time.perf_counter()
    pipeline.run({"split": {"documents": documents}})
    seconds = time.perf_counter() - started
    sys.stdout.write(
        json.dumps({"documents": len(records), "chunks": store.count_documents(), "seconds": seconds}) + "\n"
    )


if __name__ == "__main__":
    main()
