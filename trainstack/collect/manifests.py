"""Redaction of Kubernetes objects for a snapshot: no status, and no values that may be secret."""

import re
from typing import Any

from trainstack.collect.redaction import GONE, NAMES

SECRET = "[secret]"  # noqa: S105 - the placeholder of the Pulumi CLI
"""Replaces a whole value, which is then unknown."""
# ConfigMaps whose values rules read; of others only the keys are kept.
_READ_MAPS = ("aws-auth", "amazon-vpc-cni")
# Contains a copy of the applied object with its secrets.
_COPY = "kubectl.kubernetes.io/last-applied-configuration"
_NAMED = re.compile(rf"{NAMES}|^authorization$", re.IGNORECASE)
_QUOTE = r"""\\*["']?"""
# `--db-password=x`, `TOKEN=x`, `"token": "x"` in commands, scripts and texts; `$TOKEN` is a reference.
_GIVEN = re.compile(
    rf"""([\w-]*(?:{NAMES})[\w-]*{_QUOTE}\s*[=:]\s*)(?!{_QUOTE}(?:[$\{{\[]|(?:true|false|null)\b))"""
    rf"""(\\*"[^"]*"|'[^']*'|[^\s"'&;|,}}]+)""",
    re.IGNORECASE,
)
_OPTION = re.compile(rf"--?[\w-]*(?:{NAMES})[\w-]*", re.IGNORECASE)
_HEADER = re.compile(r"\b((?:Basic|Bearer)\s+)[^\s\"'$]+")
# A password in a URL, but no placeholder: `{password}`, `$PASSWORD`.
_LOGIN = re.compile(r"(://[^/\s:@]*:)(?!\{\w+\}@|\$\w+@|\$[{(]\w+[)}]@)[^/\s@]+@")
# References to a secret; other values with these prefixes may be secrets; variables with a path.
_REFERENCE = re.compile(r"arn:.*|projects/.*|\$\(\w+\)|true|false")
_UNCLEAR = ("/", "file:", "$(")
_PATH = re.compile(r".*(FILE|PATH|DIR)", re.IGNORECASE)
# Free-form maps.
_MAPS = ("annotations", "options", "parameters", "rayStartParams", "volumeAttributes")


def kept(body: dict[str, Any]) -> dict[str, Any]:
    """An object without status and secrets, with only the names of its managers."""
    left_out = ("status", "data", "binaryData")
    found = {key: _without(value) for key, value in body.items() if key not in left_out}
    if isinstance(body.get("data"), dict):
        whole = (body.get("metadata") or {}).get("name") in _READ_MAPS
        found["data"] = body["data"] if whole else dict.fromkeys(body["data"], SECRET)
    found["metadata"] = _metadata(found.get("metadata") or {})
    return found


def _metadata(given: dict[str, Any]) -> dict[str, Any]:
    left_out = ("managedFields", "resourceVersion", "generation", "selfLink")
    made = {key: value for key, value in given.items() if key not in left_out}
    if "annotations" in made:
        made["annotations"] = {key: value for key, value in made["annotations"].items() if key != _COPY}
    managers = dict.fromkeys(str(one.get("manager")) for one in given.get("managedFields") or ())
    if managers:
        made["managedFields"] = [{"manager": name} for name in managers]
    return made


def _without(value: Any) -> Any:
    if isinstance(value, str):
        for pattern, put in ((_GIVEN, GONE), (_HEADER, GONE), (_LOGIN, f"{GONE}@")):
            value = pattern.sub(rf"\1{put}", value)
        return value
    if isinstance(value, list):
        are_words = all(isinstance(one, str) for one in value)
        return _words(value) if are_words else [_without(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {
        key: _map(one) if key in _MAPS and isinstance(one, dict) else _without(one)
        for key, one in value.items()
    }
    if isinstance(value.get("value"), str) and _NAMED.search(str(value.get("name", ""))):
        found["value"] = _credential(str(value["name"]), value["value"])
    return found


def _credential(name: str, value: str) -> str:
    """Replacement of a value that is named like a secret.

    It keeps what rules check: whether it is a literal, and whether it contains a login. Numbers and paths,
    which may be secrets, are replaced entirely.
    """
    if not value or _REFERENCE.fullmatch(value) or (_PATH.fullmatch(name) and value.startswith("/")):
        return value
    if value.isdecimal() or value.startswith(_UNCLEAR):
        return SECRET
    return f"://{GONE}:{GONE}@" if _LOGIN.search(value) else GONE


def _map(given: dict[str, Any]) -> dict[str, Any]:
    return {
        key: SECRET if isinstance(value, str) and _NAMED.search(key.rpartition("/")[2]) else _without(value)
        for key, value in given.items()
    }


def _words(given: list[str]) -> list[str]:
    """Words of a command, without the value after an option that is named like a secret."""
    before = ["", *given][: len(given)]
    return [
        GONE if _OPTION.fullmatch(option) and not word.startswith(("-", "$")) else _without(word)
        for option, word in zip(before, given, strict=True)
    ]
