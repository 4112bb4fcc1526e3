"""Follow the champion: what the registry's alias names is what searches learn from (CON-9)."""

from __future__ import annotations

import json
import logging
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from weft.catalog.catalog import Catalog
from weft.catalog.learned import NOTHING_LEARNED, write_tables
from weft.domain.errors import StoreError, WeftError
from weft.domain.ids import PRIORS_VERSION, VersionName, number_of
from weft.runtime.clock import Clock

if TYPE_CHECKING:
    from weft.runtime.mlflow.tracking import Tracking  # seconds to import: updaters begin without it

log = logging.getLogger(__name__)

CHAMPION = "champion"
CHALLENGER = "challenger"
PROMOTED_TAG, REFUSED_TAG = "weft.promoted", "weft.refused"
"""Begin the names of the tags that tell who moved the alias by hand, and who refused a version."""

DECISION_TAG, REASON_TAG, SETTLED_TAG = "weft.decision", "weft.reason", "weft.settled"
"""Tags of a registered version: what its night decided, why, and that no night has anything left to do for it."""

_BY_A_PERSON = "review"  # as of a night that leaves the decision to one
EXPERIMENT = "calibration"
"""The MLflow experiment of nights, and of versions that are registered by themselves."""

TAGS = {"weft.job": "consolidate", "mlflow.source.name": "jobs.consolidate", "mlflow.source.type": "JOB"}
"""Tags of their runs: those that a killed process left open are closed by the next night."""


class Aliases(Protocol):
    """Reads the registry; asked once per look."""

    def alias(self, alias: str) -> VersionName | None:
        """The learned version an alias names, None where it names none of weft's."""


def follow_champion(catalog: Catalog, registry: Aliases) -> VersionName | None:
    """Make the learned version that the champion alias names live, where it is not already.

    Promoting a challenger and rolling back are the same: someone moves the alias, and this follows.

    Returns:
        The version that went live, None where nothing changed.

    Raises:
        TrackingUnavailableError: The registry does not answer.
        StoreError: The alias names a version that the store lacks, or that is damaged; the live one stays.
    """
    champion = registry.alias(CHAMPION)
    if champion is None or champion == catalog.pointer().learned:
        return None
    catalog.make_live(champion)
    log.info("learned version %s is live: the champion alias names it", champion)
    return champion


def follow_if_possible(catalog: Catalog, registry: Tracking) -> None:
    """`follow_champion`, where an alias on a version that the store lacks is only worth a warning.

    A registry that this host alone sees may not know what others made live: it follows the store instead.

    Raises:
        TrackingUnavailableError: The registry does not answer.
    """
    if catalog.is_remote and registry.is_local:
        live = catalog.pointer().learned
        if live is not None and registry.alias(CHAMPION) != live:
            _require_registered(catalog, registry, live)
            registry.set_alias(CHAMPION, live)
        return
    try:
        follow_champion(catalog, registry)
    except StoreError as error:
        log.warning("the champion alias was not followed: %s", error)


def promote(
    catalog: Catalog, registry: Tracking, version: VersionName, *, by: str, why: str, now: float
) -> VersionName | None:
    """Move the champion alias to a version and follow it, as a person does who reviewed it; back just as well.

    Who did it, when, why and instead of which version is kept as a tag of the registered version, one for each time.
    A challenger that is promoted waits no more. A version that the registry does not know is registered from the store:
    the registry was lost, or a night was killed before it registered that version.

    Returns:
        The version that was the champion, None where there was none.

    Raises:
        TrackingUnavailableError: The registry does not answer.
        StoreError: There is no such version, or it is damaged; nothing has changed.
    """
    catalog.learned.read(version)
    _require_registered(catalog, registry, version)
    former = registry.alias(CHAMPION)
    _keep_word(registry, PROMOTED_TAG, version, {"by": by, "instead_of": former, "why": why}, now)
    registry.set_alias(CHAMPION, version)
    if registry.alias(CHALLENGER) == version:
        registry.drop_alias(CHALLENGER)
    follow_champion(catalog, registry)
    return former


def refuse(catalog: Catalog, registry: Tracking, version: VersionName, *, by: str, why: str, now: float) -> None:
    """Have a version that waits for its verdict leave no trace: what it holds counts no more, now or later (CON-7a).

    Who did it, when and why is kept as a tag of the registered version. The arguments are those of `promote`.

    Raises:
        TrackingUnavailableError: The registry does not answer.
        StoreError: It does not wait; nothing has changed.
    """
    if (waiting := registry.alias(CHALLENGER)) != version:
        raise StoreError(
            f"expected a version that waits for its verdict, found {waiting or 'none'} to wait and not {version}: "
            "roll back what is live with `weft learned promote`, which takes an older version"
        )
    catalog.leave_out(version)
    _keep_word(registry, REFUSED_TAG, version, {"by": by, "why": why}, now)
    registry.drop_alias(CHALLENGER)


def register_priors(registry: Tracking) -> None:
    """Make the priors a version of the registered model, so that the alias can be moved to the beginning; once."""
    if registry.tags_of(PRIORS_VERSION) is not None:
        return
    note = "the priors: what is believed before anything was learned"
    tags = {DECISION_TAG: _BY_A_PERSON, REASON_TAG: note, SETTLED_TAG: "true"}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / PRIORS_VERSION
        folder.mkdir()
        write_tables(folder, NOTHING_LEARNED, NOTHING_LEARNED.cut)
        registry.register_from(folder, PRIORS_VERSION, EXPERIMENT, TAGS, note=note, tags=tags)


def register_earlier(catalog: Catalog, registry: Tracking, version: VersionName) -> None:
    """Register what the store holds from before a version and the registry never had: so their numbers are the same."""
    newest = number_of(registry.newest() or PRIORS_VERSION) or 0
    for each in catalog.learned.versions():
        if newest < (number_of(each) or 0) < (number_of(version) or 0) and registry.tags_of(each) is None:
            _register(catalog, registry, each)


def _require_registered(catalog: Catalog, registry: Tracking, version: VersionName) -> None:
    if version == PRIORS_VERSION:
        register_priors(registry)
        return
    register_earlier(catalog, registry, version)
    if registry.tags_of(version) is None:
        _register(catalog, registry, version)


def _register(catalog: Catalog, registry: Tracking, version: VersionName) -> None:
    note = "registered from the store, for the registry did not know it"
    tags = {DECISION_TAG: _BY_A_PERSON, REASON_TAG: note, SETTLED_TAG: "true"}
    registry.register_from(catalog.learned.folder_of(version), version, EXPERIMENT, TAGS, note=note, tags=tags)


def _keep_word(registry: Tracking, tag: str, version: VersionName, word: Mapping[str, str | None], now: float) -> None:
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    registry.tag(version, f"{tag}.{at}", json.dumps(word, ensure_ascii=False))


class ChampionFollower:
    """Looks at the alias now and then, in a thread of its own: no caller ever waits for the registry.

    Safe to `tick` from any thread, as often as one likes; at most one look is under way.
    """

    def __init__(self, catalog: Catalog, registry: Aliases, *, every_s: float, clock: Clock) -> None:
        self.moved = 0
        self.failed = 0
        self._catalog, self._registry = catalog, registry
        self._every_s, self._clock = every_s, clock
        self._due = clock()
        self._looking = threading.Lock()
        self._thread: threading.Thread | None = None

    def tick(self) -> None:
        """Start a look if one is due and none is under way; returns at once."""
        if self._clock() < self._due or not self._looking.acquire(blocking=False):
            return
        self._due = self._clock() + self._every_s
        self._thread = threading.Thread(target=self._look, name="follow-champion", daemon=True)
        self._thread.start()

    def close(self, timeout_s: float) -> None:
        """Wait for a look that is under way, no longer than `timeout_s` seconds."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _look(self) -> None:
        try:
            self.moved += follow_champion(self._catalog, self._registry) is not None
        except WeftError as error:
            self.failed += 1
            log.warning("the champion alias was not followed: %s", error)
        finally:
            self._looking.release()
