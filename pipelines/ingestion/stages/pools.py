"""How many actors each stage gets, so that a cluster is busy, never crowded and never stuck."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.ingestion.settings import PoolSettings


@dataclass(frozen=True, slots=True)
class Pools:
    """Actors per stage and the logical CPUs that each of them holds.

    Attributes:
        readers: 0 where the actors of the next stage read, too.
    """

    readers: int
    extractors: int
    encoders: int
    cpus_each: float


def sized(settings: PoolSettings, *, cpus: int, extraction: bool, models: int = 1) -> Pools:
    """Pools for a cluster of `cpus` CPUs and `models` encoders, each of which gets the same number of actors.

    There are as many encoders as CPUs; with extraction, which takes several times the work of embedding, there are as
    many extractors, and half as many encoders beside them. Readers are few, and where their share of the CPUs is none
    that is whole, those that find entities or embed read for themselves: a process of its own would cost more. The
    CPUs that all actors hold together stay below the cluster's, whatever the numbers: so every actor starts, and the
    stream cannot get stuck.

    Examples:
        >>> settings = PoolSettings(readers=0, extractors=0, encoders=0, threads=1, chunking_share=0.1, few=0)
        >>> sized(settings, cpus=2, extraction=False)
        Pools(readers=0, extractors=0, encoders=2, cpus_each=0.6666666666666666)
    """
    model_actors = max(1, cpus // settings.threads)
    readers = settings.readers or int(cpus * settings.chunking_share)
    extractors = (settings.extractors or model_actors) if extraction else 0
    encoders = settings.encoders or max(1, (model_actors // 2 if extraction else model_actors) // models)
    actors = readers + extractors + encoders * models
    return Pools(readers, extractors, encoders, min(1.0, cpus / (actors + 1)))
