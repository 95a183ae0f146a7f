"""Checksums of uploads, verified as in S3.

Source: Amazon S3 User Guide, "Checking object integrity". CRC32C and CRC64NVME are not verified.
"""

import base64
import hashlib
import zlib
from collections.abc import Mapping
from typing import Any

from rehearsal.dataplane.aws.http import Readable, ServiceError

_PREFIX = "x-amz-checksum-"


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: bytes) -> None:
        self._value = zlib.crc32(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


class Checked:
    """A body that verifies its checksums at the end: those `sent` before it and in trailers."""

    def __init__(self, inside: Readable, sent: Mapping[str, str]) -> None:
        self._inside, self._sent = inside, sent
        self._sums: dict[str, Any] = {
            f"{_PREFIX}crc32": _Crc32(),
            f"{_PREFIX}sha1": hashlib.sha1(usedforsecurity=False),
            f"{_PREFIX}sha256": hashlib.sha256(),
            "content-md5": hashlib.md5(usedforsecurity=False),
        }

    def read(self, size: int = -1, /) -> bytes:
        """See `Readable`."""
        data = self._inside.read(size)
        for one in self._sums.values():
            one.update(data)
        return data

    def compare(self) -> dict[str, str]:
        """Verify and return the checksums for the response. Raises ServiceError BadDigest."""
        trailers: Mapping[str, str] = getattr(self._inside, "trailers", {})
        given = {**self._sent, **trailers}
        for name, one in self._sums.items():
            if name in given and base64.b64encode(one.digest()).decode() != given[name]:
                what = name.removeprefix(_PREFIX).upper() if name != "content-md5" else "Content-MD5"
                raise ServiceError("BadDigest", f"The {what} you specified did not match what we received.")
        skipped = (f"{_PREFIX}algorithm", f"{_PREFIX}type", f"{_PREFIX}mode")
        return {name: v for name, v in given.items() if name.startswith(_PREFIX) and name not in skipped}
