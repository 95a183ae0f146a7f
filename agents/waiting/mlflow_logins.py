"""Create a user of the tracking server and an experiment for every team, with the login as a Secret.

Runs in a pod of its own whenever teams are added or removed, as the server's first user, whose secret it
fetches itself. A login is a Secret that members of the namespace read, and pods mount as MLflow's file:
passwords are generated here and are in no command line, log or state of Pulumi. A working login stays as it
is. Exit codes: 0 every login works, 1 one does not; the reason is the container's termination message.
Standard library only; `secret_store` beside it is the cloud's store of secrets.
"""

import argparse
import base64
import importlib
import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agents.shared.api_server import ApiServer, Object, finish, say

SECRET = "mlflow-login"  # noqa: S105 - an object's name
POLL_S = 2.0
_REQUEST_S = 30.0
_URL, _USER, _WORD, _EXPERIMENT = (
    "MLFLOW_TRACKING_URI",
    "MLFLOW_TRACKING_USERNAME",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_EXPERIMENT_NAME",
)
_NONE = "NO_PERMISSIONS"  # what MLflow calls it
# The file that MLflow's clients read below ~/.mlflow (mlflow 3.17, utils/credentials.py).
_FILE = "credentials"


class MlflowRequestError(Exception):
    """A request failed or was not delivered: retry."""


class Mlflow:
    """MLflow's REST API (3.17), as one user."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._url = url
        self._login = base64.b64encode(f"{user}:{password}".encode()).decode()

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, Mapping[str, Any]]:
        """The HTTP status and the response. Raises MlflowRequestError when the server cannot be reached."""
        headers = {"Authorization": f"Basic {self._login}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}/api/{path}", data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_REQUEST_S) as answer:  # noqa: S310
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            return error.code, {"message": error.read(500).decode(errors="replace")}
        except (OSError, ValueError) as error:
            raise MlflowRequestError(f"{method} {path}: {type(error).__name__}: {error}") from error

    def must(self, method: str, path: str, body: Object | None = None) -> Mapping[str, Any]:
        """The response. Raises MlflowRequestError for an error status."""
        status, said = self.ask(method, path, body)
        if status >= 300:
            raise MlflowRequestError(f"{method} {path}: status {status}: {said.get('message')}")
        return said

    def works(self) -> bool:
        """Return whether the server accepts this login."""
        status, _ = self.ask("GET", "2.0/mlflow/users/current")
        if status not in (200, 401):
            raise MlflowRequestError(f"the server responds to a login with status {status}")
        return status == 200


def grant(admin: Mlflow, user: str, experiment: str, permission: str) -> None:
    """Create the experiment if absent, and grant the user `permission` on it.

    Every user can create an experiment of any name, and manages it then. One that exists before its user has
    a permission there is taken from all others.
    """
    named = urllib.parse.urlencode({"experiment_name": experiment})
    status, said = admin.ask("GET", f"2.0/mlflow/experiments/get-by-name?{named}")
    if status == 200:
        found = said["experiment"]["experiment_id"]
    elif status == 404:
        found = admin.must("POST", "2.0/mlflow/experiments/create", {"name": experiment})["experiment_id"]
    else:
        raise MlflowRequestError(f"experiment {experiment}: status {status}: {said.get('message')}")
    what = {"username": user, "resource_type": "experiment", "resource_id": str(found)}
    path = "3.0/mlflow/users/permissions"
    said = admin.must("GET", f"{path}/get?{urllib.parse.urlencode(what)}")
    if status == 200 and said.get("permission") in (None, _NONE):
        for other in admin.must("GET", "2.0/mlflow/users/list")["users"]:
            if not other["is_admin"]:
                admin.ask("POST", f"{path}/revoke", {**what, "username": other["username"]})
    if said.get("permission") != permission:
        admin.ask("POST", f"{path}/revoke", what)  # an error where there is nothing to revoke
        admin.must("POST", f"{path}/grant", {**what, "permission": permission})


def new_password(admin: Mlflow, user: str) -> str:
    """Create the user, or set another password for an existing one; returns the password."""
    password = secrets.token_urlsafe(32)
    login = {"username": user, "password": password}
    if admin.ask("GET", f"2.0/mlflow/users/get?{urllib.parse.urlencode({'username': user})}")[0] == 404:
        admin.must("POST", "2.0/mlflow/users/create", login)
    else:
        admin.must("PATCH", "2.0/mlflow/users/update-password", login)
    return password


class Logins:
    """The Secrets with the logins."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def find(self, namespace: str) -> dict[str, str] | None:
        """Content of the Secret of a namespace, None when there is none."""
        status, said = self._server.ask("GET", f"{_secrets(namespace)}/{SECRET}")
        if status == 404:
            return None
        if status != 200:
            raise MlflowRequestError(f"Secret {namespace}/{SECRET}: status {status}: {said.get('message')}")
        return {key: base64.b64decode(text).decode() for key, text in (said.get("data") or {}).items()}

    def store(self, namespace: str, values: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Replace the content of the Secret."""
        data = {key: base64.b64encode(text.encode()).decode() for key, text in values.items()}
        metadata = {"name": SECRET, "namespace": namespace, "labels": dict(labels)}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
        status, said = self._server.ask("POST", _secrets(namespace), body)
        if status == 409:
            status, said = self._server.ask("PUT", f"{_secrets(namespace)}/{SECRET}", body)
        if status >= 300:
            raise MlflowRequestError(f"Secret {namespace}/{SECRET}: status {status}: {said.get('message')}")


def _secrets(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


def give(logins: Logins, admin: Mlflow, url: str, login: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Ensure that one login works; returns a message. `login`: user, namespace, experiment, permission."""
    user, namespace, experiment = login["user"], login["namespace"], login["experiment"]
    found = logins.find(namespace) or {}
    known = {_URL: url, _USER: user, _EXPERIMENT: experiment}
    kept = found.get(_USER) == user and Mlflow(url, user, found.get(_WORD, "")).works()
    password = found[_WORD] if kept else new_password(admin, user)
    grant(admin, user, experiment, login["permission"])
    values = {**known, _WORD: password, _FILE: _file(user, password)}
    if values != found:
        logins.store(namespace, values, labels)
    return f"{user} logs in from {namespace}" + (" as before" if values == found else "")


def _file(user: str, password: str) -> str:
    return f"[mlflow]\n{_USER.lower()} = {user}\n{_WORD.lower()} = {password}\n"


def give_all(
    one: Callable[[Mapping[str, str]], str],
    wanted: list[Mapping[str, str]],
    limit_s: float,
    log: Callable[[str], None],
) -> tuple[bool, str]:
    """Provide every login, retrying until the time is over; returns whether all work, and the last state."""
    end = time.monotonic() + limit_s
    left, state = list(wanted), "no logins requested"
    while left:
        try:
            state = one(left[0])
            log(state)
            del left[0]
        except (MlflowRequestError, OSError) as error:
            if time.monotonic() > end:
                return False, f"after {limit_s:.0f} s still: {error}"
            if str(error) != state:
                state = str(error)
                log(state)
            time.sleep(POLL_S)
    return True, f"{len(wanted)} logins work"


def main() -> int:
    """Provide the logins of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--admin", required=True, help="the store's name of the first user's secret")
    parser.add_argument("--logins", type=json.loads, required=True, help="a list, as JSON")
    parser.add_argument("--labels", type=json.loads, required=True, help="of the Secrets, as JSON")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--message", type=Path, required=True)
    asked = parser.parse_args()
    store: Any = importlib.import_module(".secret_store", __package__).connect(os.environ)
    logins = Logins(ApiServer(asked.account))

    def one(login: Mapping[str, str]) -> str:
        first = store.read(asked.admin)
        if first is None:
            raise MlflowRequestError(f"the secret {asked.admin} has no value yet")
        admin = Mlflow(asked.url, first[0]["username"], first[0]["password"])
        return give(logins, admin, asked.url, login, asked.labels)

    passed, said = give_all(one, asked.logins, asked.seconds, say)
    return finish(said, asked.message, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
