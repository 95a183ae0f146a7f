"""Tokens signed by service accounts with keys that Google manages (RFC 7515, 7519, RS256).

Source: the discovery document of iamcredentials v1 (signJwt: at most 12 hours, an hour without `exp`).
"""

import base64
import binascii
import json
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

_LONGEST_S, _USUAL_S = 12 * 3600, 3600


class UnsignableError(ValueError):
    """The service refuses to sign these claims."""


class UntrustedError(ValueError):
    """A token without a valid signature; the message is that of Identity-Aware Proxy."""


@dataclass(frozen=True)
class _Key:
    id: str
    private: RSAPrivateKey


class SigningKeys:
    """One key for each account, made at the first signature and kept in memory only."""

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}
        self._lock = threading.Lock()

    def signed(self, email: str, payload: str) -> tuple[str, str]:
        """The id of the account's key, and the token with this payload. Raises UnsignableError."""
        claims = _object(payload.encode())
        if claims is None:
            raise UnsignableError("The payload must be a serialized JSON object that contains a claims set.")
        now = int(time.time())
        until = claims.setdefault("exp", now + _USUAL_S)
        if not isinstance(until, int) or not now <= until <= now + _LONGEST_S:
            raise UnsignableError("exp must be an integer, not in the past and at most 12 hours from now.")
        key = self._key(email)
        header = {"alg": "RS256", "kid": key.id, "typ": "JWT"}
        head = b".".join(_text(json.dumps(one).encode()) for one in (header, claims))
        return key.id, b".".join((head, _text(key.private.sign(head, PKCS1v15(), SHA256())))).decode()

    def verified(self, token: str) -> Mapping[str, Any]:
        """The claims of a token, signed by the account that it names. Raises UntrustedError."""
        head, _, signature = token.rpartition(".")
        try:
            claims = _object(_bytes(head.rpartition(".")[2]))
            signed = _bytes(signature)
        except binascii.Error:
            claims = None
        if claims is None or head.count(".") != 1:
            raise UntrustedError("Unable to parse JWT")
        with self._lock:
            key = self._keys.get(str(claims.get("iss")))
        try:
            if key is None:
                raise InvalidSignature
            key.private.public_key().verify(signed, head.encode(), PKCS1v15(), SHA256())
        except InvalidSignature:
            raise UntrustedError("JWT signature is invalid") from None
        return claims

    def _key(self, email: str) -> _Key:
        with self._lock:
            if email not in self._keys:
                self._keys[email] = _Key(secrets.token_hex(20), generate_private_key(65537, 2048))
            return self._keys[email]


def _object(content: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _text(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
