"""Relations that were declared in a store by a command or from Python, beside those that documents declare (GRA-1)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pipelines.domain.errors import CorruptionError
from pipelines.domain.links import Relation
from pipelines.runtime.storage.files import write_atomically

RELATIONS_FILE = "relations.json"
"""Replaced atomically; searches see it as they see what is live."""

_RELATIONS = TypeAdapter(tuple[Relation, ...])


def read_relations(root: Path) -> tuple[Relation, ...]:
    """All that were declared in a store, in the order of URI, kind and target.

    Raises:
        CorruptionError: The file holds no relations.
    """
    path = root / RELATIONS_FILE
    try:
        return _RELATIONS.validate_json(path.read_bytes())
    except FileNotFoundError:
        return ()
    except ValidationError as error:
        raise CorruptionError(f"{path}: expected declared relations, found: {error}; mend or remove it") from error


def write_relations(root: Path, relations: Iterable[Relation]) -> None:
    """Replace them; of equal ends and kinds the first one stays. The caller lets nobody else write."""
    distinct: dict[tuple[str, str, str], Relation] = {}
    for each in relations:
        distinct.setdefault((each.uri, each.kind, each.target), each)
    ordered = tuple(distinct[key] for key in sorted(distinct))
    write_atomically(root / RELATIONS_FILE, _RELATIONS.dump_json(ordered, indent=1) + b"\n")
