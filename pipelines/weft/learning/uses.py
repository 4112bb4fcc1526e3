"""The masses of what became of contents, in columns: hundreds of thousands are read without an object for each (FBK-6).

Searches read them anew whenever feedback came in, so that this is what decides how soon they see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from weft.domain.arrays import Flags, Ints
from weft.domain.ids import ContentHash


class UsageKey(NamedTuple):
    """Where mass about the use of one content is kept (FBK-6)."""

    day: int
    content_hash: str
    # "positive" or "negative" for outcomes, "verdict:…" for those that somebody called so (`verdicts`);
    # "retrieval", "inclusion" or "reference" for uses, whatever came of them; "accurate" or "inaccurate" for what
    # was looked at
    bin: str
    principal: str = ""  # fingerprint of who said so; "" where that is not known
    question: str = ""  # fingerprint of what was asked; "" where that is not known, and of uses


_TEXTS = UsageKey._fields[1:]
_WORD = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema([("day", pa.int32()), *((name, _WORD) for name in _TEXTS), ("micro", pa.int64())])
_SURE = 2.0**62  # sums of magnitudes below it fit int64, whatever a float rounds


class DictionaryColumn(NamedTuple):
    """A dictionary-encoded column: row i holds `values[codes[i]]`; some `values` may be in no row."""

    codes: Ints
    values: Sequence[str]

    def holds(self, *wanted: str) -> Flags:
        """Which rows hold one of these values, bool (rows,)."""
        return np.array([value in wanted for value in self.values], dtype=bool)[self.codes]


class UseColumns(NamedTuple):
    """The rows of uses; all columns (rows,)."""

    day: Ints
    content: DictionaryColumn
    bin: DictionaryColumn
    principal: DictionaryColumn
    question: DictionaryColumn
    micro: Ints


class Uses(Mapping[UsageKey, int]):
    """Masses by key, none of them 0; immutable. As a mapping it makes its objects when it is first asked for one."""

    __slots__ = ("_columns", "_masses", "_table")

    def __init__(self, table: pa.Table) -> None:
        """Take what `of`, `of_table` and `summed` make."""
        self._table = table
        self._masses: dict[UsageKey, int] | None = None
        self._columns: UseColumns | None = None

    @classmethod
    def of(cls, masses: Mapping[UsageKey, int]) -> Uses:
        """The same masses in columns; none may be 0."""
        if isinstance(masses, Uses):
            return masses
        if not masses:
            return cls(_SCHEMA.empty_table())
        day, *texts = zip(*masses, strict=True)
        words = [pa.array(column, pa.string()).dictionary_encode() for column in texts]
        uses = cls(_table(pa.array(day, pa.int32()), words, pa.array(masses.values(), pa.int64())))
        uses._masses = dict(masses)
        return uses

    @classmethod
    def of_table(cls, table: pa.Table) -> Uses:
        """The rows of a table with the fields of `UsageKey` and `micro`; masses of equal keys add up.

        Raises:
            OverflowError: A mass leaves the range of int64.
        """
        whole = table.unify_dictionaries().combine_chunks()
        words = [_met(_one(whole[name]).dictionary_encode()) for name in _TEXTS]
        return cls._added([(cls(_table(_one(whole["day"]), words, _one(whole["micro"]))), 1)])

    @classmethod
    def summed(cls, parts: Iterable[tuple[Uses, int]]) -> Uses:
        """All parts together, each times 1 or −1.

        Raises:
            OverflowError: A mass leaves the range of int64.
        """
        some = [(part, sign) for part, sign in parts if len(part)]
        return some[0][0] if len(some) == 1 and some[0][1] > 0 else cls._added(some)

    @classmethod
    def _added(cls, some: Sequence[tuple[Uses, int]]) -> Uses:
        if not sum(len(part) for part, _ in some):
            return cls(_SCHEMA.empty_table())
        # Arrow's sums of int64 wrap silently. Where the sizes together stay far below its range none can; else they are
        # added one by one, as Python's integers.
        size = sum(pc.sum(pc.abs(pc.cast(part._table["micro"], pa.float64(), safe=False))).as_py() for part, _ in some)
        if size >= _SURE:
            return cls.of(_one_by_one(some))
        tables = [part._table if sign > 0 else _turned(part._table) for part, sign in some]
        whole = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        columns = {name: _one(whole[name]) for name in _TEXTS}
        coded = pa.table(
            {"day": whole["day"], **{name: each.indices for name, each in columns.items()}, "micro": whole["micro"]}
        )
        # One thread: the order of the groups is that in which keys are met, and so are the bytes that are written.
        sums = coded.group_by(["day", *_TEXTS], use_threads=False).aggregate([("micro", "sum")])
        nonzero = sums.filter(pc.field("micro_sum") != 0).combine_chunks()
        words = [pa.DictionaryArray.from_arrays(_one(nonzero[name]), each.dictionary) for name, each in columns.items()]
        return cls(_table(_one(nonzero["day"]), words, _one(nonzero["micro_sum"])))

    def renamed(self, names: Mapping[ContentHash, ContentHash]) -> Uses:
        """The same masses with contents by other names; masses of keys that become equal add up.

        Raises:
            OverflowError: A mass leaves the range of int64.
        """
        place = self._table.schema.get_field_index("content_hash")
        content = _one(self._table["content_hash"])
        words = content.dictionary.to_pylist()
        if names.keys().isdisjoint(words):
            return self
        renamed = pa.DictionaryArray.from_arrays(
            content.indices, pa.array([names.get(word, word) for word in words], pa.string())
        )
        column = renamed.dictionary_decode().dictionary_encode()  # each word once
        return self._added([(Uses(self._table.set_column(place, _SCHEMA.field("content_hash"), column)), 1)])

    def columns(self) -> UseColumns:
        """All rows, for who reads them together."""
        if self._columns is None:
            words = (_one(self._table[name]) for name in _TEXTS)
            content, bin_, principal, question = (
                DictionaryColumn(_whole(each.indices), each.dictionary.to_pylist()) for each in words
            )
            day, micro = (_whole(self._table[name]) for name in ("day", "micro"))
            self._columns = UseColumns(day, content, bin_, principal, question, micro)
        return self._columns

    def ordered(self) -> pa.Table:
        """All rows in ascending order of their keys, with the fields of `UsageKey` and `micro`; texts by number."""
        words = [_one(self._table[name]) for name in _TEXTS]
        ranks = [_ranks(each.dictionary)[each.indices.to_numpy()] for each in words]
        order: Any = pa.array(np.lexsort([*reversed(ranks), self._table["day"].to_numpy()]))
        return self._table.take(order)

    def __getitem__(self, key: UsageKey) -> int:
        return self._all[key]

    def __iter__(self) -> Iterator[UsageKey]:
        return iter(self._all)

    def __len__(self) -> int:
        rows: int = self._table.num_rows
        return rows

    def __repr__(self) -> str:
        return repr(self._all)

    def __reduce__(self) -> tuple[type[Uses], tuple[pa.Table]]:
        return Uses, (self._table,)

    @property
    def _all(self) -> dict[UsageKey, int]:
        if self._masses is None:
            columns: list[list[Any]] = [self._table[name].to_pylist() for name in _SCHEMA.names]
            *keys, micro = columns
            self._masses = dict(zip(map(UsageKey._make, zip(*keys, strict=True)), micro, strict=True))
        return self._masses


def numbered(*codes: tuple[Ints, int]) -> tuple[Ints, Ints]:
    """Rows numbered by several codes together: the first row of each number, and the number of each row."""
    (number, _), *others = codes
    first = np.arange(len(number))
    for code, size in others:  # numbered anew each time, so that products stay within int64
        _, first, number = np.unique(number * max(1, size) + code, return_index=True, return_inverse=True)
    return first, number


def _ranks(words: Any) -> NDArray[np.int32]:
    """The place of each word among all, in the order of their characters, (words,)."""
    ranks = np.empty(len(words), dtype=np.int32)
    ranks[pc.array_sort_indices(words).to_numpy()] = np.arange(len(words))
    return ranks


def _met(column: Any) -> Any:
    """The same column without words that stand nowhere in it."""
    met, codes = np.unique(column.indices.to_numpy(), return_inverse=True)
    if len(met) == len(column.dictionary):
        return column
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), column.dictionary.take(pa.array(met)))


def _table(day: Any, words: Sequence[Any], micro: Any) -> pa.Table:
    return pa.Table.from_arrays([day, *words, micro], schema=_SCHEMA)


def _turned(table: pa.Table) -> pa.Table:
    place = table.schema.get_field_index("micro")
    return table.set_column(place, "micro", pc.negate(table["micro"]))


def _whole(numbers: Any) -> Ints:
    whole: Ints = numbers.to_numpy().astype(np.int64)
    return whole


def _one(column: Any) -> Any:
    """A column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _one_by_one(parts: Sequence[tuple[Uses, int]]) -> dict[UsageKey, int]:
    """Masses so great that they are added as Python's integers."""
    total: dict[UsageKey, int] = {}
    for part, sign in parts:
        for key, micro in part.items():
            total[key] = total.get(key, 0) + sign * micro
    within_int64(total)
    return {key: micro for key, micro in total.items() if micro}


def within_int64(masses: Mapping[Any, int]) -> None:
    """Say of masses that they fit.

    Raises:
        OverflowError: One does not; the message names it.
    """
    if masses and (min(masses.values()) < -(2**63) or max(masses.values()) >= 2**63):
        worst = max(masses, key=lambda key: abs(masses[key]))
        raise OverflowError(f"evidence: expected masses within int64, found {masses[worst]} at {worst}")
