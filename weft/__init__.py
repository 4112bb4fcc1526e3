"""weft: retrieval that learns. What applications use; all else may change from one version to the next.

Names are imported when they are first used, so that `import weft` takes no time.

Examples:
    >>> sorted(__all__)[:5]
    ['Answer', 'Contribution', 'Domain', 'Producer', 'Query']
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.domain.documents import Domain
    from pipelines.domain.errors import WeftError
    from pipelines.domain.ranking import Answer, Contribution, Query
    from pipelines.domain.ranking import RankedResult as Result
    from pipelines.feedback.events.producer import FeedbackProducer as Producer
    from pipelines.retrieval.searcher import Searcher
    from pipelines.settings import Settings, load_settings
    from weft.application import declare, index, open_producer, open_query_log, open_searcher, prompt

__all__ = [
    "Answer",
    "Contribution",
    "Domain",
    "Producer",
    "Query",
    "Result",
    "Searcher",
    "Settings",
    "WeftError",
    "declare",
    "index",
    "load_settings",
    "open_producer",
    "open_query_log",
    "open_searcher",
    "prompt",
]

_PLACES = {
    "Answer": "pipelines.domain.ranking:Answer",
    "Contribution": "pipelines.domain.ranking:Contribution",
    "Domain": "pipelines.domain.documents:Domain",
    "Producer": "pipelines.feedback.events.producer:FeedbackProducer",
    "Query": "pipelines.domain.ranking:Query",
    "Result": "pipelines.domain.ranking:RankedResult",
    "Searcher": "pipelines.retrieval.searcher:Searcher",
    "Settings": "pipelines.settings:Settings",
    "WeftError": "pipelines.domain.errors:WeftError",
    "declare": "weft.application:declare",
    "index": "weft.application:index",
    "load_settings": "pipelines.settings:load_settings",
    "open_producer": "weft.application:open_producer",
    "open_query_log": "weft.application:open_query_log",
    "open_searcher": "weft.application:open_searcher",
    "prompt": "weft.application:prompt",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return pkgutil.resolve_name(_PLACES[name])


def __dir__() -> list[str]:
    return __all__
