"""Redaction of API answers for a snapshot: user data, instance metadata, and values named like secrets."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from policies.sources.live.aws.templates import WORDS

GONE = "(redacted)"
NAMES = r"passw|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key"
"""Names of secrets, as a case-insensitive regular expression."""
_SECRET = re.compile(NAMES, re.IGNORECASE)


def redacted(answer: Any) -> Any:
    """An answer without possible secrets in free-form fields."""
    if isinstance(answer, dict):
        return {
            key: _FIELDS[key](value) if key in _FIELDS and isinstance(value, str) else redacted(value)
            for key, value in answer.items()
        }
    return [redacted(one) for one in answer] if isinstance(answer, list) else answer


def _user_data(value: str) -> dict[str, Any]:
    """Only the WORDS that it contains: scripts of nodes contain logins and join tokens."""
    try:
        plain = base64.b64decode(value, validate=True).decode(errors="replace")
    except binascii.Error:
        plain = value
    return {"words": [word for word in WORDS if word in plain]}


def _settings(value: str) -> str:
    """Settings of an add-on without values named like secrets; as a whole if not JSON."""
    try:
        return json.dumps(_without(json.loads(value)))
    except ValueError:
        return GONE if _SECRET.search(value) else value


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        named = _SECRET.search(str(value.get("name", ""))) is not None
        return {
            key: GONE if _SECRET.search(key) or (named and key == "value") else _without(one)
            for key, one in value.items()
        }
    return [_without(one) for one in value] if isinstance(value, list) else value


def redacted_asset(answer: Any) -> Any:
    """An answer of Google Cloud without instance metadata, logins, and values named like secrets.

    Metadata contains start-up scripts, SSH keys and join tokens: only the names of its entries are kept.
    Labels and descriptions are kept.
    """
    if isinstance(answer, dict):
        return {key: _of_asset(key, value) for key, value in answer.items()}
    return [redacted_asset(one) for one in answer] if isinstance(answer, list) else answer


def _of_asset(key: str, value: Any) -> Any:
    if key in _PLAIN:
        return value
    if key in _LOGINS or (isinstance(value, str) and _SECRET.search(key)):
        return GONE
    if key in _METADATA and isinstance(value, dict | list):
        return _names(value)
    return redacted_asset(value)


def _names(value: Any) -> Any:
    """Names of the entries of an object, a list of names with values, or a list below `items`."""
    if isinstance(value, list):
        return [{**one, "value": GONE} for one in value if isinstance(one, dict)]
    if isinstance(value.get("items"), list):
        return {"items": _names(value["items"])}
    return dict.fromkeys(value, GONE)


# `masterAuth` of a cluster contains its password and client key; CSEKs of disks are raw or wrapped by RSA.
_LOGINS = ("masterAuth", "rawKey", "rsaEncryptedKey", "privateKeyData", "publicKeyData")
_METADATA = ("metadata", "annotations", "env")
_PLAIN = ("labels", "userLabels", "resourceLabels", "attributeMapping")
_FIELDS: Mapping[str, Callable[[str], Any]] = {"UserData": _user_data, "configurationValues": _settings}
