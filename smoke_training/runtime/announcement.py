"""Write the time of the last checkpoint into the own pod's annotation; standard library only.

The pod has a bound token for that, which permits no other write (ADR 34).
"""

import datetime
import json
import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path

from smoke_training.checkpoint_policy import FOLDER, LAST

_REQUEST_S = 10.0


class AnnotationRefusedError(OSError):
    """The API server refused the annotation."""


def announce(at: float, folder: Path = Path(FOLDER)) -> bool:
    """Write the time (seconds since 1970) into the pod's annotation; False without a token for it.

    Raises AnnotationRefusedError with the server's message.
    """
    if not (folder / "token").is_file():
        return False
    token, name, namespace = ((folder / each).read_text().strip() for each in ("token", "name", "namespace"))
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    address = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    request = urllib.request.Request(  # noqa: S310 - https, see above
        f"{address}/api/v1/namespaces/{namespace}/pods/{name}",
        json.dumps({"metadata": {"annotations": {LAST: written(at)}}}).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"},
        method="PATCH",
    )
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=_REQUEST_S, context=context):  # noqa: S310
            return True
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")[:300]
        raise AnnotationRefusedError(f"pod {namespace}/{name}: {error.code} {text}") from error
    except OSError as error:
        raise AnnotationRefusedError(f"pod {namespace}/{name}: {error}") from error


def written(at: float) -> str:
    """Format a time for the annotation: RFC 3339, UTC, whole seconds."""
    return datetime.datetime.fromtimestamp(int(at), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
