"""A partition's clock as the documentation describes it, for an independent reading of a log: none of weft's code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

EARLIEST, LATEST = 1_577_836_800_000, 4_102_444_800_000  # 2020 and 2100


class Clock:
    """A partition's clock as the documentation describes it; milliseconds."""

    def __init__(self, times: Mapping[str, float], timestamps: Sequence[int]) -> None:
        self.times = times
        self.timestamps = timestamps
        self.now = 0
        self.claims: dict[str, int] = {}
        self.run: list[str] = []

    def advance(self, number: int, who: str) -> None:
        time = self.timestamps[number]
        self.run = [*self.run, who] if self.run[:1] == [who] else [who]
        self.claimed = EARLIEST <= time <= LATEST
        self.ingested = time if self.claimed else self.now
        if not self.claimed:
            return
        self.claims[who] = max(self.claims.get(who, 0), time)
        leader = max(self.claims, key=lambda each: self.claims[each])
        others = [claim for each, claim in self.claims.items() if each != leader]
        step = int(self.times["clock_step_s"] * 1000)
        reach = self.now + step if self.now else time
        if self.now and others and len(self.run) <= self.times["clock_alone_records"]:
            reach = min(reach, max(self.now, max(others) + step))
        self.now = max(self.now, min(time, reach))

    def at(self, ts: int) -> int | None:
        """When an event counts; None where its time cannot be believed."""
        believable = EARLIEST <= ts <= self.ingested + self.times["lead_s"] * 1000
        return min(ts, self.now) if believable else None

    def horizon(self, windows: int = 1) -> float:
        return self.now - windows * self.times["window_s"] * 1000

    def older(self, heard: int, patience: str) -> bool:
        return self.now - heard > self.times[patience] * 1000


class Timeless:
    """Stands for the clock of a log whose times are all plausible."""

    now = 0

    def advance(self, number: int, who: str) -> None: ...

    def at(self, ts: int) -> int | None:
        return ts

    def horizon(self, windows: int = 1) -> float:
        return float("-inf")

    def older(self, heard: int, patience: str) -> bool:
        return False
