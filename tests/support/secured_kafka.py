"""Apache Kafka that lets nobody in but whom it knows, and lets nobody do but what its ACLs permit."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.apache_kafka import ApacheKafka, Listener
from tests.support.certificates import Authority, Certificate
from weft.settings import Settings, load_settings

PASSWORD = "s3cret-of-tests"
"""Of every user."""
USERS = ("ada", "producer", "updater")
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_PATIENCE_S = 30.0


class Permission(NamedTuple):
    """What an ACL permits, in the words of kafka-acls.sh.

    Attributes:
        kind: topic, group or cluster.
    """

    principal: str
    operation: str
    kind: str
    name: str


class SecuredKafka:
    """A broker with a listener for each way in. A context manager.

    Attributes:
        kafka: The broker. Its listeners: OPEN, for whoever may do everything; SASL, by password; SASLTLS, by password
            over TLS; TLS, by certificate; EXPIRED and ELSEWHERE, with certificates that are over, or of another host.
        authority: Signed the certificates of the broker and of those whom it lets in.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.authority = Authority(folder, "authority")
        good = self._stores(self.authority.signed("broker"))
        plain = " ".join([_PLAIN, *(f'user_{user}="{PASSWORD}"' for user in USERS)])
        passwords = {
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN",
            "scram-sha-256.sasl.jaas.config": _SCRAM,
            "plain.sasl.jaas.config": f"{plain};",
        }
        self.kafka = ApacheKafka(
            folder / "kafka",
            listeners=(
                Listener("OPEN", "PLAINTEXT"),
                Listener("SASL", "SASL_PLAINTEXT", passwords),
                Listener("SASLTLS", "SASL_SSL", {**passwords, **good}),
                Listener("TLS", "SSL", {"ssl.client.auth": "required", **good}),
                Listener("EXPIRED", "SSL", self._stores(self.authority.signed("expired", days=-1))),
                Listener("ELSEWHERE", "SSL", self._stores(self.authority.signed("elsewhere", host="kafka.example"))),
            ),
            settings={
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                "auto.create.topics.enable": "false",
            },
            scram=dict.fromkeys(USERS, PASSWORD),
        )

    def __enter__(self) -> Self:
        self.kafka.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kafka.__exit__(kind, error, trace)

    def settings(self, listener: str, *assignments: str, **kafka: Any) -> Settings:
        """Settings of a client at a listener; `kafka` are settings of that section. A busy broker is waited for."""
        chosen = [f"kafka.{key}={value}" for key, value in ({"send_block_ms": 5_000} | kafka).items()]
        return load_settings([], [f"kafka.bootstrap={self.kafka.at(listener)}", *chosen, *assignments], environment={})

    def by_password(self, user: str, *assignments: str, **kafka: Any) -> Settings:
        """Settings of a user who comes with a password."""
        known = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"}
        known |= {"sasl_username": user, "sasl_password": PASSWORD}
        return self.settings("SASL", *assignments, **{**known, **kafka})

    def make_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Make a topic, and wait until the broker serves it."""
        admin = self.kafka.admin()
        admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))])[name].result()
        _await(lambda: name in admin.list_topics(timeout=5).topics)

    def drop_topics(self, *names: str) -> None:
        """Delete topics where they are, and wait until they are gone."""
        admin = self.kafka.admin()
        there = [name for name in names if name in admin.list_topics(timeout=5).topics]
        for deleted in admin.delete_topics(there).values() if there else ():
            deleted.result()
        _await(lambda: not set(there) & set(admin.list_topics(timeout=5).topics))

    def permit(self, *permissions: Permission) -> None:
        """Add ACLs, and wait until they are in force."""
        bindings = [_binding(permission) for permission in permissions]
        admin = self.kafka.admin()
        for added in admin.create_acls(bindings).values():
            added.result()
        _await(lambda: set(bindings) <= set(admin.describe_acls(_everything(None)).result()))

    def change_password(self, user: str, password: str) -> None:
        """Give a user another password; connections that are open stay so."""
        admin = self.kafka.admin()
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        change = UserScramCredentialUpsertion(user, credential, password.encode())
        for changed in admin.alter_user_scram_credentials([change]).values():
            changed.result()

    def config_of(self, topic: str) -> dict[str, str]:
        """The settings of a topic."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        admin = self.kafka.admin()  # which gives no answers once it is gone
        found = admin.describe_configs([resource])[resource].result()
        return {name: entry.value for name, entry in found.items()}

    def log_of(self, topic: str) -> list[bytes]:
        """The values of a topic of one partition."""
        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": "tests"})
        place = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=_PATIENCE_S)
        consumer.assign([place])
        values: list[bytes] = []
        _await(lambda: len(values.extend(_values(consumer)) or values) >= end)
        consumer.close()
        return values

    def withdraw(self, *principals: str) -> None:
        """Take all ACLs of principals away, and wait until that is in force."""
        admin = self.kafka.admin()
        filters = [_everything(principal) for principal in principals]
        for removed in admin.delete_acls(filters).values():
            removed.result()
        _await(lambda: not any(admin.describe_acls(each).result() for each in filters))

    def _stores(self, certificate: Certificate) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificate.both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.file),
        }


def permissions_in(lines: Iterable[str]) -> list[Permission]:
    """What commands such as `acl --allow-principal User:ada --operation Read --topic events` permit.

    >>> permissions_in(["acl --allow-principal User:ada --operation Read --topic events  # to read"])
    [Permission(principal='User:ada', operation='Read', kind='topic', name='events')]
    """
    found = []
    for line in lines:
        words = line.split("#")[0].split()
        if "--allow-principal" in words:
            options = {words[at][2:]: words[at + 1] for at in range(len(words) - 1) if words[at].startswith("--")}
            kind = next(kind for kind in ("topic", "group") if kind in options)
            found.append(Permission(options["allow-principal"], options["operation"], kind, options[kind]))
    return found


def _binding(permission: Permission) -> AclBinding:
    return AclBinding(
        ResourceType[permission.kind.upper()],
        permission.name,
        ResourcePatternType.LITERAL,
        permission.principal,
        "*",
        AclOperation[permission.operation.upper()],
        AclPermissionType.ALLOW,
    )


def _values(consumer: Consumer) -> list[bytes]:
    return [message.value() for message in consumer.consume(1000, 0.1) if message.error() is None]


def _everything(principal: str | None) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, principal, None, AclOperation.ANY, AclPermissionType.ANY
    )


def _await(condition: Any) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the broker does not take over what it was told")
        time.sleep(0.02)
