"""How reports print figures: one form for every mean, interval and change."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Column, Table

from weft.cli.console.terminal import plain
from weft.evaluation.measures.compare import Difference
from weft.evaluation.measures.metrics import Estimate

LABELS = {
    "ndcg_at_10": "nDCG@10",
    "mrr_at_5": "MRR@5",
    "mrr_at_10": "MRR@10",
    "recall_at_20": "Recall@20",
    "recall_at_100": "Recall@100",
    "hit_rate_at_1": "Hit rate@1",
    "map": "MAP",
}


def titled(title: str, *columns: str | Column) -> Table:
    """An empty table below a title, nothing in which is markup."""
    return Table(*columns, box=None, title=plain(title), title_justify="left")


def figures(names: Sequence[str]) -> list[Column]:
    """Columns of numbers."""
    return [Column(name, justify="right") for name in names]


def mean_cells(estimate: Estimate) -> tuple[str, str]:
    """A mean, and its interval."""
    return f"{estimate.mean:.4f}", f"{estimate.low:.4f} – {estimate.high:.4f}"


def change_cells(difference: Difference) -> tuple[str, str]:
    """A mean change, and its interval."""
    change = difference.change
    return f"{change.mean:+.4f}", f"{change.low:+.4f} … {change.high:+.4f}"


def change_text(difference: Difference) -> str:
    """A mean change with its interval behind it."""
    return "{} ({})".format(*change_cells(difference))
