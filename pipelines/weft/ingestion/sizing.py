"""From beliefs about sizes to the sizes that a run cuts with (ING-11)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from weft.catalog.catalog import Catalog
from weft.chunking.settings import ChunkingSettings
from weft.chunking.units.splitting import ActiveSizes, ChunkSizes, TopicRules
from weft.domain.chunks import Overflow, pairs_of
from weft.domain.documents import Domain
from weft.learning.evidence import Evidence
from weft.learning.observe.sizes import SizeChoice, last_day, read_sizing
from weft.learning.priors import DomainSizes, Priors

PRIORS_ONLY = "priors"
"""What a snapshot names where no learned version is live."""

SIZING = "sizing"
"""The manifest's fact that holds the sizes in force, by domain."""

STATED = "sizing_stated"
"""The manifest's fact that holds the sizes that its settings and priors stated, by domain."""

Snapshots = Mapping[str, Sequence[str]]
"""Sizing snapshots by domain, as a manifest keeps them."""


def active_sizes(
    settings: ChunkingSettings,
    priors: Priors,
    evidence: Evidence,
    *,
    limit: int,  # tokens that the encoder reads of a chunk
    learned: str = PRIORS_ONLY,  # the live version, which evidence is read on top of
    before: Snapshots | None = None,  # snapshots of the live generation, where there is one
) -> ActiveSizes:
    """The sizes of every domain, chosen from what is believed of them, within what the encoder reads.

    Evidence counts as on the newest day that it tells of, so that the same evidence always gives the same sizes.
    """
    beliefs = read_sizing(priors, evidence, last_day(evidence) or 0)
    domains = {}
    for domain in Domain:
        sizes = _sizes(settings, priors.sizing.domains[domain], domain, beliefs[domain].expected).capped(limit)
        domains[domain] = replace(sizes, learned=_since(sizes, learned, (before or {}).get(domain.value)))
    return ActiveSizes(domains, {domain: _of_records(settings, priors, domain, limit) for domain in Domain})


def live_sizes(settings: ChunkingSettings, priors: Priors, catalog: Catalog, *, limit: int) -> ActiveSizes:
    """The sizes that the live evidence of a store makes."""
    pointer = catalog.pointer()
    facts = next((one.facts for one in catalog.generations() if one.id == pointer.generation), {})
    evidence = catalog.live.evidence(pointer)
    learned = pointer.learned or PRIORS_ONLY
    return active_sizes(settings, priors, evidence, limit=limit, learned=learned, before=facts.get(SIZING))


def sizes_in_force(settings: ChunkingSettings, priors: Priors, catalog: Catalog, *, limit: int) -> ActiveSizes:
    """The sizes that the live generation was cut with, while what is stated is the same.

    What is stated is what settings and priors say, within the encoder's limit.

    So beliefs alone cut nothing anew, and embed nothing anew (ING-11).
    """
    believed, live = live_sizes(settings, priors, catalog, limit=limit), catalog.pointer().generation
    facts = next((one.facts for one in catalog.generations() if one.id == live), {})
    if facts.get(STATED) != snapshots(prior_sizes(settings, priors, limit=limit)):
        return believed
    before: Snapshots = facts[SIZING]
    domains = {domain: _as_cut(sizes, before.get(domain.value, ())) for domain, sizes in believed.domains.items()}
    return replace(believed, domains=domains)


def prior_sizes(settings: ChunkingSettings, priors: Priors, *, limit: int) -> ActiveSizes:
    """The sizes before any evidence."""
    return active_sizes(settings, priors, Evidence(), limit=limit)


def snapshots(sizes: ActiveSizes) -> dict[str, list[str]]:
    """The sizes in force by domain, for the manifest."""
    return {domain.value: list(each.snapshot) for domain, each in sizes.domains.items()}


def _sizes(settings: ChunkingSettings, prior: DomainSizes, domain: Domain, choice: SizeChoice) -> ChunkSizes:
    target = min(_moved(settings, prior.target, choice.target), prior.max)
    return ChunkSizes(
        max_tokens=prior.max,
        target_tokens=target,
        min_tokens=min(_moved(settings, prior.minimum, choice.minimum), target // 2),
        overlap_tokens=min(settings.overlap_tokens[domain], target // 2),
        context_before=_moved(settings, prior.before, choice.before),
        context_after=_moved(settings, prior.after, choice.after) if settings.trailing_context else 0,
        overflow=choice.overflow,
        list_tokens=settings.prose.list_tokens,
        paragraph_tokens=settings.prose.paragraph_tokens,
        whole_tokens=settings.configuration.whole_tokens,
        nested_tokens=settings.configuration.nested_tokens,
        topics=TopicRules(settings.conversation.topic_distance, settings.conversation.topic_phrases),
    )


def _as_cut(sizes: ChunkSizes, snapshot: Sequence[str]) -> ChunkSizes:
    """The sizes with those of a snapshot, where they differ."""
    pairs = pairs_of(snapshot)
    if not pairs or sizes.snapshot == tuple(snapshot):
        return sizes
    return replace(
        sizes,
        target_tokens=int(pairs["target"]),
        min_tokens=int(pairs["min"]),
        overlap_tokens=int(pairs["overlap"]),
        context_before=int(pairs["before"]),
        context_after=int(pairs["after"]),
        overflow=Overflow(pairs["overflow"]),
        learned=pairs["learned"],
    )


def _moved(settings: ChunkingSettings, prior: float, believed: float) -> int:
    """The whole number of tokens that is nearest to a belief on the grid around its prior."""
    furthest = math.log(settings.range)
    moved = min(max(math.log(max(believed, np.finfo(np.float64).tiny) / prior), -furthest), furthest)
    steps = round(moved / math.log1p(settings.step))
    return max(1, round(prior * (1.0 + settings.step) ** steps))


def _of_records(settings: ChunkingSettings, priors: Priors, domain: Domain, limit: int) -> ChunkSizes:
    stated = priors.sizing.domains[domain]
    target = min(round(stated.target), settings.record_max_tokens, limit)
    overlap = min(settings.overlap_tokens[domain], target // 2)
    minimum = min(round(stated.minimum), target // 2, limit - target)  # with which the last window is still read whole
    return ChunkSizes(settings.record_max_tokens, target, minimum, overlap, read_tokens=limit)


def _since(sizes: ChunkSizes, learned: str, before: Sequence[str] | None) -> str:
    """The version that put these sizes in force: an earlier one where they have not changed since."""
    since = pairs_of(before or ()).get("learned")
    if since is not None and replace(sizes, learned=since).snapshot == tuple(before or ()):
        return since
    return learned
