"""OPS-9, OPS-10: what the field's own tools say of the files in infra/."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.infra import INFRA, RULES, UNITS, manifests, queries

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool: apt-get install prometheus")
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")


def said(*command: str | Path, cwd: Path = INFRA) -> str:
    """What a tool prints, where it finds nothing wrong."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@needs_promtool
def test_the_rules_ring_when_they_should_and_not_else() -> None:
    """OPS-10: each rule over series in which it rings, and all of them over a day on which all is well."""
    assert "SUCCESS" in said("promtool", "check", "rules", RULES)
    assert "SUCCESS" in said("promtool", "test", "rules", RULES.with_name("rules_test.yaml"))


@needs_promtool
def test_prometheus_takes_the_scrape_configuration() -> None:
    """OPS-10: its syntax; the file with the token is the host's."""
    said("promtool", "check", "config", "--syntax-only", INFRA / "prometheus/prometheus.yaml")


@needs_promtool
def test_every_query_of_the_dashboard_parses(tmp_path: Path) -> None:
    """OPS-10: as rules, which promtool parses."""
    rules = [{"record": "parsed", "expr": query, "labels": {"at": where}} for where, query in queries().items()]
    file = tmp_path / "queries.yaml"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(rules)} rules found" in said("promtool", "check", "rules", file)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A root file system with the units, and something in the place of weft."""
    program = tmp_path / "opt/weft/bin/weft"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(unit, units)
    return tmp_path


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_the_unit(installed: Path, unit: Path) -> None:
    """OPS-9, OPS-10a: every setting known, and allowed beside the others."""
    assert (
        said("systemd-analyze", "verify", f"--root={installed}", "--man=no", "--recursive-errors=no", unit.name) == ""
    )


@needs_systemd
@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.suffix == ".service"], ids=lambda unit: unit.name)
def test_a_unit_is_exposed_little(installed: Path, unit: Path) -> None:
    """OPS-11: 2.5 of systemd's 10, where a unit without hardening has 9.6."""
    said(
        "systemd-analyze", "security", "--offline=yes", "--threshold=25", "--no-pager", f"--root={installed}", unit.name
    )


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")
def test_kustomize_puts_together_what_runs_all_the_time() -> None:
    """OPS-9: as the files say it, marked as part of weft."""
    made = list(yaml.safe_load_all(said("kubectl", "kustomize", INFRA / "kubernetes")))
    assert {each["metadata"]["labels"]["app.kubernetes.io/part-of"] for each in made} == {"weft"}
    by_hand = {"RayJob", "RayService"}
    stated = {(each["kind"], each["metadata"].get("name")): each.get("spec") for each in manifests()}
    expected = {key: spec for key, spec in stated.items() if key[0] not in by_hand}
    assert {(each["kind"], each["metadata"]["name"]) for each in made} == set(expected)
    (cluster,) = (each for each in made if each["kind"] == "RayCluster")
    assert cluster["spec"] == expected["RayCluster", "weft"]  # merged keys of YAML, as Kubernetes reads them


def test_ray_serve_takes_the_configuration() -> None:
    """OPS-5, OPS-9: as its own schema reads it; what it imports is there."""
    schema = pytest.importorskip("ray.serve.schema", reason="Ray Serve is missing")
    (resource,) = (each for each in manifests() if each["kind"] == "RayService")
    deployed = schema.ServeDeploySchema.model_validate(yaml.safe_load(resource["spec"]["serveConfigV2"]))
    (application,) = deployed.applications
    module, _, name = application.import_path.partition(":")
    assert callable(getattr(pytest.importorskip(module, reason="there is no weft serve yet"), name))
    (config,) = (each for each in manifests() if each["kind"] == "ConfigMap")
    assert application.args["bootstrap"] == config["data"]["WEFT__KAFKA__BOOTSTRAP"]
