"""weft: retrieval that learns. What applications use; all else may change from one version to the next.

Names are imported when they are first used, so that `import weft` takes no time.

Examples:
    >>> sorted(__all__)[:5]
    ['Answer', 'AsyncClient', 'Client', 'Contribution', 'Domain']
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.app.indexing import index
    from weft.app.library import declare, open_producer, open_query_log, open_searcher, prompt
    from weft.client.http import AsyncClient, Client
    from weft.domain.documents import Domain
    from weft.domain.errors import WeftError
    from weft.domain.ranking import Answer, Contribution, Query
    from weft.domain.ranking import RankedResult as Result
    from weft.feedback.events.producer import FeedbackProducer as Producer
    from weft.retrieval.searcher import Searcher
    from weft.settings import Settings, load_settings

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AsyncClient",
    "Client",
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
    "Answer": "weft.domain.ranking:Answer",
    "AsyncClient": "weft.client.http:AsyncClient",
    "Client": "weft.client.http:Client",
    "Contribution": "weft.domain.ranking:Contribution",
    "Domain": "weft.domain.documents:Domain",
    "Producer": "weft.feedback.events.producer:FeedbackProducer",
    "Query": "weft.domain.ranking:Query",
    "Result": "weft.domain.ranking:RankedResult",
    "Searcher": "weft.retrieval.searcher:Searcher",
    "Settings": "weft.settings:Settings",
    "WeftError": "weft.domain.errors:WeftError",
    "declare": "weft.app.library:declare",
    "index": "weft.app.indexing:index",
    "load_settings": "weft.settings:load_settings",
    "open_producer": "weft.app.library:open_producer",
    "open_query_log": "weft.app.library:open_query_log",
    "open_searcher": "weft.app.library:open_searcher",
    "prompt": "weft.app.library:prompt",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return pkgutil.resolve_name(_PLACES[name])
    except ModuleNotFoundError as error:
        if (missing := pkgutil.resolve_name("weft.runtime.extras:missing_extra")(error)) is None:
            raise
        raise missing from error


def __dir__() -> list[str]:
    return __all__
