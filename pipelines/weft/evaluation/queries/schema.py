"""The tables of the query log, and the row that an answer becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from weft.domain.ranking import Answer, RankedResult, Signal


def table_schema(fields: Sequence[tuple[str, Any]]) -> pa.Schema:
    """A schema of columns by name and type."""
    return pa.schema([pa.field(name, kind) for name, kind in fields])


_WHEN = pa.timestamp("ms")  # in UTC
_HEAD = pa.struct(
    [("channel", pa.string()), ("rank", pa.int32()), ("content_hash", pa.string()), ("score", pa.float64())]
)
_HIT = pa.struct([("channel", pa.string()), ("rank", pa.int32()), ("score", pa.float64())])
_PART = pa.struct([("name", pa.string()), ("value", pa.float64()), ("weight", pa.float64()), ("amount", pa.float64())])
_WEIGHT = pa.struct(
    [("domain", pa.string()), ("signal", pa.string()), ("weight", pa.float64()), ("mean", pa.float64())]
)
_NAMED = pa.struct([("name", pa.string()), ("value", pa.float64())])
_TEXT_PAIR = pa.struct([("name", pa.string()), ("value", pa.string())])
_FAILED = pa.struct([("channel", pa.string()), ("reason", pa.string())])
_RESULT = pa.struct(
    [
        ("rank", pa.int32()),
        ("content_hash", pa.string()),
        ("uris", pa.list_(pa.string())),
        ("domain", pa.string()),
        ("score", pa.float64()),
        ("relevance", pa.float64()),
        ("probability", pa.float64()),
        ("above_next", pa.float64()),
        ("propensity", pa.float64()),
        ("examination", pa.float64()),
        ("channels", pa.list_(_HIT)),
        ("signals", pa.list_(_NAMED)),
        ("contributions", pa.list_(_PART)),
    ]
)

QUERIES = table_schema(
    [
        ("asked_at", _WHEN),
        ("query_id", pa.string()),
        ("session_id", pa.string()),
        ("principal", pa.string()),
        ("text", pa.string()),
        ("domain", pa.string()),
        ("model", pa.string()),
        ("agent", pa.string()),
        ("intent", pa.string()),
        ("type", pa.string()),
        ("intent_confidence", pa.float64()),
        ("complexity", pa.string()),
        ("filters", pa.list_(_TEXT_PAIR)),
        ("adaptive", pa.bool_()),
        ("across_domains", pa.bool_()),
        ("k", pa.int32()),
        ("explored", pa.bool_()),
        ("seed", pa.string()),
        ("generation", pa.string()),
        ("learned", pa.string()),
        ("fusion", pa.string()),
        ("truncated", pa.bool_()),
        ("gap", pa.bool_()),
        ("failed_channels", pa.list_(_FAILED)),
        ("timings_ms", pa.list_(_NAMED)),
        ("weights", pa.list_(_WEIGHT)),
        ("heads", pa.list_(_HEAD)),
        ("results", pa.list_(_RESULT)),
    ]
)
"""One row per logged query.

`type`, `complexity` and the confidence in the intent are how it was read; `seed` is what an exploring query's weights
were drawn from, None for others.
"""

OUTCOMES = table_schema(
    [
        ("said_at", _WHEN),
        ("event_id", pa.string()),
        ("query_id", pa.string()),
        ("session_id", pa.string()),
        ("principal", pa.string()),
        ("kind", pa.string()),
        ("content_hash", pa.string()),
        ("rank", pa.int32()),
        ("value", pa.float64()),
    ]
)
"""One row per event of feedback and content that it names; `content_hash` is None where it speaks of the answer."""


def row_of(answer: Answer, *, at: float, characters: int) -> dict[str, Any]:
    """What the log keeps of an answer given at a time in seconds since the epoch."""
    query, read = answer.query, answer.understanding
    return {
        "asked_at": round(at * 1000.0),
        "query_id": carried(query.query_id),
        "session_id": None if query.session_id is None else carried(query.session_id),
        "principal": carried(query.principal),
        "text": carried(query.text[:characters]),
        "domain": None if query.domain is None else query.domain.value,
        "model": carried(query.model),
        "agent": carried(query.agent),
        "intent": carried(query.intent),
        "type": None if read is None else read.type.value,
        "intent_confidence": None if read is None else read.confidence,
        "complexity": None if read is None else read.complexity.value,
        "filters": [{"name": carried(name), "value": carried(value)} for name, value in query.filters.items()],
        "adaptive": query.adaptive,
        "across_domains": query.across_domains,
        "k": query.k,
        "explored": query.explore,
        "seed": carried(query.query_id) if query.explore else None,
        "generation": answer.generation,
        "learned": answer.learned,
        "fusion": answer.fusion,
        "truncated": answer.truncated,
        "gap": answer.gap is not None,
        "failed_channels": [{"channel": name, "reason": why} for name, why in answer.failed_channels.items()],
        "timings_ms": _named(answer.timings_ms),
        "weights": _weights(answer),
        "heads": [
            {"channel": channel.value, "rank": rank, "content_hash": content, "score": score}
            for channel, head in answer.heads.items()
            for rank, (content, score) in enumerate(head, start=1)
        ],
        "results": [_result(result) for result in answer.results],
    }


def carried(text: str) -> str:
    """A text that UTF-8 can carry: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode()


def _result(result: RankedResult) -> dict[str, Any]:
    return {
        "rank": result.rank,
        "content_hash": result.content_hash,
        "uris": [carried(uri) for uri in result.uris],
        "domain": result.domain.value,
        "score": result.score,
        "relevance": result.relevance,
        "probability": result.probability,
        "above_next": result.above_next,
        "propensity": result.propensity,
        "examination": result.examination,
        "channels": [
            {"channel": channel.value, "rank": hit.rank, "score": hit.score} for channel, hit in result.channels.items()
        ],
        "signals": _named({signal.value: value for signal, value in result.signals.items()}),
        "contributions": [
            {"name": part.name, "value": part.value, "weight": part.weight, "amount": part.amount}
            for part in result.contributions
        ],
    }


_SIGNALS = frozenset(signal.value for signal in Signal)


def _weights(answer: Answer) -> list[dict[str, Any]]:
    """The learned weights that ranked the answer, once per domain of its results."""
    weights: dict[tuple[str, str], dict[str, Any]] = {}
    for domain, part in ((result.domain.value, part) for result in answer.results for part in result.contributions):
        if part.belief is not None and part.name in _SIGNALS:
            row = {"domain": domain, "signal": part.name, "weight": part.weight, "mean": part.belief.mean}
            weights.setdefault((domain, part.name), row)
    return list(weights.values())


def _named(values: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]
