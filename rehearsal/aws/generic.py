"""Outputs of types that no table describes: plausible values under the names that the SDK knows.

What is computed by the service has the form that its name suggests; nothing is claimed about its content.
"""

import re
from typing import Any

from rehearsal.aws.naming import draw
from rehearsal.core.model import Properties
from rehearsal.core.schema import ResourceSchema

_EMPTY: dict[str, Any] = {"bool": False, "int": 0, "float": 0, "list": [], "map": {}}
# How an account's own addresses look; the first that fits the property's name is taken.
_FORMS = (
    (re.compile(r"arn$", re.IGNORECASE), "arn:aws:{service}:{region}:{account}:{kind}/{leaf}"),
    (re.compile(r"(url|uri|invokeUrl)$", re.IGNORECASE), "https://{leaf}.{service}.{region}.amazonaws.com"),
    (
        re.compile(r"(dns|dnsName|domain|domainName|endpoint|address|fqdn|host)$", re.IGNORECASE),
        ("{leaf}.{service}.{region}.amazonaws.com"),
    ),
    (re.compile(r"(zoneId)$"), "Z{zone}"),
    (re.compile(r"(date|time|createdAt|updatedAt)$", re.IGNORECASE), "2026-01-01T00:00:00Z"),
)


def computed(schema: ResourceSchema, seed: str, inputs: Properties, account: str, region: str) -> Properties:
    """A value for every output that is no input; deterministic in `seed`."""
    service, _, rest = schema.token.removeprefix("aws:").partition("/")
    kind = rest.partition(":")[0]
    leaf = f"{kind.lower()}-{draw(seed, 10)}"
    words = {"service": service, "region": region, "account": account, "kind": kind, "leaf": leaf}
    words["zone"] = draw(f"{seed}zone", 13).upper()
    found: Properties = {}
    for name, form in schema.outputs.items():
        if name in schema.inputs or name in ("id", "urn", "tagsAll", "region"):
            continue
        if form == "str":
            template = next((text for pattern, text in _FORMS if pattern.search(name)), "{kind}-{drawn}")
            found[name] = template.format(**words, drawn=draw(f"{seed}{name}", 10))
        elif form in _EMPTY:
            found[name] = type(_EMPTY[form])(_EMPTY[form])
    return found
