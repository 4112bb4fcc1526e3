"""All settings in one value: `conf`, over it the store's, files, environment and `--set` (OPS-3, OPS-3a)."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import PrivateAttr, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from weft.chunking.settings import ChunkingSettings
from weft.consolidation.settings import ConsolidationSettings
from weft.domain.errors import ConfigurationError, StoreError, WeftError
from weft.domain.sections import Count, Section
from weft.embedding.settings import EmbeddingSettings
from weft.evaluation.settings import EvaluationSettings, QueryLogSettings
from weft.extraction.settings import ExtractionSettings
from weft.feedback.settings import FeedbackSettings
from weft.indexes.settings import IndexSettings
from weft.ingestion.settings import IngestSettings, SourceSettings
from weft.learning.priors import Priors
from weft.lessons.settings import LessonSettings
from weft.retrieval.settings import RetrievalSettings
from weft.runtime.settings import ClusterSettings, KafkaSettings, ServeSettings, TrackingSettings
from weft.runtime.storage.errors import advice_on
from weft.runtime.storage.objects import is_url
from weft.runtime.storage.working_copy import make_working_copy, place_of, url_of
from weft.shared_settings import keep_shared, read_shared, require_agreement

_PACKAGE = Path(__file__).resolve().parent
CONF = _PACKAGE / "conf" if (_PACKAGE / "conf").is_dir() else _PACKAGE.parents[1] / "conf"
"""The configuration: inside the package where it was installed, at the top of a checkout."""

ENVIRONMENT_PREFIX = "WEFT__"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # a path made of a URL has one slash left


class StorageSettings(Section):
    """Where all that weft keeps lies, or the copy of it to work in; what becomes of settings that differ from it."""

    local: str | None
    root: str
    settings: Literal["kept", "given", "changed"]
    keep_generations: Count
    _url: str | None = PrivateAttr(None)

    @property
    def place(self) -> str:
        """The store as people name it: a folder, or a URL."""
        return self._url or self.root

    def model_post_init(self, _context: object) -> None:
        """Keep the URL of a working copy, for other hosts."""
        self._url = url_of(Path(self.root))

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """On the host that the settings were sent to there is a working copy from here on, too."""
        super().__setstate__(state)
        if self._url is not None:
            make_working_copy(Path(self.root), self._url)

    @field_validator("root")
    @classmethod
    def _is_folder(cls, root: str, info: ValidationInfo) -> str:
        if not root.strip() or (_URL.match(root) and not is_url(root)):
            raise ValueError("expected a folder on a disk of this machine, or the URL of an object store")
        try:
            return str(place_of(root, info.data.get("local")))
        except WeftError as error:
            raise ValueError(str(error)) from error


class Settings(Section):
    """Every section of the configuration, validated."""

    storage: StorageSettings
    cluster: ClusterSettings
    chunking: ChunkingSettings
    ingest: IngestSettings
    embedding: EmbeddingSettings
    index: IndexSettings
    kafka: KafkaSettings
    feedback: FeedbackSettings
    retrieval: RetrievalSettings
    priors: Priors
    lessons: LessonSettings
    tracking: TrackingSettings
    evaluation: EvaluationSettings
    query_log: QueryLogSettings
    consolidation: ConsolidationSettings
    extraction: ExtractionSettings
    serve: ServeSettings
    sources: tuple[SourceSettings, ...]

    @property
    def fingerprint(self) -> str:
        """First 16 hex digits of the SHA-256 over all values: kept in every manifest and MLflow run."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def load_settings(
    files: Sequence[Path] = (),  # YAML files with sections at their top; later ones override earlier ones
    assignments: Sequence[str] = (),  # "section.key=value", the value in YAML
    *,
    environment: Mapping[str, str] | None = None,
    conf: Path | None = None,  # the folder of `base` and `priors.yaml`; None for the one that came with weft
) -> Settings:
    """Read `conf/base/*.yaml` and `conf/priors.yaml`, over them the store's, files, environment and assignments.

    In a list that is given, `+` as the first item adds the others to those below; without it the list replaces them.

    Raises:
        ConfigurationError: A file cannot be read, a key is unknown (the nearest known one is named), a value does not
            fit its type, or settings differ from those that the store keeps.
    """
    base = conf or CONF
    settings = _composed(_base(base), files, assignments, environment)
    root = Path(settings.storage.root)
    if stored := read_shared(root):
        values = _base(base)
        _overlay_existing(values, stored)
        settings = _composed(values, files, assignments, environment)
        if settings.storage.settings == "kept":
            require_agreement(settings.model_dump(mode="json"), stored, root)
    return settings


def store_settings(store: str | os.PathLike[str], assignments: Sequence[str] = ()) -> Settings:
    """The settings of a store, and over them assignments as "section.key=value"."""
    return load_settings(assignments=[*assignments, f"storage.root={json.dumps(str(place_of(os.fspath(store))))}"])


def require_store(settings: Settings) -> Path:
    """The folder of the store.

    Raises:
        StoreError: There is none: a name mistyped would look like a store in which nothing was ever done.
    """
    root = Path(settings.storage.root)
    if not root.is_dir():
        raise StoreError(f"expected a store in {root}, found no such folder: name it with --store or storage.root")
    return root


def keep_settings(settings: Settings) -> None:
    """Write those settings into the store that all its processes share, where it keeps none, or they are to change."""
    values = settings.model_dump(mode="json")
    keep_shared(Path(settings.storage.root), values, change=settings.storage.settings == "changed")


def _composed(
    values: dict[str, Any], files: Sequence[Path], assignments: Sequence[str], environment: Mapping[str, str] | None
) -> Settings:
    for file in files:
        _overlay(values, _mapping(file))
    for path, value in _from_environment(os.environ if environment is None else environment):
        try:
            _assign(values, path, value)
        except ConfigurationError as error:  # a variable is set elsewhere and long ago: it is named
            raise ConfigurationError(f"{ENVIRONMENT_PREFIX}{'__'.join(path).upper()}: {error}") from error
    for assignment in assignments:
        _assign(values, *_parsed(assignment))
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError("; ".join(_explained(dict(item)) for item in error.errors())) from error


def _base(conf: Path) -> dict[str, Any]:
    files = sorted((conf / "base").glob("*.yaml"))
    files += [file for file in [conf / "priors.yaml"] if file.exists()]
    values = {file.stem: deepcopy(_read_once(file, file.stat().st_mtime_ns if file.exists() else 0)) for file in files}
    return _with_shared_rows(values)


def _with_shared_rows(values: dict[str, Any]) -> dict[str, Any]:
    """Tables in which each row has what the row `all` says and it does not; `all` itself is none."""
    rows = {key: _with_shared_rows(row) if isinstance(row, dict) else row for key, row in values.items()}
    if isinstance(shared := rows.pop("all", None), dict):
        for key, row in rows.items():
            rows[key] = deepcopy(shared)
            _overlay(rows[key], row)
    return rows


@lru_cache(maxsize=64)
def _read_once(file: Path, _changed_ns: int) -> Any:
    # The parser in C is nine times as fast. Brackets nested deep end it and the process, so it reads these files alone.
    return _content(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _mapping(file: Path) -> dict[str, Any]:
    content = _content(file, yaml.SafeLoader)
    if not isinstance(content, dict):
        raise ConfigurationError(f"{file}: expected a mapping at the top, found {type(content).__name__}")
    return content


def _content(file: Path, parser: type[yaml.SafeLoader]) -> Any:
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), parser)  # noqa: S506  a safe one in either case
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        advice = advice_on(error, otherwise="mend that place")
        raise ConfigurationError(f"{file}: expected a readable YAML file, found: {error}: {advice}") from error
    return {} if content is None else content


def _overlay(values: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(values.get(key), dict):
            _overlay(values[key], value)
        else:
            values[key] = _added(values.get(key), value)


def _overlay_existing(values: dict[str, Any], stored: Mapping[str, Any]) -> None:
    """Lay over what a store keeps; what this version does not have any more, or in another form, counts for nothing."""
    for key, value in stored.items():
        if isinstance(value, Mapping) and isinstance(values.get(key), dict):
            _overlay_existing(values[key], value)
        elif key in values and not (isinstance(value, Mapping) or isinstance(values[key], dict)):
            values[key] = value


def _added(below: Any, value: Any) -> Any:
    """A list of `+` and further items as the items below and those; all else as it is."""
    if isinstance(below, list) and isinstance(value, list) and value[:1] == ["+"]:
        return [*below, *value[1:]]
    return value


def _from_environment(environment: Mapping[str, str]) -> Iterable[tuple[list[str], Any]]:
    for name, raw in sorted(environment.items()):
        if name.startswith(ENVIRONMENT_PREFIX):
            # The value may be a secret, which nothing may quote.
            yield name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__"), _value(raw, name)


def _parsed(assignment: str) -> tuple[list[str], Any]:
    path, sign, raw = assignment.partition("=")
    if not sign or not path:
        raise ConfigurationError(f"--set {assignment!r}: expected section.key=value")
    return path.split("."), _value(raw, f"--set {assignment!r}")


def _value(raw: str, place: str) -> Any:
    try:
        return yaml.safe_load(raw)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigurationError(
            f"{place}: expected a value in YAML; put quotes around a text that begins as something else does there, "
            'such as "[a", "*a" or "2026-13-01"'
        ) from error


def _assign(values: dict[str, Any], path: Sequence[str], value: Any) -> None:
    *sections, key = path
    # In a table, such as weights by signal, what is not named is none: the model says which keys there may be.
    closed = not sections or bool(_fields_at(sections))
    for depth, section in enumerate(sections):
        child = values.get(section)
        if not isinstance(child, dict):
            raise ConfigurationError(_unknown(path[: depth + 1], values.keys()))
        values = child
    if closed and key not in values:
        raise ConfigurationError(_unknown(path, values.keys()))
    values[key] = _added(values.get(key), value)


def _unknown(path: Sequence[str], existing: Iterable[str]) -> str:
    names = sorted(str(name) for name in existing)
    nearest = difflib.get_close_matches(path[-1], names, n=1, cutoff=0.0)
    hint = f"; nearest known: {'.'.join([*path[:-1], nearest[0]])}" if nearest else ""
    return f"unknown setting {'.'.join(path)}{hint}"


def _explained(item: Mapping[str, Any]) -> str:
    path = [str(part) for part in item["loc"]]
    if item["type"] == "extra_forbidden":
        return _unknown(path, _fields_at(path[:-1]))
    if item["type"] == "missing":
        return f"missing setting {'.'.join(path)}: every value is stated in conf/base"
    if _is_secret(path):
        if item["type"] == "value_error":
            return f"{'.'.join(path)}: {item['ctx']['error']}"
        return f"{'.'.join(path)}: expected a text; put quotes around one that is a number or another thing in YAML"
    if item["type"] == "value_error" and isinstance(item["input"], dict):  # a section, which may hold secrets
        return f"{'.'.join(path)}: {item['ctx']['error']}"
    return f"{'.'.join(path)}: {item['msg']}, found {item['input']!r}"


def _is_secret(path: Sequence[str]) -> bool:
    field = _fields_at(path[:-1]).get(path[-1]) if path else None
    return field is not None and SecretStr in {field.annotation, *get_args(field.annotation)}


def _fields_at(path: Sequence[str]) -> Mapping[str, FieldInfo]:
    model: Any = Settings
    for name in path:
        field = getattr(model, "model_fields", {}).get(name)
        if field is None:
            return {}
        model = field.annotation
    fields: Mapping[str, FieldInfo] = getattr(model, "model_fields", {})
    return fields
