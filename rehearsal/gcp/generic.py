"""Outputs of types that no table describes: plausible values under the names that the SDK knows.

What is computed by the service has the form that its name suggests; nothing is claimed about its content.
"""

import re
from typing import Any

from rehearsal.core.model import Properties
from rehearsal.core.schema import ResourceSchema
from rehearsal.gcp.naming import expand

_EMPTY: dict[str, type] = {"bool": bool, "int": int, "float": float, "list": list, "map": dict}
# The first that fits the property's name is taken.
_FORMS = (
    (re.compile(r"(url|uri|link)$", re.IGNORECASE), "https://{service}.googleapis.com/v1/{identity}"),
    (re.compile(r"(email)$", re.IGNORECASE), "{kind}-{hex10}@{project}.iam.gserviceaccount.com"),
    (re.compile(r"(ipAddress|^address)$"), "{publicip}"),
    (re.compile(r"(time|timestamp)$", re.IGNORECASE), "{now}"),
    (re.compile(r"(fingerprint|etag)$", re.IGNORECASE), "{base64}"),
)
# What the rehearsal gives itself, or what means something while it is empty.
_OTHERS = frozenset({"id", "urn", "project", "effectiveLabels", "pulumiLabels", "effectiveAnnotations"})


def computed(schema: ResourceSchema, seed: str, identity: str, project: str) -> Properties:
    """A value for every output that is no input; deterministic in `seed`, except for times."""
    service, _, rest = schema.token.removeprefix("gcp:").partition("/")
    words: dict[str, Any] = {
        "service": service, "kind": rest.partition(":")[0].lower(), "identity": identity, "project": project,
    }  # fmt: skip
    found: Properties = {}
    for name, form in schema.outputs.items():
        if name in schema.inputs or name in _OTHERS:
            continue
        if form == "str":
            template = next((text for pattern, text in _FORMS if pattern.search(name)), "{kind}-{hex10}")
            found[name] = expand(template, f"{seed}/{name}", words)
        elif form in _EMPTY:
            found[name] = _EMPTY[form]()
    return found
