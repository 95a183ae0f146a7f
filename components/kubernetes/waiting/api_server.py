"""The API server as a program in a pod reaches it, and how such a program ends; standard library only."""

import http.client
import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Object = Mapping[str, Any]

# What the kubelet keeps of a termination message (pkg/kubelet/container/runtime.go).
MESSAGE_BYTES = 4096
# An API server that has just started, or has not heard of a new role yet, forbids what is allowed.
FORBIDDEN_S = 15.0
# Longer than an API server waits for the webhooks of one request, 10 s each: its words say more than silence.
_REQUEST_S = 30.0


class ApiServer:
    """The API server of the pod's cluster, asked as the pod's service account.

    `account` is the folder with the account's `token` and the server's authority, `ca.crt`.
    """

    def __init__(self, account: Path) -> None:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        self.address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._account = account
        self._context = ssl.create_default_context(cafile=str(account / "ca.crt"))

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        """The HTTP status and the answer, on a connection of its own.

        Raises OSError when the server cannot be reached, or breaks off.
        """
        # Read every time: the kubelet renews it.
        token = (self._account / "token").read_text(encoding="utf-8").strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_REQUEST_S, context=self._context) as answer:  # noqa: S310
                return answer.status, _read(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _read(error.read())
        except http.client.HTTPException as error:
            raise OSError(f"{type(error).__name__}: {error}") from error


def _read(content: bytes) -> Object:
    """An object; what is none, such as the words of a proxy, becomes the message of one."""
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"message": content.decode(errors="replace")[:500]}


def say(text: str) -> None:
    """One line of the pod's log."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def finish(text: str, message: Path, *, passed: bool) -> int:
    """Leave `text` as the container's termination message, the file `message`; the exit code."""
    say(text)
    # Cut at a byte of the limit, never within a letter.
    kept = text.encode()[:MESSAGE_BYTES].decode(errors="ignore")
    message.write_text(kept, encoding="utf-8")
    return 0 if passed else 1
