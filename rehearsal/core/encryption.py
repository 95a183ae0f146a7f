"""The passphrase of a home, and values that cannot be read without it.

The engine encrypts the secrets of its own state with the same passphrase.
"""

import contextlib
import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12  # source: NIST SP 800-38D, 5.2.1.1: 96 bits are recommended
_PURPOSE = b"trainstack rehearsal state 1"


def passphrase_file(home: Path) -> Path:
    """The passphrase of a home, made when there is none; readable by its owner only."""
    path = home / "passphrase"
    if not path.exists():
        draft = home / f"passphrase.{secrets.token_hex(4)}"
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(24))
        with contextlib.suppress(FileExistsError):  # the first of several processes decides
            os.link(draft, path)
        draft.unlink()
    return path


class Vault:
    """Encrypts JSON values with AES-256-GCM under a key made from the passphrase of a home."""

    def __init__(self, home: Path) -> None:
        # 192 random bits need no slow derivation.
        key = hashlib.blake2b(passphrase_file(home).read_bytes(), digest_size=32, key=_PURPOSE).digest()
        self._cipher = AESGCM(key)

    def seal(self, value: Any) -> bytes:
        """Encrypt a value."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, json.dumps(value).encode(), None)

    def unseal(self, sealed: bytes) -> Any:
        """Decrypt a value. Raises WrongKeyError when it was not sealed with this passphrase."""
        try:
            text = self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except InvalidTag as error:
            raise WrongKeyError("not sealed with this passphrase, or damaged") from error
        return json.loads(text)


class WrongKeyError(Exception):
    """A value cannot be read with the passphrase of its home."""
