"""SCL-2, SCL-4, SCL-16: hosts that share no disk, with sources and the store in S3."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from tests.conftest import ROOT
from tests.support.hosts import hosts_of, wait_until
from tests.support.ingestion import WORDS, a_model, a_plan, a_tree
from weft.catalog.catalog import Catalog
from weft.ingestion.pipeline import ingest
from weft.runtime.stages import HERE

# Hosts start their Ray, however busy the machine is: `make fleet`.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FILES, PORT = 24, 9000
PUT_ALL = """
import os, sys
from pathlib import Path
import boto3
client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
tree = Path(sys.argv[2])
for path in sorted(tree.rglob("*")):
    if path.is_file():
        client.upload_file(str(path), sys.argv[1], f"sources/tree/{path.relative_to(tree)}")
"""


def test_hosts_without_a_common_disk_make_what_one_makes(tmp_path: Path) -> None:
    """SCL-2, SCL-4, SCL-16: both hosts read objects and sent parts, and the content hash is that of one host."""
    with hosts_of("alpha", "beta") as hosts:
        alpha, beta = hosts.hosts
        environment = {
            "AWS_ENDPOINT_URL": f"http://{alpha.address}:{PORT}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "anyone",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "XDG_CACHE_HOME": str(hosts.disk),
            "PYTHONPATH": f"{ROOT / 'pipelines'}:{ROOT}",
        }
        cast("dict[str, str]", alpha.environment).update(environment)  # all hosts have one environment
        told = hosts.folder / "requests"
        alpha.start(sys.executable, "-m", "tests.support.s3", alpha.address, str(PORT), told, log=hosts.folder / "s3")
        wait_until(lambda: told.exists() and told.read_text().count("\n") > 0)
        bucket = told.read_text().splitlines()[0]
        tree = a_tree(tmp_path, files=FILES)
        put = alpha.run(sys.executable, "-c", PUT_ALL, bucket, tree)
        assert put.returncode == 0, put.stderr
        for host in hosts.hosts:
            a_model(host.own_disk / "weft" / "stores")
        address = hosts.start_ray(cpus=1)
        urls = (f"s3://{bucket}/sources/tree", f"s3://{bucket}/store")
        done: subprocess.CompletedProcess[str] = alpha.run(
            sys.executable, "-m", "tests.support.ingest_process", "joined", *urls, address, WORDS
        )
        assert done.returncode == 0, done.stderr[-3000:]
        requests = told.read_text().splitlines()
        plan = a_plan(tree, tmp_path / "store", encoder=WORDS)
        alone = ingest(plan, Catalog(plan.store), HERE, lambda _: None, clock=time.monotonic)
        report = json.loads(done.stdout.splitlines()[-1])
        assert report == {"content_hash": alone.content_hash, "documents": alone.documents}
        assert any(line.startswith("PUT") and "/parts/" in line for line in requests), "beta made no part"
        assert list((beta.own_disk / "weft" / "sources").rglob("module_*.py")), "beta read no object itself"
