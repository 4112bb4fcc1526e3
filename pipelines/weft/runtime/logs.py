"""One form of logs for machines: a line of JSON for each message (OPS-10)."""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any

from weft.runtime.clock import stamp

VARIABLE = "WEFT_LOG"
"""Says the form in the environment, where child processes find it; `json` is the only one that it names."""

JSON = "json"


class JsonLines(logging.Formatter):
    """A message as one JSON object: when, how grave, who says so, what, and the facts that came with it."""

    def format(self, record: logging.LogRecord) -> str:
        """The object on one line; whatever steers a terminal is escaped in it."""
        line = {
            "at": stamp(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **facts_of(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    """What a message was logged with beside its text: `log.info("request", extra={"facts": {"status": 200}})`."""
    return getattr(record, "facts", {})


def is_json() -> bool:
    """Whether logs are asked for in JSON."""
    return os.environ.get(VARIABLE) == JSON


def json_handler() -> logging.Handler:
    """What writes them to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    return handler
