"""Quix Streams doing an updater's work on the same topic; prints seconds, by the clock and of a core, as JSON.

Run by the interpreter that has quixstreams: BOOTSTRAP TOPIC EVENTS VERDICTS FOLDER HOW. State belongs to a message's
key there, as in Kafka Streams. Events are keyed by session, and evidence belongs to what is judged, across sessions.
So a session's events are deduplicated and joined with what it was shown under its own key; what comes of them is
grouped by content, which sends it through a topic of its own, and added up there. State is kept in changelogs, without
which it is lost with its folder. HOW is

    once     with the exactly-once guarantee, which an updater gives
    least    with the default guarantee, under which a crash may count events twice
    core     decode, add up under the session's key, commit: no duplicates, no join, no grouping, no changelog

All of them do less than an updater: nothing is validated, no session is kept apart, ids are never forgotten, and what
signals are worth is not added up. The clock starts with the first event, after the group was joined, and stops after
the last commit.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quixstreams import State

MICRO = 1_000_000

began: list[tuple[float, float]] = []


def begin() -> None:
    if not began:
        began.append((time.perf_counter(), time.process_time()))


def joined(event: dict[str, Any], state: State) -> list[dict[str, Any]]:
    """What an event of a session comes to, once."""
    begin()
    if state.exists(event["event_id"]):
        return []
    state.set(event["event_id"], 1)
    if event["type"] == "impression":
        state.set(event["query_id"], [result["content_hash"] for result in event["results"]])
    elif event["content_hash"] in state.get(event["query_id"], ()):
        return [{"content": event["content_hash"], "micro": round(event["signal"] * MICRO)}]
    return []


def add(credit: dict[str, Any], state: State) -> None:
    """What comes to a content."""
    state.set("micro", state.get("micro", 0) + credit["micro"])


def add_alone(event: dict[str, Any], state: State) -> None:
    """The core by itself."""
    begin()
    if event["type"] == "explicit":
        name = event["content_hash"]
        state.set(name, state.get(name, 0) + round(event["signal"] * MICRO))


def main() -> None:
    from quixstreams import Application
    from quixstreams.models.topics import TopicConfig, TopicManager

    bootstrap, topic, events, verdicts, folder, how = sys.argv[1:]
    # It asks the broker how long a topic is kept, to make others like it; the embedded one does not tell.
    TopicManager.derive_topic_config = lambda _, topics: TopicConfig(topics[0].broker_config.num_partitions, 1)
    app = Application(
        broker_address=bootstrap,
        consumer_group=f"rival-{how}",
        auto_offset_reset="earliest",
        state_dir=folder,
        use_changelog_topics=how != "core",
        processing_guarantee="exactly-once" if how == "once" else "at-least-once",
        commit_every=10_000,
        consumer_extra_config={
            "session.timeout.ms": 6_000,
            "queued.min.messages": 100_000,
            "fetch.queue.backoff.ms": 1,
        },
        loglevel="ERROR",
    )
    told = app.dataframe(app.topic(topic, value_deserializer="json"))
    if how == "core":
        told.update(add_alone, stateful=True)
    else:
        told.apply(joined, stateful=True, expand=True).group_by("content").update(add, stateful=True)
    app.run(count=int(events if how == "core" else verdicts), timeout=120.0, collect=False)
    clock, core = began[0]
    took = {"seconds": time.perf_counter() - clock, "core_seconds": time.process_time() - core}
    sys.stdout.write(json.dumps(took) + "\n")


if __name__ == "__main__":
    main()
