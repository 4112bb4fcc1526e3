from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.ingestion.settings import PoolSettings

counts = st.integers(0, 64)


@given(
    asked=st.tuples(counts, counts),
    cpus=st.integers(1, 512),
    extraction=st.booleans(),
)
def test_all_actors_fit_on_the_cluster_with_room_to_spare(asked: tuple[int, int], cpus: int, extraction: bool) -> None:
    """ING-24: whatever is asked for, every actor starts and something is left, so that the stream cannot get stuck."""
    readers, encoders = asked
    settings = PoolSettings(readers=readers, encoders=encoders, few=0)
    pools = settings.sized(cpus=cpus, extraction=extraction)
    actors = pools.readers + pools.extractors + pools.encoders
    assert actors * pools.cpus_each < cpus
    assert pools.encoders >= 1
    assert pools.readers >= min(1, readers)
    assert (pools.extractors >= 1) == extraction


def test_extraction_gets_every_processor_and_encoders_follow() -> None:
    """ING-21: finding entities costs several times what embedding costs, so that it decides how fast all goes."""
    settings = PoolSettings(readers=0, encoders=0, few=0)
    pools = settings.sized(cpus=2, extraction=True)
    assert (pools.extractors, pools.encoders) == (2, 1)
    assert settings.sized(cpus=16, extraction=True).encoders == 8
    assert [settings.sized(cpus=cpus, extraction=True).readers for cpus in (2, 9, 10, 16, 64)] == [0, 0, 1, 1, 6]
    assert settings.sized(cpus=16, extraction=False).encoders == 16


@given(cpus=st.integers(1, 256), gpus=st.integers(1, 8), finders=st.booleans(), encoders=st.integers(0, 3))
def test_each_gpu_is_shared_evenly_and_somebody_reads(cpus: int, gpus: int, finders: bool, encoders: int) -> None:
    """SCL-15: the models that a GPU has take all of it and no more; texts are cut by actors of their own."""
    on_gpus = 2
    settings = PoolSettings(readers=0, encoders=0, few=0)
    pools = settings.sized(cpus=cpus, extraction=finders, models=encoders, gpus=gpus, on_gpus=on_gpus)
    assert pools.gpus_each * on_gpus == 1.0
    assert pools.readers >= 1
    actors = pools.readers + pools.extractors + pools.encoders * encoders + gpus * on_gpus
    assert actors * pools.cpus_each < cpus
