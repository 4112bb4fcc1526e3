"""What an error of MLflow means: what was found, and what helps in that state."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from weft.runtime.storage.errors import advice_on

MOVE_AWAY = (
    "bring back a copy of it, or move it away: the next night makes a new one, in which `weft learned promote` "
    "registers versions of the store"
)
"""The advice where MLflow's SQLite database is damaged."""

_SCHEMA = re.compile(r"found version (\w+), but expected|Can't locate revision identified by '(\w+)'")
_NAMED_PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*@")
_CREDENTIALS = "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
_CORRECT = "correct tracking.uri"
_ON_SERVER = (
    (("Current state is deleted",), "somebody deleted it meanwhile; run again, which records in a new run"),
    (("PERMISSION_DENIED", "UNAUTHENTICATED"), f"set {_CREDENTIALS}, of a user who may do this"),
    (("error responses",), "look at the server's log, for it does not work"),
    (("Max retries exceeded",), f"start the server, or {_CORRECT}"),
    (("ENDPOINT_NOT_FOUND", "not in a valid JSON", "unsupported URI", "Could not parse"), _CORRECT),
    (("No module named",), "install that package, the driver of the database"),
)
"""Words in what MLflow says, and what helps; the first that fit."""


def meaning_of(error: Exception, uri: str) -> str:
    """What was found, and what helps, without a password."""
    text = str(error)
    if (schema := _SCHEMA.search(text)) is not None:
        return _of_schema(schema[1] or schema[2], uri)
    return f"{without_password(text.partition(chr(10))[0])}: {_advice(error, text)}"


def without_password(uri: str) -> str:
    """A URI without the password in it, for people."""
    return _NAMED_PASSWORD.sub(r"\1:***@", uri)


def _of_schema(revision: str, uri: str) -> str:
    spec = importlib.util.find_spec("mlflow.store.db_migrations")
    migrations = [] if spec is None else list(spec.submodule_search_locations or ())
    if any(any((Path(folder) / "versions").glob(f"{revision}_*.py")) for folder in migrations):
        named = shlex.quote(without_password(uri))
        return f"the database of an older MLflow: copy it, then run `mlflow db upgrade {named}`"
    return (
        f"the database of a newer MLflow, with schema {revision}: install that version, or set tracking.uri to another"
    )


def _advice(error: Exception, text: str) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "name the store by a link whose path is UTF-8"
    if (cause := _database_error(error)) is not None:
        return advice_on(cause, damaged=MOVE_AWAY)
    text = f"{getattr(error, 'error_code', '')} {text}"
    fitting = (advice for words, advice in _ON_SERVER if any(word in text for word in words))
    return next(fitting, None) or advice_on(error, otherwise=f"look at what answers there, or {_CORRECT}")


def _database_error(error: BaseException) -> BaseException | None:
    """What SQLite itself said, inside what MLflow and SQLAlchemy made of it."""
    inner: BaseException | None = error
    while inner is not None and not hasattr(inner, "sqlite_errorcode"):
        inner = inner.orig if isinstance(inner, DBAPIError) else inner.__cause__
    return inner
