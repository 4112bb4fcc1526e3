"""Late interaction: how well the tokens of the best candidates answer those of the query (RET-10).

Khattab and Zaharia, ColBERT (SIGIR 2020), over the dense encoder's own tokens: the query's come from the forward pass
that gave its vector, the contents' from the generation's token store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipelines.domain.ranking import Channel
from pipelines.quality import signals
from pipelines.retrieval.channels.rankings import ScoreRows
from pipelines.retrieval.channels.run import Ranked
from pipelines.retrieval.ranking.table import Floats, Ints


def matcher(found: Mapping[Channel, Ranked]) -> ScoreRows | None:
    """What compares any contents with the query token by token; None where no channel can."""
    return next((ranked.match_rows for ranked in found.values() if ranked.match_rows is not None), None)


def values_of(match: ScoreRows, span: float) -> Callable[[Ints], Floats]:
    """The signal of contents, each in [0, 1]: how near its match comes to the best of theirs."""
    return lambda rows: signals.late_interaction(match(rows), span)


def why_not(found: Mapping[Channel, Ranked]) -> str:
    """Why no channel can compare tokens."""
    if Channel.DENSE not in found:
        return "there are no tokens of the query, since the dense channel was left out"
    return "the generation keeps no token embeddings of this encoder: set embedding.tokens.enabled and reindex"
