"""Validators of the Google provider as facts: words, ranges, patterns, lengths and forms of values."""

import re
from collections.abc import Mapping
from typing import Any

_GO_DURATION = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)\Z"
_BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})\Z"
_NAME = r"^[a-z]([-a-z0-9]*[a-z0-9])?\Z"
# Functions without arguments: google-beta/verify/validation.go and those of single services.
_PLAIN: Mapping[str, Mapping[str, Any]] = {
    "verify.ValidateGCEName": {"pattern": r"^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)\Z"},
    "verify.ValidateIAMCustomRoleID": {"pattern": r"^[a-zA-Z0-9_\.]{3,64}\Z"},
    "verify.ValidateRFC3339Time": {"pattern": r"^([01][0-9]|2[0-3]):[0-5][0-9]\Z"},
    "verify.ValidateHourlyOnly": {"pattern": r"^([01]?[0-9]|2[0-3]):00\Z"},
    "verify.ValidateRFC3339Date": {"pattern": _TIME},
    "verify.ValidateBase64String": {"pattern": _BASE64},
    "verify.ValidateIpCidrRange": {"form": "cidr"},
    "validation.IsCIDR": {"form": "cidr"},
    "validation.StringIsJSON": {"form": "json"},
    "validation.IsRFC3339Time": {"pattern": _TIME},
    "verify.ValidateDuration": {"pattern": _GO_DURATION},
    "dns.validateRecordNameTrailingDot": {"pattern": r"\.\Z"},
    "verify.ValidateRFC6996Asn": {"ranges": [[64512, 65534], [4200000000, 4294967294], [16550, 16550]]},
    "container.validateDuration": {"pattern": _GO_DURATION},
    "kms.validateKmsCryptoKeyRotationPeriod": {"form": "rotation"},
    "storage.labelKeyValidator": {"keys": r"^[a-z0-9_-]{1,63}\Z"},
    "cloudscheduler.validateHttpHeaders": {"keys": r"^(?!Content-Length\Z)(?!.*(X-Google-|X-AppEngine-))"},
    # Bans, besides, the APIs that no project can enable or disable.
    "resourcemanager.validateProjectServiceService": {"pattern": r"\."},
    "tpgiamresource.validateIAMMember": {
        "pattern": r"^(?!deleted).*(.+:.+|projectOwners|projectReaders|projectWriters|allUsers|"
        r"allAuthenticatedUsers)"
    },
    # It warns only.
    "compute.ValidateInstanceMetadata": {},
}
# Functions that the schema itself holds, by what is typical of them.
_INLINE: Mapping[str, Mapping[str, Any]] = {
    "longer than 40 characters": {"pattern": r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?\Z"},
    "longer than 31 characters": {"length": [0, 31]},
    "Failed to decode (base64)": {"pattern": _BASE64},
}


def constraint(validator: Mapping[str, Any]) -> dict[str, Any] | None:
    """Fact -> value of a validator; None for an unknown one."""
    name, arguments = str(validator.get("func") or ""), validator.get("arguments", [])
    if name in _PLAIN:
        return dict(_PLAIN[name])
    if not name:
        text = validator.get("source", "")
        return next((dict(found) for mark, found in _INLINE.items() if mark in text), None)
    return _with_arguments(name, arguments)


def _with_arguments(name: str, arguments: list[Any]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = None
    match (name.rpartition(".")[2], arguments):
        case (("StringInSlice" | "ValidateEnum"), [list() as words, *rest]):
            found = {"words_any_case" if rest == [True] else "words": words}
        case (("IntAtLeast" | "FloatAtLeast"), [lowest]):
            found = {"ranges": [[lowest, None]]}
        case ("IntAtMost", [highest]):
            found = {"ranges": [[None, highest]]}
        case (("IntBetween" | "FloatBetween"), [lowest, highest]):
            found = {"ranges": [[lowest, highest]]}
        case ("StringLenBetween", [lowest, highest]):
            found = {"length": [lowest, highest]}
        case (("ValidateRegexp" | "StringMatch"), [str() as pattern, *_]):
            found = {"pattern": _python(pattern)} if _python(pattern) else None
        case ("ValidateRFC1035Name", [lowest, highest]):
            found = {"pattern": _NAME, "length": [lowest, highest]}
        case (("IsCIDRNetwork" | "ValidateRFC1918Network") as form, [lowest, highest]):
            found = {"form": f"{'private' if '1918' in form else 'network'} {lowest} {highest}"}
        case ("OrEmpty", [inner]):
            found = {**(constraint(inner) or {}), "blank": True}
    return found


def _python(pattern: str) -> str:
    """A pattern of Go's for Python, where `$` also matches before a last line break; empty without one."""
    found = pattern.replace("$", r"\Z")
    try:
        re.compile(found)
    except re.error:
        return ""
    return found
