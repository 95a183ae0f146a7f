"""Names and ids as the services give them.

A template holds words in braces: a property of the resource (`{bucket}`), `{id}`, `{arn}`, `{region}`,
`{account}`, `{now}`, `{uuid}`, `{leaf:property}` (after the last slash), `{host:property}` (a URL without its
scheme), and drawn characters, N of them: `{hexN}` and `{fakeN:label}` hexadecimal, `{FAKEN}` upper case,
`{mountN}` lower case, `{randomN}` mixed.
"""

import datetime
import hashlib
import re
import uuid
from collections.abc import Mapping
from typing import Any

from rehearsal.aws.table import Row
from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import at

_WORD = re.compile(r"\{([^{}]+)\}")
_DRAWN = re.compile(r"(hex|fake|FAKE|random|mount)(\d+)(?::(\w+))?")
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_MIXED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
# How many random characters follow the logical name; the real providers use seven.
_SUFFIX = 7


def expand(template: Any, seed: str, values: Mapping[str, Any]) -> Any:
    """Fill in a template, inside of lists and mappings too; what is not text stays.

    The same seed gives the same drawn characters.
    """
    if isinstance(template, list | tuple):
        return [expand(item, seed, values) for item in template]
    if isinstance(template, dict):
        return {name: expand(item, seed, values) for name, item in template.items()}
    if not isinstance(template, str):
        return template
    return _WORD.sub(lambda match: _word(match.group(1), seed, values), template)


def _word(word: str, seed: str, values: Mapping[str, Any]) -> str:
    drawn = _DRAWN.fullmatch(word)
    if drawn:
        kind, size, label = drawn.group(1), int(drawn.group(2)), drawn.group(3) or ""
        alphabet = {"FAKE": _UPPER, "random": _MIXED, "mount": _MIXED[26:]}.get(kind, "0123456789abcdef")
        return draw(f"{seed}/{kind[:3]}/{label}", size, alphabet)
    if word == "uuid":
        return str(uuid.UUID(bytes=hashlib.sha256(seed.encode()).digest()[:16], version=4))
    if word == "now":
        return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    function, _, name = word.partition(":")
    value = values.get(name or word)
    text = "" if value is None or value is UNKNOWN else str(value)
    if name and function == "leaf":
        return text.rpartition("/")[2]
    return text.partition("://")[2] or text if name and function == "host" else text


def draw(seed: str, size: int, alphabet: str = "0123456789abcdef") -> str:
    """`size` characters that look random and follow from the seed."""
    digest = hashlib.sha512(seed.encode()).digest()
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:size])


def auto_name(row: Row, logical: str, seed: bytes, old: Properties | None, new: Properties) -> str | None:
    """The name that the provider gives when the program gives none; an automatic name is kept on updates."""
    if not row.name or at(new, row.name) is not None:
        return None
    if row.name_plain:
        return logical
    prefix = f"{row.name_prefix}{logical}"
    if row.name_lower:
        prefix = re.sub(r"[^a-z0-9-]", "-", prefix.lower())
    given = new.get(f"{row.name}Prefix", new.get("namePrefix"))
    if isinstance(given, str):
        prefix = given
    separator = "" if given is not None else "-"
    start = prefix[: row.name_length - _SUFFIX - len(separator)] + separator
    before = at(old, row.name) if old else None
    if isinstance(before, str) and re.fullmatch(re.escape(start) + r"[0-9a-f]{7}", before):
        return before
    return start + draw(seed.hex() or prefix, _SUFFIX)


def was_automatic(row: Row, logical: str, name: str) -> bool:
    """Whether a physical name looks like one that `auto_name` made."""
    stem = re.sub(r"[^A-Za-z0-9]", "-", logical)[:20].lower()
    plain = re.sub(r"[^A-Za-z0-9]", "-", name.removeprefix(row.name_prefix)).lower()
    return plain.startswith(stem) and re.search(r"[0-9a-f]{7}$", plain) is not None
