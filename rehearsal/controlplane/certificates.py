"""Certificate authorities of a control plane and the certificates that they sign."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Kueue renews certificates that expire within three months (open-policy-agent/cert-controller pkg/rotator).
_DAYS = 365
_LOOPBACK = "127.0.0.1"

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """An authority whose files and signed certificates are in `folder`, readable by their owner.

    Uses an existing key of the folder, else creates one.
    """

    def __init__(self, folder: Path, name: str = "trainstack-control-plane") -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self.file, key = folder / "ca.crt", folder / "ca.key"
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        if self.file.exists():
            loaded = serialization.load_pem_private_key(key.read_bytes(), None)
            assert isinstance(loaded, rsa.RSAPrivateKey)
            self._key = loaded
            self._certificate = x509.load_pem_x509_certificate(self.file.read_bytes())
            return
        # RSA: the only type that Kueue reads for its webhook's authority (open-policy-agent/cert-controller).
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        builder = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        )
        self._certificate = builder.sign(self._key, hashes.SHA256())
        write_key(self._key, key)
        self.file.write_bytes(self.pem)

    @property
    def key_pem(self) -> bytes:
        """Private key of the authority."""
        return _pem(self._key)

    @property
    def pem(self) -> bytes:
        """Certificate of the authority."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def sign(self, name: str, groups: tuple[str, ...] = (), hosts: tuple[str, ...] = ()) -> Pair:
        """Certificate of a user (with `groups`), or of a server on loopback with the names `hosts`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        names = [x509.DNSName(host) for host in ("localhost", *hosts)]
        address = x509.IPAddress(ipaddress.ip_address(_LOOPBACK))
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = (
            self._builder(subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(x509.SubjectAlternativeName([*names, address]), critical=False)
        )
        file = name.replace(":", "-")
        pair = Pair(self._folder / f"{file}.crt", self._folder / f"{file}.key")
        pair.certificate.write_bytes(
            builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        write_key(key, pair.key)
        return pair

    def _builder(self, subject: x509.Name, key: Key) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=_DAYS))
        )


def write_key(key: Key, path: Path) -> None:
    """Write a private key with access for its owner only."""
    path.touch(mode=0o600)
    path.write_bytes(_pem(key))


def _pem(key: Key) -> bytes:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
