"""The newest releases of charts, from their repositories."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import requests
from ruamel.yaml import YAML

from trainstack.version_order import order

_TIMEOUT_S = 20

Fetch = Callable[[str], bytes]


def chart(name: str, repository: str | None, fetch: Fetch) -> str | None:
    """The newest release of a chart: of a Helm repository, or of an OCI one, whose chart is an address."""
    if repository is None:
        host, _, path = name.removeprefix("oci://").partition("/")
        found: Iterable[str] = json.loads(fetch(f"https://{host}/v2/{path}/tags/list"))["tags"]
    else:
        index: Mapping[str, Any] = YAML(typ="safe").load(fetch(f"{repository}/index.yaml"))
        found = [row["version"] for row in index["entries"].get(name, ())]
    released = [one for one in found if re.fullmatch(r"v?\d+\.\d+\.\d+", one)]
    return max(released, key=order, default=None)


def fetched(url: str) -> bytes:
    """The content of an address. Raises requests.RequestException."""
    response = requests.get(url, timeout=_TIMEOUT_S)
    response.raise_for_status()
    return response.content
