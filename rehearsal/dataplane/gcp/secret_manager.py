"""Secret Manager: access, add, get, list, enable, disable and destroy versions.

Source: the discovery document of secretmanager v1 (paths, fields).
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.gcp.http import Answer, ApiCall, Method, ServiceError
from rehearsal.dataplane.gcp.iam_bindings import allowed
from rehearsal.dataplane.gcp.secret_store import ENABLED, GoogleSecrets, Version

_SECRET = r"v1/(?P<secret>projects/[^/]+/secrets/[^/:]+)"  # noqa: S105 - a path
_VERSION = rf"{_SECRET}/versions/(?P<version>[^/:]+)"
_FAILED = "FAILED_PRECONDITION"
_BYTES = 65_536  # of a version's payload


class SecretManager:
    """See `http.Api`."""

    def __init__(self, state: State) -> None:
        self._state, self._secrets = state, GoogleSecrets(state)

    def methods(self) -> Sequence[Method]:
        """See `http.Api`."""
        return (
            Method("GET", rf"{_VERSION}:access", self._access),
            Method("GET", _VERSION, self._describe),
            Method("POST", rf"{_VERSION}:(?P<verb>enable|disable|destroy)", self._change),
            Method("GET", rf"{_SECRET}/versions", self._list),
            Method("POST", rf"{_SECRET}:addVersion", self._add),
            Method("GET", _SECRET, self._get),
        )

    def _access(self, call: ApiCall) -> Answer:
        secret = self._secret(call, "versions.access", f"/versions/{call.parts['version']}")
        version = self._version(secret, call.parts)
        if version.state != ENABLED:
            raise ServiceError(
                400, f"Secret Version [{_named(secret, version)}] is in {version.state} state.", _FAILED
            )
        checksum = str(_crc32c(base64.b64decode(version.data)))
        return {"name": _named(secret, version), "payload": {"data": version.data, "dataCrc32c": checksum}}

    def _add(self, call: ApiCall) -> Answer:
        secret = self._secret(call, "versions.add")
        payload = call.body.get("payload")
        data = payload.get("data") if isinstance(payload, Mapping) else None
        try:
            size = len(base64.b64decode(str(data or ""), validate=True))
        except binascii.Error:
            message = "Invalid value at 'payload.data' (TYPE_BYTES), Base64 decoding failed"
            raise ServiceError(400, message) from None
        if not data or size > _BYTES:
            raise ServiceError(400, f"The secret payload must have 1 to {_BYTES} bytes.")
        return self._shown(secret, self._secrets.add(secret, str(data)))

    def _get(self, call: ApiCall) -> Answer:
        secret = self._secret(call, "secrets.get")
        return {"name": secret.outputs["name"], "createTime": secret.outputs.get("createTime")}

    def _list(self, call: ApiCall) -> Answer:
        secret = self._secret(call, "versions.list")
        rows = [self._shown(secret, one) for one in reversed(self._secrets.versions(secret))]
        return {"versions": rows, "totalSize": len(rows)}

    def _describe(self, call: ApiCall) -> Answer:
        secret = self._secret(call, "versions.get", f"/versions/{call.parts['version']}")
        return self._shown(secret, self._version(secret, call.parts))

    def _change(self, call: ApiCall) -> Answer:
        verb = call.parts["verb"]
        secret = self._secret(call, f"versions.{verb}", f"/versions/{call.parts['version']}")
        version = self._version(secret, call.parts)
        if version.state == "DESTROYED":
            raise ServiceError(
                400, f"Secret Version [{_named(secret, version)}] is in DESTROYED state.", _FAILED
            )
        state = {"enable": ENABLED, "disable": "DISABLED", "destroy": "DESTROYED"}[verb]
        return self._shown(secret, self._secrets.set_state(secret, version, state))

    def _secret(self, call: ApiCall, verb: str, below: str = "") -> Record:
        """The secret of a request. Raises ServiceError unless the caller has the permission."""
        permission, name = f"secretmanager.{verb}", call.parts["secret"]
        secret = self._secrets.find(name)
        full = f"{secret.outputs['name']}{below}" if secret else ""
        if secret is None or not allowed(self._state, call.caller.members, permission, secret, full):
            message = f"Permission '{permission}' denied for resource '{name}{below}' (or it may not exist)."
            raise ServiceError(403, message)
        return secret

    def _version(self, secret: Record, parts: Mapping[str, str]) -> Version:
        version = self._secrets.version(secret, parts["version"])
        if version is None:
            wanted = f"{secret.outputs['name']}/versions/{parts['version']}"
            if parts["version"] == "latest" or not self._secrets.versions(secret):
                raise ServiceError(404, f"Secret [{secret.outputs['name']}] not found or has no versions.")
            raise ServiceError(404, f"Secret Version [{wanted}] not found.")
        return version

    def _shown(self, secret: Record, version: Version) -> Answer:
        return {"name": _named(secret, version), "createTime": _now(), "state": version.state}


def _named(secret: Record, version: Version) -> str:
    return f"{secret.outputs['name']}/versions/{version.number}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _crc32c(data: bytes) -> int:
    """The checksum of RFC 3720, appendix B.4 (Castagnoli), bit by bit: payloads are small."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
