"""OPS-3: layered configuration, unknown keys refused with the nearest known one."""

import json
from pathlib import Path

import pytest
import yaml

from weft.domain.documents import Domain
from weft.domain.errors import ConfigurationError
from weft.settings import CONF, load_settings

MOST_SETTINGS = 600


def leaves(values: object) -> int:
    """Values that a person may set: keys of mappings that hold no further ones; a list is one."""
    return sum(map(leaves, values.values())) if isinstance(values, dict) and values else 1


def test_there_are_no_more_settings_than_a_person_can_look_through() -> None:
    """OPS-3: with priors. Every key costs its reader: what nobody would set is a constant, or follows from another."""
    files = [*sorted((CONF / "base").glob("*.yaml")), CONF / "priors.yaml"]
    counted = {file.stem: leaves(yaml.safe_load(file.read_text())) for file in files}
    assert sum(counted.values()) <= MOST_SETTINGS, counted


def test_a_row_for_all_is_what_rows_have_that_do_not_say_otherwise() -> None:
    """OPS-3: of the tables that came with weft; whoever sets one value of one row leaves the others as they are."""
    priors = load_settings([], ["priors.sizing.domains.code.after=7"], environment={}).priors
    stated = yaml.safe_load((CONF / "priors.yaml").read_text())["sizing"]["domains"]
    assert "after" not in stated["code"]
    assert priors.sizing.domains[Domain.CODE].after == 7
    assert priors.sizing.domains[Domain.HISTORY].after == stated["all"]["after"]
    assert priors.sizing.domains[Domain.GENERAL].after == stated["general"]["after"]


def test_a_later_layer_wins_over_an_earlier_one(tmp_path: Path) -> None:
    """OPS-3: base < files < environment < --set."""
    file = tmp_path / "mine.yaml"
    file.write_text("storage: {root: from-file}\n")
    assert load_settings([file], environment={}).storage.root == "from-file"
    environment = {"WEFT__STORAGE__ROOT": "from-environment"}
    assert load_settings([file], environment=environment).storage.root == "from-environment"
    assert load_settings([file], ["storage.root=from-set"], environment=environment).storage.root == "from-set"


@pytest.mark.parametrize("wrong", ["storage.rot=x", "storag.root=x"])
def test_an_unknown_key_is_refused_with_the_nearest_known_one(wrong: str) -> None:
    """OPS-3."""
    with pytest.raises(ConfigurationError, match=r"unknown setting .*nearest known: storage"):
        load_settings([], [wrong], environment={})


def test_an_unknown_key_of_the_environment_is_refused_by_the_name_of_its_variable() -> None:
    """OPS-3: it is not on the command line that was typed."""
    with pytest.raises(ConfigurationError, match=r"^WEFT__STORAGE__ROT: unknown setting storage\.rot; nearest known"):
        load_settings(environment={"WEFT__STORAGE__ROT": "x"})


def test_an_unknown_key_in_a_file_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    """OPS-3."""
    file = tmp_path / "mine.yaml"
    file.write_text("storage: {rooot: x}\n")
    with pytest.raises(ConfigurationError, match=r"unknown setting storage\.rooot; nearest known: storage\.root"):
        load_settings([file], environment={})


NO_YAML = ["[a", "*alias", "2026-13-01", "[" * 600]


@pytest.mark.parametrize("value", NO_YAML, ids=lambda value: value[:10])
def test_what_is_no_yaml_is_named(tmp_path: Path, value: str) -> None:
    """OPS-3: in a file, a variable and an assignment; a variable may hold a secret, and is not quoted."""
    file = tmp_path / "mine.yaml"
    file.write_text(f"kafka: {{sasl_password: {value}}}\n")
    with pytest.raises(ConfigurationError, match=r"mine\.yaml: expected a readable YAML file"):
        load_settings([file], environment={})
    with pytest.raises(ConfigurationError, match=r"--set .kafka\.sasl_password=.*: expected a value in YAML"):
        load_settings([], [f"kafka.sasl_password={value}"], environment={})
    with pytest.raises(ConfigurationError, match="WEFT__KAFKA__SASL_PASSWORD: expected a value in YAML") as refused:
        load_settings([], environment={"WEFT__KAFKA__SASL_PASSWORD": value})
    assert "lias" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["KAFKA__SASL_PASSWORD", "INGEST__SUMMARY__API_KEY", "EVALUATION__GROUND_TRUTH__API_KEY"]
)
def test_a_secret_that_is_no_text_is_not_quoted(name: str) -> None:
    """OPS-11: what a job says on stderr ends in logs; one of digits is taken within quotes."""
    with pytest.raises(ConfigurationError, match=r"expected a text; put quotes") as refused:
        load_settings([], environment={f"WEFT__{name}": "12345678"})
    assert "1234" not in str(refused.value)
    load_settings([], environment={f"WEFT__{name}": '"12345678"'})


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    """OPS-3."""
    file = tmp_path / "mine.yaml"
    file.write_bytes("storage: {root: café}\n".encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"mine\.yaml: expected a readable YAML file"):
        load_settings([file], environment={})


def test_the_fingerprint_follows_every_value() -> None:
    """OPS-3: equal values, equal fingerprint; one changed value, another fingerprint."""
    first, same = (load_settings([], ["storage.root=a"], environment={}) for _ in range(2))
    other = load_settings([], ["storage.root=b"], environment={})
    assert first.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.parametrize("root", ["s3:/bucket/weft", "", " "])
def test_a_store_that_is_no_folder_is_refused(root: str) -> None:
    """OPS-3: a URL made a folder of its name in the working directory, and everything was kept there."""
    with pytest.raises(ConfigurationError, match=r"storage\.root: .*expected a folder on a disk of this machine"):
        load_settings([], [f"storage.root={json.dumps(root)}"], environment={})
    assert load_settings([], ["storage.root=c:d/e"], environment={}).storage.root == "c:d/e"


def test_a_way_in_by_password_is_whole_or_refused_without_the_password() -> None:
    """FBK-11, OPS-11: what is missing is named; what else stands in the section is not printed."""
    environment = {"WEFT__KAFKA__SASL_PASSWORD": "s3cret"}
    with pytest.raises(ConfigurationError) as caught:
        load_settings([], ["kafka.security_protocol=SASL_SSL"], environment=environment)
    assert str(caught.value) == "kafka: expected sasl_mechanism, sasl_username with SASL_SSL, found none"
    with pytest.raises(ConfigurationError, match=r"kafka\.security_protocol: .*'SASL_SSL', found 'TLS'"):
        load_settings([], ["kafka.security_protocol=TLS"], environment=environment)
