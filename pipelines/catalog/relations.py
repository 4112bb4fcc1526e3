"""Relations that were declared in a store by a command or from Python, beside those that documents declare (GRA-1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pipelines.catalog.pointer import PointerFile
from pipelines.domain.errors import CorruptionError
from pipelines.domain.links import Relation
from pipelines.runtime.storage.files import write_atomically

RELATIONS_FILE = "relations.json"
"""Replaced atomically; searches see it as they see what is live."""

_RELATIONS = TypeAdapter(tuple[Relation, ...])


class RelationFile:
    """Reads and changes the declared relations of one store; writers of all processes take turns."""

    def __init__(self, root: Path, pointer: PointerFile) -> None:
        self.path = root / RELATIONS_FILE
        self._pointer = pointer

    def read(self) -> tuple[Relation, ...]:
        """All of them, in the order of URI, kind and target; none in a store without any.

        Raises:
            CorruptionError: The file holds no relations.
        """
        try:
            return _RELATIONS.validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return ()
        except ValidationError as error:
            raise CorruptionError(
                f"{self.path}: expected declared relations, found: {error}; mend or remove it"
            ) from error

    def change(self, change: Callable[[Sequence[Relation]], Sequence[Relation]]) -> None:
        """Replace the relations by what `change` makes of them; of equal ends and kinds the first one stays."""
        with self._pointer.writing():
            distinct: dict[tuple[str, str, str], Relation] = {}
            for each in change(self.read()):
                distinct.setdefault((each.uri, each.kind, each.target), each)
            ordered = tuple(distinct[key] for key in sorted(distinct))
            write_atomically(self.path, _RELATIONS.dump_json(ordered, indent=1) + b"\n")
