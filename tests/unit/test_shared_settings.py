"""OPS-3a: one store, one set of settings."""

import json
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel, SecretStr

from weft.domain.errors import ConfigurationError
from weft.settings import Settings, keep_settings, load_settings
from weft.shared_settings import SETTINGS_FILE, shared_settings


def loaded(store: Path, *assignments: str, environment: dict[str, str] | None = None) -> Settings:
    return load_settings([], [f"storage.root={store}", *assignments], environment=environment or {})


def test_a_process_that_is_given_nothing_takes_the_settings_of_the_store(tmp_path: Path) -> None:
    """OPS-3a: an updater started without the options of the reindex learns by the same priors."""
    keep_settings(loaded(tmp_path, "embedding.max_tokens=128", "priors.sizing.rate=0.2"))
    settings = loaded(tmp_path)
    assert (settings.embedding.max_tokens, settings.priors.sizing.rate) == (128, 0.2)


def test_a_process_that_disagrees_is_told_every_key_and_stops(tmp_path: Path) -> None:
    """OPS-3a: from --set and from the environment."""
    keep_settings(loaded(tmp_path))
    with pytest.raises(ConfigurationError) as refused:
        loaded(tmp_path, "embedding.max_tokens=128", environment={"WEFT__PRIORS__CONFIDENCE__HALFWAY": "2"})
    for part in (
        "embedding.max_tokens (128 here, 0 in the store)",
        "priors.confidence.halfway (2.0 here, 10.0",
    ):
        assert part in str(refused.value)
    loaded(tmp_path, "embedding.max_tokens=0")  # said again, and the same


def test_given_settings_count_for_one_run_and_changed_ones_from_then_on(tmp_path: Path) -> None:
    """OPS-3a: the explicit flag."""
    keep_settings(loaded(tmp_path))
    given = loaded(tmp_path, "embedding.max_tokens=128", "storage.settings=given")
    keep_settings(given)
    assert (given.embedding.max_tokens, loaded(tmp_path).embedding.max_tokens) == (128, 0)
    keep_settings(loaded(tmp_path, "embedding.max_tokens=128", "storage.settings=changed"))
    assert loaded(tmp_path).embedding.max_tokens == 128


def test_what_a_process_may_choose_for_itself_is_no_disagreement(tmp_path: Path) -> None:
    """OPS-3a: batches, devices, pauses and everything outside the shared sections."""
    keep_settings(loaded(tmp_path))
    own = loaded(
        tmp_path, "embedding.batch_tokens=1024", "embedding.device=cpu", "feedback.updaters=1", "retrieval.depth=30"
    )
    assert own.embedding.batch_tokens == 1024


def test_settings_that_this_version_does_not_have_any_more_are_passed_over(tmp_path: Path) -> None:
    """OPS-3a: a store outlives versions; new settings have their defaults."""
    stored = shared_settings(loaded(tmp_path).model_dump(mode="json"))
    stored["embedding"]["steam"] = 3
    del stored["embedding"]["max_tokens"]
    (tmp_path / SETTINGS_FILE).write_text(json.dumps(stored))
    assert loaded(tmp_path).embedding.max_tokens == 0


def test_a_store_of_the_version_before_opens_with_every_key_that_is_gone_or_has_another_form(tmp_path: Path) -> None:
    """OPS-3a: what it kept under them counts for nothing, and what it kept under others does."""
    stored = shared_settings(loaded(tmp_path, "feedback.credit.success=0.7").model_dump(mode="json"))
    stored["feedback"]["attribution"]["mixes"] = {"counterfactual": [0.5, 0.3, 0.2], "semantic": [0.0, 0.0, 1.0]}
    stored["feedback"]["attribution"]["confidence"]["equal"] = 1.0
    stored["feedback"]["limits"]["dead_letter_bytes"] = 1
    stored["feedback"]["merge"] = {"strength": 3.0}
    stored["learning"] = {"calibration_bands": [0.5, 1.0]}
    stored["embedding"]["sparse"] |= {"threads": 7, "device": "cpu"}
    stored["embedding"]["max_tokens"] = {"text": 128}
    stored["feedback"]["credit"]["explicit"] = {"good": 1.0}
    stored["feedback"]["time"] = 5
    (tmp_path / SETTINGS_FILE).write_text(json.dumps(stored))
    settings, usual = loaded(tmp_path), loaded(tmp_path / "new")
    assert settings.feedback.credit.success == 0.7
    assert settings.feedback.attribution.views == usual.feedback.attribution.views
    assert settings.embedding == usual.embedding
    assert settings.feedback.credit.explicit == usual.feedback.credit.explicit


@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_a_file_that_holds_no_settings_is_named(tmp_path: Path, content: str) -> None:
    """OPS-3a, OPS-15."""
    (tmp_path / SETTINGS_FILE).write_text(content, encoding="latin-1")
    with pytest.raises(ConfigurationError, match=r"settings\.json: expected .*mend it, or remove it"):
        loaded(tmp_path)


def test_a_list_that_begins_with_plus_adds_to_the_one_below(tmp_path: Path) -> None:
    """OPS-3a: without it a list replaces the one below."""
    base = loaded(tmp_path).ingest.skipped_names
    assert loaded(tmp_path, "ingest.skipped_names=[+, vendor]").ingest.skipped_names == (*base, "vendor")
    assert loaded(tmp_path, "ingest.skipped_names=[vendor]").ingest.skipped_names == ("vendor",)


def secrets_in(model: type[BaseModel], above: str = "") -> list[str]:
    names = []
    for name, field in model.model_fields.items():
        kinds = {field.annotation, *get_args(field.annotation)}
        names += [f"{above}{name}"] if SecretStr in kinds else []
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                names += secrets_in(kind, f"{above}{name}.")
    return names


def test_no_secret_is_shared() -> None:
    """OPS-3a, OPS-11, FBK-13: the file of a store's settings holds no password and no key."""
    secrets = secrets_in(Settings)
    assert {"kafka.sasl_password", "feedback.signing_key"} <= set(secrets)
    shared = shared_settings(load_settings(environment={}).model_dump(mode="json"))
    for name in secrets:
        section, *_, leaf = name.split(".")
        assert leaf not in shared.get(section, {})
