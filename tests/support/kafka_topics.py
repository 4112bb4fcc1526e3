"""Topics of a broker, as an operator makes, changes and deletes them."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

_TIMEOUT_S = 30.0


class Topics:
    """What an operator does, each call done when it returns."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def names(self) -> set[str]:
        return set(self._admin.list_topics(timeout=_TIMEOUT_S).topics)

    def replicas(self, topic: str) -> list[int]:
        """Copies of each partition."""
        partitions = self._admin.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions
        return [len(partitions[number].replicas) for number in sorted(partitions)]

    def make(self, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        self._admin.create_topics([new])[topic].result(_TIMEOUT_S)

    def make_at(self, topic: str, *, broker: int) -> None:
        """With one partition, whose only copy lies at a broker."""
        self._admin.create_topics([NewTopic(topic, num_partitions=1, replica_assignment=[[broker]])])[topic].result(
            _TIMEOUT_S
        )

    def set(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(_TIMEOUT_S)

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(_TIMEOUT_S)

    def delete_records(self, topic: str, *, before: int) -> None:
        """What retention does, in partition 0."""
        place = TopicPartition(topic, 0, before)
        self._admin.delete_records([place])[place].result(_TIMEOUT_S)
