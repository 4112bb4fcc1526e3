"""SCL-16: two hosts that share no disk and a store in S3, by commands alone: without Ray, the suite can run them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.hosts import BIN, Host, hosts_with_s3
from tests.support.ingestion import a_tree

INDEX = (BIN / "weft", "index", "--local", "--set", "extraction.enabled=false", "--store")
FIRST, SECOND = 0, 75  # exit codes of who published, and of who is to build again on top of that


def test_two_hosts_publish_and_search_one_store(tmp_path: Path) -> None:
    """SCL-2, SCL-4: of two at once one publishes; both find what one machine finds, and cut off one still does."""
    tree = a_tree(tmp_path, files=6)
    with hosts_with_s3("alpha", "beta") as (hosts, told):
        alpha, beta = hosts.hosts
        store, folder = f"s3://{told.read_text().splitlines()[0]}/store", hosts.folder / "store"
        alone = alpha.run(*INDEX, folder, tree)
        assert alone.returncode == 0, alone.stderr
        expected = found(alpha, str(folder))
        log = hosts.folder / "log"
        runs = [host.start(*INDEX, store, tree, log=log) for host in (alpha, beta)]
        # Who comes so late that all is there already publishes nothing.
        assert {FIRST} <= {run.wait(240) for run in runs} <= {FIRST, SECOND}, log.read_text()
        assert found(alpha, store) == found(beta, store) == expected
        beta.link("down")
        assert found(beta, store) == expected


def found(host: Host, store: str) -> tuple[str, list[tuple[str, float]]]:
    """The content hash of what a host searches, and the chunks and scores that it is answered with."""
    asked = host.run(BIN / "weft", "search", "--store", store, "--json", "open the parser")
    assert asked.returncode == 0, asked.stderr
    answer = json.loads(asked.stdout)
    results = [(result["chunk_id"], result["score"]) for result in answer["results"]]
    assert results
    return answer["generation"].split("-")[1], results
