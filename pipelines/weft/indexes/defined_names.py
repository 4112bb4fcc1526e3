"""Which chunks define a name, looked up by the last part of a qualified one (RET-22)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.domain.arrays import Ints

_QUALIFIERS = r"^.*(?:[.:#])"
_NOWHERE: Ints = np.zeros(0, dtype=np.int64)


def unqualified(symbol: str) -> str:
    """The last part of a symbol.

    Examples:
        >>> unqualified("Queue.Item::close")
        'close'
    """
    return re.sub(_QUALIFIERS, "", symbol)


class DefinedNames:
    """Places of the chunks that bear a name as their symbol, and of those that define it, by name; immutable."""

    def __init__(
        self,
        symbols: pa.ChunkedArray[Any],
        defines: pa.ChunkedArray[Any],
        joined: Mapping[int, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        """Read the columns `symbol` and `defines` of chunks, a row for each place, and what else places bear."""
        names = defines.combine_chunks()
        further = [(name, place) for place, some in joined.items() for name in some]
        borne = pa.concat_arrays([symbols.combine_chunks(), pa.array([name for name, _ in further], pa.string())])
        places = np.concatenate([np.arange(len(symbols)), np.array([place for _, place in further], dtype=np.int64)])
        self._bearing = _Places(borne, places)
        self._defining = _Places(pc.list_flatten(names), pc.list_parent_indices(names).to_numpy())

    def bearing(self, name: str) -> Ints:
        """Places of chunks of whose symbols one ends with a name, ascending."""
        return self._bearing.of(name)

    def defining(self, name: str) -> Ints:
        """Places of chunks in whose text a name is defined, ascending."""
        return self._defining.of(name)


class _Places:
    def __init__(self, names: pa.Array[Any], places: Ints) -> None:
        named = pc.is_valid(names)
        last = pc.replace_substring_regex(names.filter(named), pattern=_QUALIFIERS, replacement="")
        encoded = last.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        self._names = encoded.dictionary.take(order)  # sorted by their bytes, as Python sorts letters
        rank = np.empty(len(order), dtype=np.int64)
        rank[order.to_numpy()] = np.arange(len(order))
        ranks = rank[encoded.indices.to_numpy()]
        by_name = np.argsort(ranks, kind="stable")
        self._ranks, self._sorted = ranks[by_name], places[named.to_numpy(zero_copy_only=False)][by_name]

    def of(self, name: str) -> Ints:
        at = bisect_left(self._names, name, key=str)
        if at == len(self._names) or str(self._names[at]) != name:
            return _NOWHERE
        return np.unique(self._sorted[slice(*np.searchsorted(self._ranks, [at, at + 1]))])
