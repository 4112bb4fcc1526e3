"""Which content took the place of one that is no longer there: its text, edited, cut otherwise or moved (ARC-4).

What people said stays with the text that they saw; searches count it for what that text became. Two contents are
compared by the runs of three words that both hold, but for runs that stand everywhere. A text replaces another if it
holds at least `least_overlap` of the runs of the shorter one, and no other text has more in common with either. So
edited texts, halves of a text and a text of two halves match; a text that was written anew does not. Over several
generations overlaps multiply, so that a text which becomes another one step by step is lost at last.

People also name places, such as a heading of a page. What stood at a place that is gone, since its page was renamed or
its heading reworded, is noted beside (LRN-23).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weft.indexes import schemas
from weft.indexes.former_places import FORMER_PLACES, FORMER_PLACES_FILE
from weft.indexes.manifest import CHUNKS_FOLDER
from weft.indexes.settings import MergeSettings, RevisionSettings
from weft.runtime.clock import SECONDS_PER_DAY
from weft.runtime.storage.tables import TableQueries

REVISIONS_FILE = "revisions.parquet"

_COLUMNS = {"content_hash": pa.string(), "revision": pa.string(), "overlap": pa.float64(), "since": pa.float64()}
REVISIONS = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _COLUMNS.items()])
"""What took the place of contents that are gone: `overlap` of their texts, in (0, 1], and when the generation was made,
in seconds since the epoch, that held the old text last."""

_TOGETHER = 1_024  # rows written at once
_EVERYWHERE = 64  # contents, gone or new, that a run of words stands in: one that more hold tells nothing apart

# Words are runs of letters and digits, or single characters of scripts that are written without blanks.
_RUNS = r"""
select content_hash, unnest(list_distinct(list_transform(
    range(1, greatest(len(words) - 1, 2)), lambda i: hash(words[i], words[i + 1], words[i + 2])
))) as run
from (
    select content_hash,
        regexp_extract_all(
            lower(any_value(text)), '\p{{Han}}|\p{{Hiragana}}|\p{{Katakana}}|\p{{Thai}}|[\pL\pN]+'
        ) as words
    from {of} anti join {others} using (content_hash) group by content_hash
)
"""
_TELLING = """
select * from {name}_all anti join (select run from {name}_all group by run having count(*) > {most}) using (run)
"""
_SIZES = "select content_hash, count(*) as runs from {name} group by content_hash"
_PAIRS = """
select gone.content_hash as content_hash, new.content_hash as revision,
    count(*) / least(any_value(gone_sizes.runs), any_value(new_sizes.runs)) as overlap,
    count(*) / (any_value(gone_sizes.runs) + any_value(new_sizes.runs) - count(*)) as likeness
from gone join new using (run)
join gone_sizes on gone_sizes.content_hash = gone.content_hash
join new_sizes on new_sizes.content_hash = new.content_hash
group by gone.content_hash, new.content_hash
"""
_DIRECT = """
select content_hash, revision, overlap from pairs
where overlap >= {least}
qualify likeness = max(likeness) over (partition by content_hash)
    or likeness = max(likeness) over (partition by revision)
"""
# What took the place of a content before, or what took that one's place now; nothing of a content that is back.
_REVISIONS = """
select content_hash, revision, max(overlap) as overlap, max(since) as since from (
    select content_hash, revision, overlap, {made_at} as since from direct
    union all
    select content_hash, revision, overlap, since from earlier_revisions
    semi join written_chunks on written_chunks.content_hash = revision
    union all
    select earlier_revisions.content_hash, direct.revision, earlier_revisions.overlap * direct.overlap, since
    from earlier_revisions join direct on direct.content_hash = earlier_revisions.revision
) as noted anti join written_chunks using (content_hash)
where overlap >= {least} and since >= {oldest}
group by content_hash, revision
"""

# A place is a heading or a symbol of a page. Its lines move with every edit, and are noted for who named a line.
_PLACES = """
select distinct uri, coalesce(heading_path[-1], '') as heading, coalesce(symbol, '') as symbol,
    start_line, end_line, content_hash
from {chunks}
"""
_FORMER_PLACES = """
select uri, heading, symbol, start_line, end_line, content_hash, max(since) as since from (
    select *, {made_at} as since from ({before})
    union all by name
    select uri, heading, symbol, start_line, end_line, content_hash, since from earlier_former_places
) as noted anti join ({now}) as places using (uri, heading, symbol)
where since >= {oldest}
group by all
"""


@dataclass(frozen=True, slots=True)
class RevisionTask:
    """What is compared."""

    staging: Path  # folder of the generation to be, whose chunks have been written
    earlier: Path | None  # the generation before, its chunks verified; None where there is none
    made_at: float  # when that was made, seconds since the epoch
    work: Path  # folder for what is needed until the generation is complete
    settings: RevisionSettings
    merge: MergeSettings


def write_revisions(task: RevisionTask) -> None:
    """Write what took the place of contents that the generation before held, or those before it, and what stood where.

    Time and memory follow the texts that came or went, not those that stayed; running it again writes the same.
    """
    merge = task.merge
    with TableQueries(task.work / "revisions", memory_mb=merge.memory_mb, threads=merge.threads) as queries:
        before = None if task.earlier is None else task.earlier / CHUNKS_FOLDER
        if before is not None:
            queries.define("written_chunks", [task.staging / CHUNKS_FOLDER / "chunks.parquet"], schemas.CHUNKS)
            queries.define("earlier_chunks", [before / "chunks.parquet"], schemas.CHUNKS)
        for file, schema, rows in (
            (REVISIONS_FILE, REVISIONS, _revisions),
            (FORMER_PLACES_FILE, FORMER_PLACES, _former_places),
        ):
            out = task.staging / CHUNKS_FOLDER / file
            with pq.ParquetWriter(out, schema, compression="zstd", write_page_checksum=True) as writer:
                for table in rows(queries, task, before) if before is not None else ():
                    writer.write_table(table)


def _revisions(queries: TableQueries, task: RevisionTask, before: Path) -> Iterator[pa.Table]:
    queries.define("earlier_revisions", [before / REVISIONS_FILE], REVISIONS)
    # Only what came and what went is compared. Runs that stand in very many texts, such as a licence, say nothing of
    # which text took the place of which, and their join would be as large as the product.
    for name, of, others in (("gone", "earlier_chunks", "written_chunks"), ("new", "written_chunks", "earlier_chunks")):
        queries.keep(f"{name}_all", _RUNS.format(of=of, others=others))
        queries.keep(name, _TELLING.format(name=name, most=_EVERYWHERE))
        queries.keep(f"{name}_sizes", _SIZES.format(name=name))
    queries.keep("pairs", _PAIRS)
    least = task.settings.least_overlap
    queries.keep("direct", _DIRECT.format(least=least))
    rows = _REVISIONS.format(made_at=repr(task.made_at), least=least, oldest=repr(_oldest(task)))
    return queries.ordered(rows, ("content_hash", "revision"), REVISIONS, at_once=_TOGETHER)


def _former_places(queries: TableQueries, task: RevisionTask, before: Path) -> Iterator[pa.Table]:
    queries.define("earlier_former_places", [before / FORMER_PLACES_FILE], FORMER_PLACES)
    then, now = (_PLACES.format(chunks=chunks) for chunks in ("earlier_chunks", "written_chunks"))
    rows = _FORMER_PLACES.format(before=then, now=now, made_at=repr(task.made_at), oldest=repr(_oldest(task)))
    return queries.ordered(rows, FORMER_PLACES.names[:-1], FORMER_PLACES, at_once=_TOGETHER)


def _oldest(task: RevisionTask) -> float:
    return task.made_at - task.settings.days * SECONDS_PER_DAY
