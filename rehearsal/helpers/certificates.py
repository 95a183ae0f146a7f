"""Certificates and requests of the `tls` package. Source: registry documentation of hashicorp/tls."""

import datetime
import hashlib
import ipaddress
from collections.abc import Iterable
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from rehearsal.core.model import Properties, RefusalError
from rehearsal.helpers.keys import PrivateKey, algorithm_of, load

_NAMES = {
    "commonName": NameOID.COMMON_NAME,
    "country": NameOID.COUNTRY_NAME,
    "emailAddress": NameOID.EMAIL_ADDRESS,
    "locality": NameOID.LOCALITY_NAME,
    "organization": NameOID.ORGANIZATION_NAME,
    "organizationalUnit": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "postalCode": NameOID.POSTAL_CODE,
    "province": NameOID.STATE_OR_PROVINCE_NAME,
    "serialNumber": NameOID.SERIAL_NUMBER,
}
_EXTENDED = {
    "any_extended": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "client_auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code_signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email_protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "ocsp_signing": ExtendedKeyUsageOID.OCSP_SIGNING,
    "server_auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ipsec_end_system": ObjectIdentifier("1.3.6.1.5.5.7.3.5"),
    "ipsec_tunnel": ObjectIdentifier("1.3.6.1.5.5.7.3.6"),
    "ipsec_user": ObjectIdentifier("1.3.6.1.5.5.7.3.7"),
}
# Names in `allowedUses` -> bits of the key usage extension.
_USES = {
    "digital_signature": "digital_signature",
    "content_commitment": "content_commitment",
    "key_encipherment": "key_encipherment",
    "data_encipherment": "data_encipherment",
    "key_agreement": "key_agreement",
    "cert_signing": "key_cert_sign",
    "crl_signing": "crl_sign",
    "encipher_only": "encipher_only",
    "decipher_only": "decipher_only",
}


def request(inputs: Properties) -> tuple[str, Properties]:
    """Id and outputs of a signing request."""
    key = load(inputs.get("privateKeyPem"))
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(inputs.get("subject") or {}))
    names = _alternatives(inputs)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(key, _hash(key))
    pem = made.public_bytes(serialization.Encoding.PEM)
    identifier = hashlib.sha1(pem, usedforsecurity=False).hexdigest()
    return identifier, {"certRequestPem": pem.decode(), "keyAlgorithm": algorithm_of(key)}


def self_signed(inputs: Properties) -> tuple[str, Properties]:
    """Id and outputs of a self-signed certificate."""
    key = load(inputs.get("privateKeyPem"))
    name = _name(inputs.get("subject") or {})
    names = _alternatives(inputs)
    identifier, outputs = _certificate(inputs, key, name, key.public_key(), names=names)
    return identifier, {**outputs, "keyAlgorithm": algorithm_of(key)}


def locally_signed(inputs: Properties) -> tuple[str, Properties]:
    """Id and outputs of a certificate signed by a private authority."""
    key = load(inputs.get("caPrivateKeyPem"))
    try:
        request = x509.load_pem_x509_csr(str(inputs["certRequestPem"]).encode())
        authority = x509.load_pem_x509_certificate(str(inputs["caCertPem"]).encode())
    except ValueError as error:
        raise RefusalError("InvalidPem", f"the request or the authority cannot be read: {error}") from error
    wanted: Iterable[x509.GeneralName] = ()
    for extension in request.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            wanted = extension.value
    identifier, outputs = _certificate(
        inputs, key, request.subject, request.public_key(), names=list(wanted), authority=authority
    )
    return identifier, {**outputs, "caKeyAlgorithm": algorithm_of(key)}


def _certificate(
    inputs: Properties,
    key: PrivateKey,
    subject: x509.Name,
    public: Any,
    *,
    names: list[x509.GeneralName],
    authority: x509.Certificate | None = None,
) -> tuple[str, Properties]:
    """A certificate signed by `key`: self-signed, or as `authority` for another public key."""
    start = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    end = start + datetime.timedelta(hours=int(inputs["validityPeriodHours"]))
    is_authority, length = bool(inputs.get("isCaCertificate")), inputs.get("maxPathLength")
    limit = int(length) if is_authority and length is not None and int(length) >= 0 else None
    constraints = x509.BasicConstraints(ca=is_authority, path_length=limit)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject if authority is not None else subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(constraints, critical=True)
    )
    for value, critical in _usages(inputs["allowedUses"]):
        builder = builder.add_extension(value, critical=critical)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if inputs.get("setSubjectKeyId") or is_authority:
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    if authority is not None or inputs.get("setAuthorityKeyId"):
        holder = authority.public_key() if authority is not None else key.public_key()
        issued_by: Any = x509.AuthorityKeyIdentifier.from_issuer_public_key
        builder = builder.add_extension(issued_by(holder), critical=False)
    made = builder.sign(key, _hash(key))
    outputs = {
        "certPem": made.public_bytes(serialization.Encoding.PEM).decode(),
        "validityStartTime": start.isoformat().replace("+00:00", "Z"),
        "validityEndTime": end.isoformat().replace("+00:00", "Z"),
        "readyForRenewal": False,
    }
    return str(made.serial_number), outputs


def _name(subject: Properties) -> x509.Name:
    attributes = [
        x509.NameAttribute(oid, str(subject[name])) for name, oid in _NAMES.items() if subject.get(name)
    ]
    attributes += [
        x509.NameAttribute(NameOID.STREET_ADDRESS, str(line)) for line in subject.get("streetAddresses") or ()
    ]
    return x509.Name(attributes)


def _alternatives(inputs: Properties) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName(str(name)) for name in inputs.get("dnsNames") or ()]
    for address in inputs.get("ipAddresses") or ():
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(str(address))))
        except ValueError as error:
            raise RefusalError("InvalidIPAddress", f"{error} (property ipAddresses)") from error
    return names + [x509.UniformResourceIdentifier(str(uri)) for uri in inputs.get("uris") or ()]


def _usages(allowed: Iterable[Any]) -> Iterable[tuple[Any, bool]]:
    """The two extensions of allowed uses. Raises RefusalError for unknown ones."""
    uses = [str(use) for use in allowed]
    strange = [use for use in uses if use not in _USES and use not in _EXTENDED]
    if strange:
        known = ", ".join(sorted({*_USES, *_EXTENDED}))
        raise RefusalError("InvalidAllowedUse", f"unknown: {', '.join(strange)}.", f"Known are {known}.")
    bits = {bit: any(_USES.get(use) == bit for use in uses) for bit in _USES.values()}
    if not bits["key_agreement"]:  # the two exist only together with it
        bits["encipher_only"] = bits["decipher_only"] = False
    if any(bits.values()):
        yield x509.KeyUsage(**bits), True
    extended = [_EXTENDED[use] for use in uses if use in _EXTENDED]
    if extended:
        yield x509.ExtendedKeyUsage(extended), False


def _hash(key: PrivateKey) -> hashes.SHA256 | None:
    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
