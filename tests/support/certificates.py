"""Certificates as PEM files, made for one test run: an authority, and what it signs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, in files of their own and in one together, as brokers take them."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """Signs certificates; `file` is what those who trust it are given."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = _valid(_about(self._name, self._name, self._key), days=30)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def signed(self, name: str, *, days: int = 30, host: str | None = None, password: str | None = None) -> Certificate:
        """A certificate for a name.

        Args:
            days: How long it is valid from now on; one that ended lies in the past.
            host: Name of a host it is for; None is this machine by its address.
            password: Of the key's file.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        of = x509.IPAddress(ip_address("127.0.0.1")) if host is None else x509.DNSName(host)
        made = _valid(_about(subject, self._name, key), days=days)
        made = made.add_extension(x509.SubjectAlternativeName([of]), critical=False)
        certificate = made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        locked = (
            serialization.NoEncryption()
            if password is None
            else serialization.BestAvailableEncryption(password.encode())
        )
        secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
        files = Certificate(*(self._folder / f"{name}{end}" for end in (".crt", ".key", ".both")))
        files.certificate.write_bytes(certificate)
        files.key.write_bytes(secret)
        files.both.write_bytes(secret + certificate)
        return files


def _about(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
    )


def _valid(made: x509.CertificateBuilder, *, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return made.not_valid_before(now - 60 * _DAY).not_valid_after(now + days * _DAY)
