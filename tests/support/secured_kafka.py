"""Apache Kafka that lets nobody in but whom it was told of, and lets nobody do but what ACLs allow."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.apache_kafka import ApacheKafka, Listener
from tests.support.certificates import Authority, Certificate

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PASSWORD = "s3cret-of-tests"
"""Of every user."""


class SecuredKafka:
    """A broker with a listener for each way in.

    Attributes:
        kafka: The broker. Its listeners: OPEN, for whoever may do everything; SASL, by password; SASLTLS, by password
            over TLS; TLS, by certificate; EXPIRED and ELSEWHERE, with certificates that are over, or of another host.
        authority: Signed the certificates of the broker and of those whom it lets in.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.authority = Authority(folder, "authority")
        good = self.authority.signed("broker")
        tls = {"ssl.client.auth": "required"}
        passwords = {"sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN"}
        passwords |= {"scram-sha-256.sasl.jaas.config": _SCRAM, "plain.sasl.jaas.config": f'{_PLAIN} user_plain="{PASSWORD}";'}
        self.kafka = ApacheKafka(
            folder / "kafka",
            listeners=(
                Listener("OPEN", "PLAINTEXT"),
                Listener("SASL", "SASL_PLAINTEXT", passwords),
                Listener("SASLTLS", "SASL_SSL", passwords | self._stores(good)),
                Listener("TLS", "SSL", tls | self._stores(good)),
                Listener("EXPIRED", "SSL", self._stores(self.authority.signed("expired", days=-1))),
                Listener("ELSEWHERE", "SSL", self._stores(self.authority.signed("elsewhere", host="kafka.example"))),
            ),
            settings={
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                "auto.create.topics.enable": "false",
            },
            scram={"root": PASSWORD},
        )

    def _stores(self, certificate: Certificate) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificate.both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.file),
        }
