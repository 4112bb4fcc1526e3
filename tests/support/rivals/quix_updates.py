"""Quix Streams doing an updater's core: decode, group by result, add up, keep, commit; prints seconds as JSON.

Run by the interpreter that has quixstreams: BOOTSTRAP TOPIC EVENTS FOLDER HOW. Less than an updater does: nothing is
validated, and no session is kept apart. HOW is "core", or "same", which also drops repeated ids, adds up only what was
shown, and keeps its state in a changelog, without which it is lost with its folder. The clock starts with the first
event, after the group was joined, and stops after the last commit.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def main() -> None:
    from quixstreams import Application, State
    from quixstreams.models.topics import TopicConfig, TopicManager

    bootstrap, topic, events, folder, how = sys.argv[1:]
    same = how == "same"
    # It asks the broker how long a topic is kept, to make changelogs like it; the embedded one does not tell.
    TopicManager.derive_topic_config = lambda *_: TopicConfig(1, 1)
    app = Application(
        broker_address=bootstrap,
        consumer_group=f"rival-{how}",
        auto_offset_reset="earliest",
        state_dir=folder,
        use_changelog_topics=same,
        commit_every=5_000,
        consumer_extra_config={
            "session.timeout.ms": 6_000,
            "queued.min.messages": 100_000,
            "fetch.queue.backoff.ms": 1,
        },
        loglevel="ERROR",
    )
    began: list[float] = []

    def add(event: dict[str, Any], state: State) -> None:
        if not began:
            began.append(time.perf_counter())
        if same:
            if state.exists(event["event_id"]):
                return
            state.set(event["event_id"], 1)
        if event["type"] == "impression" and same:
            state.set(event["query_id"], [result["content_hash"] for result in event["results"]])
        elif event["type"] == "explicit" and (not same or event["content_hash"] in state.get(event["query_id"], ())):
            name = event["content_hash"]
            state.set(name, state.get(name, 0) + round(event["signal"] * 1_000_000))

    app.dataframe(app.topic(topic, value_deserializer="json")).update(add, stateful=True)
    app.run(count=int(events), timeout=60.0)
    sys.stdout.write(json.dumps({"seconds": time.perf_counter() - began[0]}) + "\n")


if __name__ == "__main__":
    main()
