"""Topics of clouds: each function publishes one message, or raises.

Times are in seconds, for everything together.
"""

import base64
import importlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

# Two attempts at most; connecting and reading take a part of the time each.
_ATTEMPTS, _PARTS = 2, 4
_METADATA = "computeMetadata/v1/instance/service-accounts/default/token"


def sns(topic: str, subject: str, text: str, seconds: float) -> None:
    """Publish to an SNS topic, by its ARN. Raises what boto3 raises, ImportError where an image lacks it."""
    limits = {
        "connect_timeout": seconds / _PARTS,
        "read_timeout": seconds / _PARTS,
        "retries": {"total_max_attempts": _ATTEMPTS},
    }
    boto3: Any = importlib.import_module("boto3")
    config = importlib.import_module("botocore.config").Config(**limits)
    client = boto3.client("sns", region_name=topic.split(":")[3], config=config)
    client.publish(TopicArn=topic, Subject=subject, Message=text)


def pubsub(topic: str, subject: str, text: str, seconds: float) -> None:
    """Publish to a Pub/Sub topic, by its resource name, with the rights of the node's metadata server.

    Standard library alone: training images seldom have Google's. The variables GCE_METADATA_HOST and
    CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB lead elsewhere, as in Google's own tools. Raises OSError, and
    ValueError or KeyError for an answer that is none.
    """
    metadata = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    api = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB") or "https://pubsub.googleapis.com/"
    patience = seconds / (_ATTEMPTS * 2)
    token = _asked(f"http://{metadata}/{_METADATA}", {"Metadata-Flavor": "Google"}, None, patience)
    message = {"data": base64.b64encode(text.encode()).decode(), "attributes": {"subject": subject}}
    body = json.dumps({"messages": [message]}).encode()
    headers = {"Authorization": f"Bearer {token['access_token']}", "Content-Type": "application/json"}
    _asked(f"{api.rstrip('/')}/v1/{topic}:publish", headers, body, patience)


def _asked(url: str, headers: Mapping[str, str], body: bytes | None, seconds: float) -> Mapping[str, Any]:
    """What a server answers. A busy one, and one that does not answer, are asked once more."""
    for attempt in range(1, _ATTEMPTS + 1):
        request = urllib.request.Request(url, body, dict(headers))  # noqa: S310 - addresses of this program
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310
                found: Mapping[str, Any] = json.loads(answer.read())
                return found
        except urllib.error.HTTPError as error:
            said = error.read(300).decode(errors="replace")
            if error.code < 500 or attempt == _ATTEMPTS:
                raise OSError(f"status {error.code}: {said}") from error
        except OSError:
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")
