"""Requests to Google Cloud from a pod or a machine there, with the rights of its metadata server.

Standard library alone: training images seldom have Google's. GCE_METADATA_HOST leads elsewhere, as in
Google's own tools. Times are in seconds, for one attempt.
"""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

ATTEMPTS = 2
_METADATA = "computeMetadata/v1/instance/service-accounts/default/token"


def authorization(seconds: float) -> Mapping[str, str]:
    """The header of a request with this pod's rights.

    Raises OSError, and ValueError or KeyError for an answer that is none.
    """
    metadata = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    token = asked(f"http://{metadata}/{_METADATA}", {"Metadata-Flavor": "Google"}, None, seconds)
    return {"Authorization": f"Bearer {token['access_token']}"}


def asked(url: str, headers: Mapping[str, str], body: bytes | None, seconds: float) -> Mapping[str, Any]:
    """What a server answers. A busy one, and one that is silent, are asked once more. Raises OSError."""
    for attempt in range(1, ATTEMPTS + 1):
        request = urllib.request.Request(url, body, dict(headers))  # noqa: S310 - addresses of this program
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310
                found: Mapping[str, Any] = json.loads(answer.read())
                return found
        except urllib.error.HTTPError as error:
            said = error.read(300).decode(errors="replace")
            if error.code < 500 or attempt == ATTEMPTS:
                raise OSError(f"status {error.code}: {said}") from error
        except OSError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")
