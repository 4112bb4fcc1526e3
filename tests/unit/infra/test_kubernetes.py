"""OPS-9: what the manifests for Kubernetes say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.infra import MANIFESTS, build_stages, documents, manifests, pods
from weft.settings import load_settings

ALL = manifests()
CONTAINERS = [
    pytest.param(pod, container, id=f"{manifest['kind']}-{container['name']}-{number}")
    for manifest in ALL
    for number, pod in enumerate(pods(manifest))
    for container in pod["containers"]
]
SECRETS = {"weft-tokens": {"tokens"}, "weft-signing-key": {"signing_key"}, "weft-ray-token": set()}
"""Made by a person, as docs/deployment.md says."""


def of(kind: str) -> list[dict[str, Any]]:
    return [each for each in ALL if each["kind"] == kind]


def named(value: object, key: str) -> Iterator[Any]:
    """Every value under a key, however deep."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name == key:
                yield each
            yield from named(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from named(each, key)


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_a_pod_may_do_little(pod: dict[str, Any], container: dict[str, Any]) -> None:
    """OPS-11: it is not root, gains nothing, and has no credentials of the cluster."""
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_images_are_pinned_and_resources_set(pod: dict[str, Any], container: dict[str, Any]) -> None:
    """OPS-9: memory has a limit; what is mounted is there."""
    assert re.fullmatch(r"weft:\d+\.\d+\.\d+-(cpu|gpu)", container["image"])
    assert container["image"].rpartition("-")[2] in build_stages(
        (MANIFESTS[0].parents[1] / "docker/Dockerfile").read_text()
    )
    assert {"cpu", "memory"} <= set(container["resources"]["requests"])
    assert "memory" in container["resources"]["limits"]
    mounted = {mount["name"] for mount in container.get("volumeMounts", ())}
    assert mounted == {volume["name"] for volume in pod.get("volumes", ())}


def test_references_lead_somewhere() -> None:
    """OPS-9: volumes, settings, secrets, selectors, clusters and files."""
    (kustomization,) = documents(next(file for file in MANIFESTS if file.name == "kustomization.yaml"))
    by_hand = {"kustomization.yaml", "reindex.yaml", "rayservice.yaml"}
    assert set(kustomization["resources"]) == {file.name for file in MANIFESTS} - by_hand
    claims = {each["metadata"]["name"] for each in of("PersistentVolumeClaim")}
    assert set(named(ALL, "claimName")) == claims
    config = {each["metadata"]["name"] for each in of("ConfigMap")}
    assert {each["name"] for each in named(ALL, "configMapRef")} == config
    for reference in named(ALL, "secretKeyRef"):
        assert reference["key"] in SECRETS[reference["name"]]
    assert set(named(ALL, "secretName")) <= set(SECRETS)
    labels = {each.get("labels", {}).get("app.kubernetes.io/name") for each in named(ALL, "metadata")}
    for chosen in (*named(ALL, "matchLabels"), *named(of("Service"), "selector")):
        assert chosen.get("app.kubernetes.io/name") in labels | {None}
    (job,) = of("RayJob")
    assert job["spec"]["clusterSelector"]["ray.io/cluster"] in {each["metadata"]["name"] for each in of("RayCluster")}


def test_no_secret_has_a_value_here() -> None:
    """OPS-11: Secrets are named, and made by a person."""
    assert of("Secret") == []
    for variable in (each for group in named(ALL, "env") for each in group):
        assert set(variable) == {"name", "valueFrom"}
    for settings in of("ConfigMap"):
        assert [name for name in settings["data"] if re.search("PASSWORD|TOKEN|KEY", name)] == []


def test_settings_are_settings() -> None:
    """OPS-3: what weft is told is what it knows."""
    (config,) = of("ConfigMap")
    settings = load_settings(environment=config["data"])
    assert settings.kafka.bootstrap == config["data"]["WEFT__KAFKA__BOOTSTRAP"]


def test_every_cluster_of_ray_asks_for_its_token() -> None:
    """OPS-11: by a Secret that stays the same when a cluster is made anew."""
    clusters = [*(each["spec"] for each in of("RayCluster")), *named(of("RayService"), "rayClusterConfig")]
    assert len(clusters) == 2
    for cluster in clusters:
        assert cluster["authOptions"] == {"mode": "token", "secretName": "weft-ray-token"}
    constraints = (MANIFESTS[0].parents[1] / "python/constraints.txt").read_text()
    assert {f"ray=={cluster['rayVersion']}\n" in constraints for cluster in clusters} == {True}


def test_the_service_is_asked_whether_it_is_ready() -> None:
    """OPS-10a: and restarted only where it does not answer at all."""
    (serve,) = (each for each in of("Deployment") if each["metadata"]["name"] == "weft-serve")
    (pod,) = pods(serve)
    (container,) = pod["containers"]
    paths = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert paths == {"startup": "/readyz", "readiness": "/readyz", "liveness": "/healthz"}
    assert pod["terminationGracePeriodSeconds"] > 30 + int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert serve["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_there_is_one_set_of_updaters_and_one_night_at_a_time() -> None:
    """OPS-10a: a second one would take partitions over; codes that no restart mends end a night."""
    (updaters,) = (each for each in of("Deployment") if each["metadata"]["name"] == "weft-updaters")
    assert (updaters["spec"]["replicas"], updaters["spec"]["strategy"]["type"]) == (1, "Recreate")
    (night,) = of("CronJob")
    assert night["spec"]["concurrencyPolicy"] == "Forbid"
    (rule,) = night["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert (rule["action"], rule["onExitCodes"]["values"]) == ("FailJob", [2, 78])


def test_topics_are_those_of_the_settings() -> None:
    """FBK-1: partitions never change, so that they must be right at first."""
    feedback = load_settings(environment={}).feedback
    partitions = {each["metadata"]["name"]: each["spec"]["partitions"] for each in of("KafkaTopic")}
    assert partitions == {feedback.topic: feedback.partitions, feedback.dead_letter_topic: 1}
    (topic,) = (each for each in of("KafkaTopic") if each["metadata"]["name"] == feedback.topic)
    assert topic["spec"]["config"]["message.timestamp.type"] == "LogAppendTime"
