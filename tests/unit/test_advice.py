"""What errors advise."""

from __future__ import annotations

import ast
import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import ROOT
from weft.runtime.storage.errors import LOOK_AROUND, advice_on

AGAIN = ("run again", "try again", "retry")
WHERE_AGAIN_HELPS = {
    "pipelines/weft/client/http.py": "the header Retry-After is called so",
    "pipelines/weft/service/problems.py": "the header Retry-After is called so",
    "pipelines/weft/consolidation/steps/providers.py": "the header Retry-After is called so",
    "pipelines/weft/ingestion/stages/visibility.py": "a file was replaced while the run read it",
    "pipelines/weft/runtime/ray/cluster.py": "Ray did not start in time on a busy machine",
    "pipelines/weft/runtime/mlflow/errors.py": "the next run records in an MLflow run of its own",
    "pipelines/weft/runtime/ray/stages.py": "a host was lost",
    "pipelines/weft/runtime/storage/remote.py": "a setting of the client that asks an object store again",
    "pipelines/weft/runtime/storage/run_files.py": "what another host sent was removed meanwhile",
    "pipelines/weft/runtime/storage/working_copy.py": "another host removed or replaced it meanwhile",
    "pipelines/weft/wording/lexicon.py": "a list of words, and no advice",
}


def texts_of(path: Path) -> Iterator[str]:
    """Every text in a module that is not a docstring."""
    source = path.read_text(encoding="utf-8")
    if not any(words.split()[-1] in source.lower() for words in AGAIN):  # parsing all takes a second
        return
    tree = ast.parse(source)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_running_again_is_advised_only_where_it_helps() -> None:
    """OPS-15: whatever needs a permission, a setting or space says so instead."""
    modules = [*(ROOT / "pipelines").rglob("*.py"), *(ROOT / "jobs").glob("*.py")]
    advising = {
        path.relative_to(ROOT).as_posix()
        for path in modules
        if any(words in text.lower() for text in texts_of(path) for words in AGAIN)
    }
    assert advising == set(WHERE_AGAIN_HELPS)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "quota"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EACCES, "permission"),
        (errno.EROFS, "for writing"),
        (errno.ENOENT, "correct the path"),
        (errno.EMFILE, "ulimit -n"),
        (errno.ENAMETOOLONG, "shorter"),
        (errno.EIO, "system's log"),
        (errno.ENOTDIR, LOOK_AROUND),
    ],
)
def test_the_advice_comes_from_the_code_of_the_error(code: int, words: str) -> None:
    """OPS-15."""
    assert words in advice_on(OSError(code, "whatever it says"))


def test_what_a_library_says_in_the_words_of_the_system_is_understood() -> None:
    """OPS-15: such as what DuckDB and ONNX Runtime make of a full disk."""
    assert "free space" in advice_on(RuntimeError('IO Error: could not write file "a.tmp": No space left on device'))


def _of_damage(path: Path) -> sqlite3.Error:
    path.write_text("no database" * 100)
    return _raised(path, "select 1 from sqlite_master")


def _of_a_lock(path: Path) -> sqlite3.Error:
    with closing(sqlite3.connect(path)) as holder:
        holder.execute("begin exclusive")
        return _raised(path, "create table t (a)")


def _of_a_missing_folder(path: Path) -> sqlite3.Error:
    return _raised(path.parent / "absent" / "file", "select 1")


def _raised(path: Path, statement: str) -> sqlite3.Error:
    with pytest.raises(sqlite3.Error) as raised, closing(sqlite3.connect(path, timeout=0.0)) as connection:
        connection.execute(statement)
    return raised.value


def test_sqlite_tells_damage_a_lock_and_a_missing_folder_apart(tmp_path: Path) -> None:
    """OPS-15: only a damaged file is advised to go."""
    said = [
        advice_on(make(tmp_path / make.__name__), damaged="delete it")
        for make in (_of_damage, _of_a_lock, _of_a_missing_folder)
    ]
    assert said[0] == "delete it"
    assert "wait for the process" in said[1]
    assert "read and write there" in said[2]
