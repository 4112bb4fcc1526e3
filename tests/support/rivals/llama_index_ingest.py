"""LlamaIndex's ingestion of a corpus: split, embed, index in memory; prints documents and seconds as JSON.

Run by the interpreter that has llama-index-core and llama-index-embeddings-huggingface: MODEL CORPUS
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    from llama_index.core import Document, VectorStoreIndex
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    model, corpus = sys.argv[1:]
    records = [json.loads(line) for line in Path(corpus).read_text(encoding="utf-8").splitlines()]
    documents = [Document(text=f"{one.get('title', '')}\n\n{one['text']}") for one in records]
    embedding = HuggingFaceEmbedding(model_name=model, embed_batch_size=32)
    pipeline = IngestionPipeline(transformations=[SentenceSplitter(chunk_size=512, chunk_overlap=64), embedding])
    started = time.perf_counter()
    nodes = pipeline.run(documents=documents)
    VectorStoreIndex(nodes, embed_model=embedding)
    seconds = time.perf_counter() - started
    sys.stdout.write(json.dumps({"documents": len(records), "chunks": len(nodes), "seconds": seconds}) + "\n")


if __name__ == "__main__":
    main()
