"""Every error weft raises on purpose.

A leaf exists for each thing a caller does differently:

    WeftError
    ├── ConfigurationError       stop: a setting is wrong, unknown or missing
    ├── MissingExtraError        install it: a package that an extra brings is not there
    ├── SourceError              stop: a source named by the user cannot be read at all, or not by every host
    ├── ModelUnavailableError    stop: a model cannot be loaded
    ├── StoreError               stop: the store is missing something or was written by something else
    │   ├── NothingPublishedError   build first: no generation or learned version is live
    │   ├── CorruptionError         rebuild or roll back: a file differs from its manifest
    │   ├── DiskError               free space or give access: the disk refused, no file is damaged by that
    │   └── StaleVersionError       retry on top: another writer published meanwhile
    ├── ForkedError              stop: open anew in a process that was not forked from one that searches
    ├── FencedError              stop: another updater owns this partition now
    ├── WrongLogError            stop: the topic is not the one the stored offset belongs to
    ├── BrokerUnavailableError   retry: the broker does not answer
    │   └── MissingTopicError       retry, then stop: the broker answers, and has no such topic
    ├── TrackingUnavailableError retry: MLflow does not answer
    ├── ServiceError             stop: a service refuses what it is asked
    │   └── ServiceUnreachableError retry: a service does not answer, or has no room
    ├── InvalidEventError        skip the record: it becomes a dead letter with this reason
    └── InvalidLessonError       skip the lesson: it is set aside with its problems
"""

from __future__ import annotations

from collections.abc import Sequence


class WeftError(Exception):
    """Root of the tree: the message says what was expected, what was found and what to do."""


class ConfigurationError(WeftError):
    """A setting is wrong, unknown or missing."""


class MissingExtraError(WeftError):
    """A package is not installed that comes with an extra; the message is the line that installs it."""


class SourceError(WeftError):
    """A source cannot be read at all, or not by every host; one bad item inside it is a `Rejection` instead."""


class ModelUnavailableError(WeftError):
    """A model named in the configuration cannot be loaded."""


class StoreError(WeftError):
    """The store lacks what was asked of it, or holds what weft did not write."""


class NothingPublishedError(StoreError):
    """No generation or learned version is live where one is needed."""


class CorruptionError(StoreError):
    """A published file differs from its manifest and is not served."""


class DiskError(StoreError):
    """The disk under a file refused to read or write it, which says nothing about what the file holds."""


class StaleVersionError(StoreError):
    """The version a change was built on is no longer the live one."""


class ForkedError(WeftError):
    """A searcher was opened before this process was forked: threads that it needs stayed in the other one."""


class FencedError(WeftError):
    """A newer updater holds this partition; this one must stop without committing."""


class WrongLogError(WeftError):
    """The topic was re-created, truncated or repartitioned: the stored offset means nothing in it."""


class BrokerUnavailableError(WeftError):
    """The broker does not answer within its time limit."""


class MissingTopicError(BrokerUnavailableError):
    """The broker answers, and has no topic of that name: it was deleted, or the broker does not list it yet."""


class TrackingUnavailableError(WeftError):
    """MLflow does not answer, or refuses what it is told."""


class ServiceError(WeftError):
    """A running service refuses what it is asked, or fails."""


class ServiceUnreachableError(ServiceError):
    """A running service does not answer, or has no room now."""


class InvalidEventError(WeftError):
    """One record cannot become an event."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class InvalidLessonError(WeftError):
    """Values that are no lesson."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)
