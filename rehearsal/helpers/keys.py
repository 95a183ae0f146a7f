"""Private keys in the formats that the `tls` package offers. Source: documentation of hashicorp/tls."""

import base64
import hashlib
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from rehearsal.core.model import Properties, RefusalError

_CURVES: dict[str, type[ec.EllipticCurve]] = {
    "P224": ec.SECP224R1,
    "P256": ec.SECP256R1,
    "P384": ec.SECP384R1,
    "P521": ec.SECP521R1,
}
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def make(inputs: Properties) -> tuple[str, Properties]:
    """Id (digest of the public key) and outputs of a new key. Raises RefusalError for unknown algorithms."""
    algorithm, curve = str(inputs["algorithm"]), str(inputs["ecdsaCurve"])
    key: PrivateKey
    if algorithm == "RSA":
        key = rsa.generate_private_key(public_exponent=65537, key_size=int(inputs["rsaBits"]))
    elif algorithm == "ECDSA" and curve in _CURVES:
        key = ec.generate_private_key(_CURVES[curve]())
    elif algorithm == "ED25519":
        key = ed25519.Ed25519PrivateKey.generate()
    else:
        message = f"unknown algorithm {algorithm} or curve {curve}."
        fix = f"Known are RSA, ECDSA (with {', '.join(_CURVES)}) and ED25519."
        raise RefusalError("InvalidAlgorithm", message, fix)
    return digest(key), {**_private(key), **public(key)}


def digest(key: PrivateKey) -> str:
    """The SHA-1 of a public key, by which keys and certificates are identified."""
    encoded = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha1(encoded, usedforsecurity=False).hexdigest()


def load(pem: Any) -> PrivateKey:
    """The key in a PEM or OpenSSH text. Raises RefusalError for other text."""
    text = str(pem).encode()
    try:
        if b"OPENSSH" in text:
            key: Any = serialization.load_ssh_private_key(text, password=None)
        else:
            key = serialization.load_pem_private_key(text, password=None)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise RefusalError("InvalidPrivateKey", f"the private key cannot be read: {error}") from error
    if not isinstance(key, PrivateKey):
        raise RefusalError("InvalidPrivateKey", f"keys of the kind {type(key).__name__} are not supported")
    return key


def algorithm_of(key: PrivateKey) -> str:
    """The name of a key's algorithm."""
    if isinstance(key, rsa.RSAPrivateKey):
        return "RSA"
    return "ECDSA" if isinstance(key, ec.EllipticCurvePrivateKey) else "ED25519"


def _private(key: PrivateKey) -> Properties:
    formats = serialization.PrivateFormat
    traditional = formats.PKCS8 if algorithm_of(key) == "ED25519" else formats.TraditionalOpenSSL
    spellings = {"privateKeyPem": traditional, "privateKeyPemPkcs8": formats.PKCS8}
    plain, pem = serialization.NoEncryption(), serialization.Encoding.PEM
    found = {name: key.private_bytes(pem, form, plain).decode() for name, form in spellings.items()}
    # OpenSSH has no P-224.
    openssh = "" if _is_p224(key) else key.private_bytes(pem, formats.OpenSSH, plain).decode()
    return {**found, "privateKeyOpenssh": openssh}


def public(key: PrivateKey) -> Properties:
    """The public half: PEM, OpenSSH (with the fingerprints that `ssh-keygen -l` prints)."""
    formats, encodings = serialization.PublicFormat, serialization.Encoding
    pem = key.public_key().public_bytes(encodings.PEM, formats.SubjectPublicKeyInfo).decode()
    found = {
        "publicKeyPem": pem,
        "publicKeyOpenssh": "",
        "publicKeyFingerprintMd5": "",
        "publicKeyFingerprintSha256": "",
    }
    if _is_p224(key):
        return found
    line = key.public_key().public_bytes(encodings.OpenSSH, formats.OpenSSH).decode()
    blob = base64.b64decode(line.split()[1])
    md5 = hashlib.md5(blob, usedforsecurity=False).hexdigest()
    sha256 = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return {
        **found,
        "publicKeyOpenssh": f"{line}\n",
        "publicKeyFingerprintMd5": ":".join(md5[at : at + 2] for at in range(0, len(md5), 2)),
        "publicKeyFingerprintSha256": f"SHA256:{sha256}",
    }


def _is_p224(key: PrivateKey) -> bool:
    return isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP224R1)
