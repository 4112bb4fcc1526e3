"""What settled sessions draw on allowances, and the share of it that counts (LRN-3, LRN-20).

One rule: of what all settled sessions of a principal said on a day, as large a share counts as its allowance leaves
beside what was said outside of sessions. What came of each is a sum of integers, and the share follows from the sums
alone. So the order of merges changes nothing, and when a session is unlearned the others count as if it had never been.

What nobody can take out again is counted as it comes, up to the allowance (`updates`): that needs no sum for each
principal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from weft.feedback.fold.names import Draw
from weft.feedback.settings import LimitSettings
from weft.feedback.store.rows import delete_rows
from weft.learning.evidence import Evidence, EvidenceKey
from weft.learning.observe.impressions import EXAMINATION
from weft.learning.parameters import SURPLUS

_KEY = ", ".join(EvidenceKey._fields)
_OF = "payer = ? and allowance = ? and day = ?"


def counted(connection: sqlite3.Connection, draws: Iterable[Draw], limits: LimitSettings) -> Evidence:
    """What settled sessions have in the shared evidence by some allowances: what counts, and the rest as surplus."""
    return Evidence.sum(_shared(connection, draw, limits.daily_of(draw.allowance)) for draw in draws)


def drawn_by_settled(connection: sqlite3.Connection, draws: Iterable[Draw]) -> set[Draw]:
    """Those allowances that settled sessions draw on."""
    if connection.execute("select 1 from merged_evidence limit 1").fetchone() is None:
        return set()
    here = f"select 1 from merged_evidence where {_OF} limit 1"  # noqa: S608 - names of ours
    return {draw for draw in draws if connection.execute(here, draw).fetchone()}


def forget_days(connection: sqlite3.Connection, oldest_day: int) -> None:
    """Forget what was drawn on days on which nothing more happens, where no remembered session may still change it."""
    for table in ("allowances", "merged_evidence"):
        remembered = (
            f"select 1 from overlay_draws where overlay_draws.day = {table}.day"  # noqa: S608 - names of ours
            f" and overlay_draws.payer = {table}.payer and overlay_draws.allowance = {table}.allowance"
        )
        delete_rows(connection, table, f"day < ? and not exists ({remembered})", (oldest_day,))
    connection.execute("delete from newcomers where since <= ?", (oldest_day,))


def _shared(connection: sqlite3.Connection, draw: Draw, daily: int) -> Evidence:
    drawn = dict(connection.execute(f"select merged, micro from allowances where {_OF}", draw))  # noqa: S608
    left, whole = max(0, daily - drawn.get(0, 0)), drawn.get(1, 0)
    rows = connection.execute(f"select {_KEY}, micro from merged_evidence where {_OF}", draw)  # noqa: S608
    all_of_it = {EvidenceKey(*key): micro for *key, micro in rows}
    if whole <= left:
        return Evidence(all_of_it)
    counts = {key: micro * left // whole for key, micro in all_of_it.items()}
    # Of clicks that do not count there is no trace: they stand beside what was shown, which counts as a whole.
    beside = {
        key._replace(parameter=SURPLUS + key.parameter): micro - counts[key]
        for key, micro in all_of_it.items()
        if key.parameter != EXAMINATION
    }
    return Evidence(counts | beside)
