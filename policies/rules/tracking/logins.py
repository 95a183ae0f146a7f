"""Authentication of MLflow, and the login of its administrator."""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.kubernetes.pods import KINDS, PodTemplate, containers, templates
from policies.stack import Stack

_JOBS = tuple(kind for kind in KINDS if kind.endswith(("Job", "Runtime", "JobSet", ":Pod")))
_SERVERS = tuple(
    f"kubernetes:{kind}" for kind in ("core/v1:Pod", "apps/v1:Deployment", "apps/v1:StatefulSet")
)
_USERNAME = "MLFLOW_TRACKING_USERNAME"
# The administrator that MLflow creates.
_ADMIN = "admin"
# mlflow 3.17.2, mlflow/cli/__init__.py: `server` and `ui` serve, --app-name selects an app with
# authentication; or a web server runs the app without it.
SERVES = re.compile(r"(^|[\s/])mlflow\s+(server|ui)\b|mlflow\.server(\.\w+)?:app\b")
_AUTHENTICATES = re.compile(r"--app-name(=|\s+)\S+")
_HOST = re.compile(r"\s(--host|--bind|-h|-b)(=|\s+)(\S+)")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


@CATALOG.rule_around(
    "MLS-TRK-06",
    "high",
    _JOBS,
    "Users who start a job read the secrets of its pods: with the administrator's password they can read,"
    " change and delete all runs and models.",
    "Create a login per team, with permissions on its experiments, and mount that.",
    ("MLflow guide, basic-http-auth: permissions, default admin user",),
)
def jobs_are_not_the_administrator(job: Resource, stack: Stack) -> Iterator[Violation]:
    """The pods of a job do not have the login of MLflow's administrator."""
    patterns = stack.settings.admin_secrets
    for path, container, _ in containers(job):
        for below, name in _secrets_of(container):
            if _matches(name, patterns):
                yield Violation(f"it reads the secret {name}", f"{path}.{below}")
        for index, variable in enumerate(container.get("env") or ()):
            if variable and variable.get("name") == _USERNAME and variable.get("value") == _ADMIN:
                yield Violation("it uses the administrator of MLflow", f"{path}.env[{index}].value")
    for template in templates(job):
        for below, name in _mounted(template):
            if _matches(name, patterns):
                yield Violation(f"it mounts the secret {name}", f"{template.path}.{below}")


def _matches(name: Any, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(str(name), pattern) for pattern in patterns)


def _secrets_of(container: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, name) of the secrets in the environment of a container."""
    for index, variable in enumerate(container.get("env") or ()):
        named = (((variable or {}).get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
        if named:
            yield f"env[{index}].valueFrom.secretKeyRef.name", named
    for index, source in enumerate(container.get("envFrom") or ()):
        named = ((source or {}).get("secretRef") or {}).get("name")
        if named:
            yield f"envFrom[{index}].secretRef.name", named


def _mounted(template: PodTemplate) -> Iterator[tuple[str, Any]]:
    """(path, name) of the secrets that are volumes of a pod, or parts of one."""
    for index, volume in enumerate(template.spec.get("volumes") or ()):
        named = ((volume or {}).get("secret") or {}).get("secretName")
        if named:
            yield f"volumes[{index}].secret.secretName", named
        for number, source in enumerate(((volume or {}).get("projected") or {}).get("sources") or ()):
            part = ((source or {}).get("secret") or {}).get("name")
            if part:
                yield f"volumes[{index}].projected.sources[{number}].secret.name", part


@CATALOG.rule(
    "MLS-TRK-07",
    "high",
    _SERVERS,
    "MLflow has no authentication by default: each pod that reaches it can read and delete every run.",
    "Start it with --app-name basic-auth, or on the loopback behind an authenticating proxy in its pod.",
    ("MLflow guide, basic-http-auth", "mlflow 3.17.2 mlflow/cli/__init__.py, option --app-name"),
)
def mlflow_authenticates_clients(server: Resource) -> Iterator[Violation]:
    """A server of MLflow authenticates its clients, or a proxy in its pod does."""
    serving = [found for found in containers(server) if SERVES.search(command(found[1]))]
    if not serving:
        raise NotApplicableError("it does not start MLflow by its command")
    for path, container, _ in serving:
        # On the loopback, the default, only its own pod reaches it: a proxy there can authenticate.
        if not _AUTHENTICATES.search(command(container)) and _host(container) not in _LOOPBACK:
            yield Violation("it does not authenticate clients", f"{path}.command")


def _host(container: Mapping[str, Any]) -> str:
    """Address that it listens on."""
    option = _HOST.search(command(container))
    if option:
        return option.group(3).rpartition(":")[0] or option.group(3)
    given = (one for one in container.get("env") or () if one and one.get("name") == "MLFLOW_HOST")
    return next((str(one.get("value")) for one in given), _LOOPBACK[0])


def command(container: Mapping[str, Any]) -> str:
    """Command and arguments of a container as one text."""
    return " ".join(str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ())))
