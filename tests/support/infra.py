"""Reads what lies in infra/: Dockerfile, Compose, manifests, units and queries; fetches the schemas they follow."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
INFRA = ROOT / "infra"
DOCKERFILE = INFRA / "docker/Dockerfile"
COMPOSE = INFRA / "compose/compose.yaml"
MANIFESTS = sorted((INFRA / "kubernetes").glob("*.yaml"))
UNITS = sorted((INFRA / "systemd").iterdir())
RULES = INFRA / "prometheus/rules.yaml"
DASHBOARD = INFRA / "grafana/weft.json"


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile: its name, its options, and what follows them, continued lines joined."""

    name: str
    options: Mapping[str, str]
    rest: str

    @property
    def words(self) -> list[str]:
        """What follows, as a list: JSON, or words as a shell reads them."""
        return list(json.loads(self.rest)) if self.rest.startswith("[") else shlex.split(self.rest)


@dataclass
class BuildStage:
    """What stands from one FROM to the next."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)


def build_stages(text: str) -> dict[str, BuildStage]:
    """The stages of a Dockerfile by name."""
    stages: dict[str, BuildStage] = {}
    uncommented = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    for line in re.sub(r"\\\n\s*", " ", uncommented).splitlines():
        if not line.strip():
            continue
        name, _, rest = line.strip().partition(" ")
        options = dict(re.findall(r"--([a-z-]+)=(\S+) ", rest[: len(rest) - len(_without_options(rest))]))
        instruction = Instruction(name, options, _without_options(rest))
        if name == "FROM":
            base, _, called = instruction.words
            stages[called] = stage = BuildStage(base, called)
        else:
            stage.instructions.append(instruction)
    return stages


def _without_options(rest: str) -> str:
    return re.sub(r"^(--[a-z-]+=\S+\s+)+", "", rest)


def whole(stages: Mapping[str, BuildStage], target: str) -> list[Instruction]:
    """Every instruction that makes a target, those of the stages beneath it first."""
    stage = stages[target]
    return [*(whole(stages, stage.base) if stage.base in stages else ()), *stage.instructions]


def documents(file: Path) -> list[dict[str, Any]]:
    """The YAML documents of a file."""
    return [each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each]


def manifests() -> list[dict[str, Any]]:
    """Everything that Kubernetes is told, whichever file says it."""
    return [each for file in MANIFESTS for each in documents(file) if each["kind"] != "Kustomization"]


def pods(value: object) -> Iterator[dict[str, Any]]:
    """Every pod's spec within a manifest."""
    if isinstance(value, Mapping):
        if "containers" in value:
            yield dict(value)
        else:
            for each in value.values():
                yield from pods(each)
    elif isinstance(value, list):
        for each in value:
            yield from pods(each)


def unit_lines(unit: Path) -> dict[str, list[str]]:
    """The settings of a systemd unit, each with all its values."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def weft_calls() -> Iterator[tuple[str, list[str]]]:
    """Every call of `weft` in infra/, with where it stands: its words after "weft"."""
    stages = build_stages(DOCKERFILE.read_text(encoding="utf-8"))
    yield "Dockerfile", next(each.words for each in stages["weft"].instructions if each.name == "CMD")
    for name, service in documents(COMPOSE)[0]["services"].items():
        words = [*service.get("entrypoint", ["weft"]), *service.get("command", [])]
        if str(service["image"]).startswith("weft:") and "weft" in words:
            yield f"compose: {name}", words[words.index("weft") + 1 :]
    for manifest in manifests():
        for container in (each for pod in pods(manifest) for each in pod["containers"] if "args" in each):
            yield f"kubernetes: {container['name']}", container["args"]
        if entry := manifest.get("spec", {}).get("entrypoint"):
            yield "kubernetes: RayJob", shlex.split(entry)[1:]
    for unit in UNITS:
        for line in unit_lines(unit).get("ExecStart", []):
            yield unit.name, shlex.split(line)[1:]


def alert_rules() -> dict[str, dict[str, Any]]:
    """The alert rules by name."""
    return {rule["alert"]: rule for group in documents(RULES)[0]["groups"] for rule in group["rules"]}


def queries() -> dict[str, str]:
    """Every PromQL query by where it stands; variables of the dashboard have values."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in board["panels"]
        for target in panel.get("targets", ())
    }
    values = {"$__rate_interval": "5m", "$job": ".*"}
    for name, value in values.items():
        panels = {where: query.replace(name, value) for where, query in panels.items()}
    return {name: rule["expr"] for name, rule in alert_rules().items()} | panels


_SERIES = re.compile(r"\b(weft_\w+|up)\b(?:\{([^}]*)\})?")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
ADDED = {"job", "instance", "le"}  # by Prometheus when it reads a metric, and by histograms


def asked_of(query: str) -> tuple[dict[str, set[str]], set[str]]:
    """The series that a query reads, each with the labels that it is chosen by; and the labels that it groups by.

    >>> asked_of('sum by (job) (rate(weft_refused_total{reason="busy"}[5m]))')
    ({'weft_refused_total': {'reason'}}, {'job'})
    """
    read: dict[str, set[str]] = {}
    for name, chosen in _SERIES.findall(_GROUPING.sub("", query)):
        read.setdefault(name, set()).update(re.findall(r"(\w+)\s*[=!]~?", chosen))
    grouped = {label.strip() for group in _GROUPING.findall(query) for label in group.split(",") if label.strip()}
    return read, grouped


def exposed(text: str) -> dict[str, set[str]]:
    """The series of a page in Prometheus' text format, each with its labels.

    >>> exposed('# TYPE up gauge\\nup{job="a"} 1\\n')
    {'up': {'job'}}
    """
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, labels = re.split(r"[{ ]", line, maxsplit=1)[0], "", line.partition("{")[2].rpartition("}")[0]
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


class MissingSchemaError(Exception):
    """A schema cannot be had here; the text says why."""


def _ran(command: Iterable[str], **environment: str) -> str:
    command = list(command)
    if shutil.which(command[0]) is None:
        raise MissingSchemaError(f"{command[0]} is missing")
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, cwd="/"
    )
    if ended.returncode:
        raise MissingSchemaError(f"{' '.join(command[:4])}: {(ended.stderr or ended.stdout).strip()[-300:]}")
    return ended.stdout


def go_module(module: str) -> Path:
    """The folder of a Go module, "path@version"."""
    return Path(json.loads(_ran(["go", "mod", "download", "-json", module]))["Dir"])


def python_wheel(requirement: str) -> Path:
    """The wheel of a Python package, fetched once."""
    folder = ROOT / "build" / f"wheel-{hashlib.sha256(requirement.encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        staging = folder.with_name(f".{folder.name}-{os.getpid()}")
        _ran([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--dest={staging}", requirement])
        staging.rename(folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def maven_jar(artifact: str) -> Path:
    """The jar of an artifact, "group:name:version"."""
    _ran(["mvn", "-q", "-B", "dependency:get", f"-Dartifact={artifact}", "-Dtransitive=false"])
    group, name, version = artifact.split(":")
    place = _ran(["mvn", "-q", "-B", "help:evaluate", "-Dexpression=settings.localRepository", "-DforceStdout"])
    return Path(re.sub(r"\x1b\[\w*", "", place).strip(), *group.split("."), name, version, f"{name}-{version}.jar")


def strict(schema: Any) -> Any:
    """A structural schema of Kubernetes as JSON Schema that takes no field which it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items() if not key.startswith("x-")}
    if schema.get("x-kubernetes-int-or-string"):
        made = {"type": ["integer", "string"]}
    named = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    if named and "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    return made
