"""The peak memory of a process that ingests a corpus with an encoder that costs nothing, as JSON: CORPUS STORE"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path


def main() -> None:
    from jobs import reindex
    from pipelines.runtime.cluster import connect, disconnect
    from pipelines.settings import load_settings
    from tests.support.ingestion import a_plan

    corpus, store = (Path(argument) for argument in sys.argv[1:])
    connect(load_settings(assignments=["cluster.address=local"], environment={}).cluster)
    outcome = reindex.run(a_plan(corpus, store, "ingest.unit_documents=64"))
    disconnect()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(
        json.dumps({"documents": outcome.documents, "chunks": outcome.chunks, "peak_mib": peak / 1024}) + "\n"
    )


if __name__ == "__main__":
    main()
