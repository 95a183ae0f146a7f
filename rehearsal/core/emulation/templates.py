"""Templates of ids, links and computed outputs.

A template has placeholders in braces:

- a property of the resource (`{bucket}`), `{id}`, `{arn}`, values of its cloud (`{account}`, `{region}`;
  `{project}`, its `{number}`, `{zone}`), `{now}`, `{uuid}`;
- `{leaf:property}` (after the last slash), `{host:property}` (a URL without its scheme), `{first:property}`
  (the first host of an address range), `{tail:property}` (after the last colon); a property inside of
  another (`{tag.key}`);
- N generated characters: `{hexN}`, `{digitsN}`, `{upperN}`, `{lowerN}`, `{mixedN}`; and `{base64}`,
  `{publicip}`, `{privateip}`. Generated values with different labels (`{hex17:main}`) differ; those with the
  same label are the same throughout a resource.

A template that is only `{intN}` gives a number.
"""

import base64
import datetime
import hashlib
import ipaddress
import re
import string
import uuid
from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN
from rehearsal.core.properties import at

WORD = re.compile(r"\{([^{}]+)\}")
_DRAWN = re.compile(r"(hex|upper|lower|mixed|digits|int)(\d+)(?::(\w+))?")
_HEX = "0123456789abcdef"
_ALPHABETS = {
    "hex": _HEX,
    "upper": string.ascii_uppercase + "234567",  # as in the ids of IAM
    "lower": string.ascii_lowercase + string.digits,
    "mixed": string.ascii_letters + string.digits,
}


def expand(template: Any, seed: str, values: Mapping[str, Any]) -> Any:
    """Expand a template, also inside of lists and mappings; other values stay.

    The same seed gives the same generated characters.
    """
    if isinstance(template, list | tuple):
        return [expand(item, seed, values) for item in template]
    if isinstance(template, dict):
        return {name: expand(item, seed, values) for name, item in template.items()}
    if not isinstance(template, str):
        return template
    text = WORD.sub(lambda match: _word(match.group(1), seed, values), template)
    return int(text) if re.fullmatch(r"\{int\d+\}", template) else text


def placeholders_of(template: Any) -> set[str]:
    """Names of the placeholders of a template."""
    if isinstance(template, list | tuple):
        return set().union(*map(placeholders_of, template))
    if isinstance(template, dict):
        return placeholders_of(list(template.values()))
    found = WORD.findall(template) if isinstance(template, str) else []
    return {word.rpartition(":")[2] for word in found if not _DRAWN.fullmatch(word)}


def draw(seed: str, size: int, alphabet: str = _HEX) -> str:
    """`size` pseudo-random characters, derived from the seed."""
    digest = hashlib.sha512(seed.encode()).digest()
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:size])


def digits(seed: str, size: int) -> str:
    """`size` digits, the first not zero, derived from the seed."""
    number = int(hashlib.sha512(seed.encode()).hexdigest(), 16)
    return str(number % (9 * 10 ** (size - 1)) + 10 ** (size - 1))


def _word(word: str, seed: str, values: Mapping[str, Any]) -> str:
    drawn = _DRAWN.fullmatch(word)
    if drawn:
        kind, size, label = drawn.group(1), int(drawn.group(2)), drawn.group(3) or ""
        own = f"{seed}/{kind}/{label}"
        return draw(own, size, _ALPHABETS[kind]) if kind in _ALPHABETS else digits(own, size)
    function, _, name = word.partition(":")
    made = None if function in values else _made(function, f"{seed}/{name}")
    if made is not None:
        return made
    value = at(values, name or word)
    text = "" if value is None or value is UNKNOWN else str(value)
    if not name or not text:
        return text
    if function == "first":
        return str(ipaddress.ip_network(text, strict=False)[1])
    if function == "host":
        return text.partition("://")[2] or text
    return text.rpartition("/" if function == "leaf" else ":")[2]


def _made(word: str, seed: str) -> str | None:
    digest = hashlib.sha256(seed.encode()).digest()
    match word:
        case "base64":
            return base64.b64encode(digest[:8]).decode()
        case "uuid":
            return str(uuid.UUID(bytes=digest[:16], version=4))
        case "now":
            return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        case "publicip":
            return f"34.{digest[0]}.{digest[1]}.{digest[2] % 254 + 1}"
        case "privateip":
            return f"10.{digest[0]}.{digest[1]}.{digest[2] % 254 + 1}"
    return None
