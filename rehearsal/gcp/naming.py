"""Names and ids as Google gives them.

A template holds words in braces: a property of the resource (`{name}`), `{id}`, `{project}`, `{number}` (of
the project), `{region}`, `{zone}`, `{location}`, `{now}`, `{uuid}`, `{leaf:property}` (after the last slash),
`{first:property}` (the first host of a range), and drawn values: `{hexN}` and `{digitsN}` of N characters,
`{base64}`, `{publicip}` and `{privateip}`. A template that is only `{intN}` gives a number.
"""

import base64
import datetime
import hashlib
import ipaddress
import re
import uuid
from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.gcp.table import Row

_WORD = re.compile(r"\{([^{}]+)\}")
_DRAWN = re.compile(r"(hex|digits|int)(\d+)")
# How many random characters follow the logical name.
_SUFFIX = 7


def expand(template: Any, seed: str, values: Mapping[str, Any]) -> Any:
    """Fill in a template, inside of lists and mappings too; what is not text stays."""
    if isinstance(template, list | tuple):
        return [expand(item, seed, values) for item in template]
    if isinstance(template, dict):
        return {name: expand(item, seed, values) for name, item in template.items()}
    if not isinstance(template, str):
        return template
    text = _WORD.sub(lambda match: _word(match.group(1), f"{seed}/{template}", values), template)
    return int(text) if re.fullmatch(r"\{int\d+\}", template) else text


def _word(word: str, seed: str, values: Mapping[str, Any]) -> str:
    drawn = _DRAWN.fullmatch(word)
    if drawn:
        size = int(drawn.group(2))
        return draw(seed, size) if drawn.group(1) == "hex" else digits(seed, size)
    digest = hashlib.sha256(seed.encode()).digest()
    made = {
        "base64": lambda: base64.b64encode(digest[:8]).decode(),
        "uuid": lambda: str(uuid.UUID(bytes=digest[:16], version=4)),
        "now": lambda: datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "publicip": lambda: f"34.{digest[0]}.{digest[1]}.{digest[2] % 254 + 1}",
        "privateip": lambda: f"10.{digest[0]}.{digest[1]}.{digest[2] % 254 + 1}",
    }
    if word in made:
        return made[word]()
    function, _, name = word.partition(":")
    value = values.get(name or word)
    text = "" if value is None or value is UNKNOWN else str(value)
    if name and function == "first" and text:
        return str(ipaddress.ip_network(text, strict=False)[1])
    return text.rpartition("/")[2] if name else text


def draw(seed: str, size: int) -> str:
    """`size` hexadecimal characters that look random and follow from the seed."""
    return hashlib.sha512(seed.encode()).hexdigest()[:size]


def digits(seed: str, size: int) -> str:
    """`size` digits, the first not zero, that follow from the seed."""
    number = int(hashlib.sha512(seed.encode()).hexdigest(), 16)
    return str(number % (9 * 10 ** (size - 1)) + 10 ** (size - 1))


def project_number(project: str) -> str:
    """The number of a project; the same id always has the same."""
    return digits(f"project {project}", 12)


def auto_name(row: Row, logical: str, seed: bytes, old: Properties | None) -> str:
    """The name that the provider gives when the program gives none; an automatic name is kept on updates."""
    before = (old or {}).get(row.name)
    start = re.sub(r"[^a-z0-9-]", "-", logical.lower())[: row.name_length - _SUFFIX - 1] + "-"
    if isinstance(before, str) and re.fullmatch(re.escape(start) + r"[0-9a-f]{7}", before):
        return before
    return start + draw(seed.hex() or start, _SUFFIX)


def was_automatic(row: Row, logical: str, name: str) -> bool:
    """Whether a physical name looks like one that `auto_name` made."""
    start = re.sub(r"[^a-z0-9-]", "-", logical.lower())[: row.name_length - _SUFFIX - 1]
    return re.fullmatch(re.escape(start) + r"-[0-9a-f]{7}", name) is not None
