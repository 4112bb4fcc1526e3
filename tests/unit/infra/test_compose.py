"""OPS-9: what the Compose file says."""

from __future__ import annotations

import re

import pytest

from tests.support.infra import COMPOSE, ROOT, build_stages, documents

TEXT = COMPOSE.read_text(encoding="utf-8")
FILE = documents(COMPOSE)[0]
SERVICES = FILE["services"]
EXAMPLE = (COMPOSE.parent / ".env.example").read_text(encoding="utf-8")


def test_what_was_asked_for_is_there() -> None:
    """OPS-9: Apache Kafka, MLflow with PostgreSQL and an S3, Ray head and worker, updaters and service."""
    assert set(SERVICES) == {
        *("service", "updaters", "index", "night", "ray-head", "ray-worker"),
        *("kafka", "mlflow", "postgres", "s3", "bucket"),
    }
    assert "controller" in SERVICES["kafka"]["environment"]["KAFKA_PROCESS_ROLES"]
    assert SERVICES["kafka"]["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_and_everything_is_bounded(name: str) -> None:
    """OPS-9, OPS-11: memory, logs and privileges of every container."""
    service = SERVICES[name]
    assert re.search(r":v?\d+\.\d+", service["image"])
    assert "latest" not in service["image"]
    assert "mem_limit" in service
    assert service["logging"]["options"]["max-size"]
    assert "no-new-privileges:true" in service["security_opt"]


def test_what_runs_all_the_time_has_a_health_check() -> None:
    """OPS-9: of its own, or its image's."""
    for name, service in SERVICES.items():
        check = service.get("healthcheck", {})
        once = "profiles" in service or name == "bucket"
        assert check.get("disable", False) == once
        assert once or "test" in check or "build" in service


def test_nothing_is_reached_from_beyond_this_host() -> None:
    """OPS-11: published ports are loopback's."""
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert sorted(published) == ["127.0.0.1:5000:5000", "127.0.0.1:8080:8080", "127.0.0.1:9094:9094"]
    assert FILE["networks"]["tracking"]["internal"]
    assert SERVICES["postgres"]["networks"] == SERVICES["s3"]["networks"] == ["tracking"]


def test_references_lead_somewhere() -> None:
    """OPS-9: volumes, secrets, configs, networks, services and build targets are there; none is left over."""
    stages = build_stages((ROOT / "infra/docker/Dockerfile").read_text(encoding="utf-8"))
    used: dict[str, set[str]] = {"volumes": set(), "secrets": set(), "configs": set(), "networks": {"default"}}
    for service in SERVICES.values():
        used["volumes"] |= {volume.split(":")[0] for volume in service.get("volumes", ()) if volume[0].isalpha()}
        for kind in ("secrets", "configs"):
            used[kind] |= {each if isinstance(each, str) else each["source"] for each in service.get(kind, ())}
        used["networks"] |= set(service.get("networks", ()))
        assert set(service.get("depends_on", ())) <= set(SERVICES)
        if build := service.get("build"):
            assert (COMPOSE.parent / build["context"]).resolve() == ROOT
            assert (ROOT / build["dockerfile"]).is_file()
            assert build["target"] in stages
    assert {kind: set(FILE[kind]) for kind in used} == used


def test_whoever_waits_for_health_waits_for_what_tells_it() -> None:
    """OPS-9: else it would wait for ever."""
    for service in SERVICES.values():
        for name, wait in service.get("depends_on", {}).items():
            if wait["condition"] == "service_healthy":
                assert not SERVICES[name].get("healthcheck", {}).get("disable", False)
            else:
                assert SERVICES[name]["restart"] == "on-failure"


def test_secrets_come_from_the_environment() -> None:
    """OPS-11: whatever must be given has a line without a value in .env.example, and no default here."""
    asked = set(re.findall(r"\$\{(\w+)", TEXT)) | {secret["environment"] for secret in FILE["secrets"].values()}
    given = dict(line.split("=") for line in EXAMPLE.splitlines() if line and not line.startswith("#"))
    assert given == dict.fromkeys(asked, "")
    assert re.findall(r"\$\{\w+(?!:\?)\W", TEXT.replace(":?}", ":?")) == []
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_ray_asks_for_its_token() -> None:
    """OPS-11, OPS-11a: whoever reads it is weft alone."""
    for name in ("ray-head", "ray-worker", "index"):
        environment = SERVICES[name]["environment"]
        assert environment["RAY_AUTH_MODE"] == "token"
        (token,) = SERVICES[name]["secrets"]
        assert environment["RAY_AUTH_TOKEN_PATH"] == f"/run/secrets/{token['source']}"
        assert (token["mode"], token["uid"]) == ("0600", "10001")
