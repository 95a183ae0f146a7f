"""Credentials of containers, and of services and jobs of the clouds."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalog import CATALOG, Violation
from policies.resource import Resource, is_unknown
from policies.rules.kubernetes.pods import KINDS, containers
from policies.rules.properties import each, raw
from policies.rules.tracking.service_environments import READERS, variables

_WORDS = {"PASSWORD", "PASSWD", "SECRET", "TOKEN", "CREDENTIAL", "CREDENTIALS", "APIKEY"}
_PAIRS = ("API_KEY", "ACCESS_KEY", "PRIVATE_KEY")
# Suffixes of variables that name a place, not a secret.
_PLACES = ("FILE", "PATH", "DIR", "NAME", "ARN", "URL", "URI", "TTL", "SECONDS")
_REFERENCES = ("arn:", "/", "projects/", "$(", "file:")
_IN_URL = re.compile(r"://[^/\s:@{}$]+:[^/\s@{}$]+@")


@CATALOG.rule(
    "MLS-TRK-04",
    "medium",
    (*KINDS, *READERS),
    "The environment is visible in crash reports, in /proc and in every child process; a literal also in"
    " the state and in the API.",
    "Mount the Secret as a file and give the program its path; MLflow reads ~/.mlflow/credentials. A service"
    " of a cloud refers to a secret of its store (secrets, valueFrom), or reads it when it starts.",
    ("CIS EKS 4.4.1", "CKV_K8S_35"),
)
def credentials_are_files(workload: Resource) -> Iterator[Violation]:
    """Containers read credentials from files or a store, not from their plain environment or command."""
    if workload.kind in READERS:
        yield from _of_service(workload)
        return
    for path, container, _ in containers(workload):
        for place, source in each(container, "envFrom", "secretRef"):
            message = f"every value of the Secret {source.get('name')} is in the environment"
            yield Violation(message, f"{path}.{place}")
        for place, variable in each(container, "env"):
            yield from _of_variable(f"{path}.{place}", variable)
        for key in ("command", "args"):
            for index, text in enumerate(container.get(key) or ()):
                if _IN_URL.search(str(text)):
                    yield Violation("it holds a password", f"{path}.{key}[{index}]")


def _of_service(resource: Resource) -> Iterator[Violation]:
    for one in variables(resource):
        name = one.name.upper()
        if _is_credential(name) or not is_unknown(raw(one.holder, one.key)):
            yield from _of_value(one.path, name, str(one.holder.get(one.key) or ""))


def _of_variable(path: str, variable: Mapping[str, Any]) -> Iterator[Violation]:
    name = str(variable.get("name")).upper()
    if any(True for _ in each(variable, "valueFrom", "secretKeyRef")):
        yield Violation(f"{name} is a Secret in the environment", path)
        return
    yield from _of_value(path, name, str(variable.get("value") or ""))


def _of_value(path: str, name: str, value: str) -> Iterator[Violation]:
    if _IN_URL.search(value):
        yield Violation(f"{name} holds a password", path)
    elif _is_credential(name) and value and not value.startswith(_REFERENCES) and not _is_switch(value):
        yield Violation(f"{name} is a literal", path)


def _is_credential(name: str) -> bool:
    """Return whether a variable name denotes a credential; TOKENIZERS_PARALLELISM does not."""
    parts = name.split("_")
    return (bool(_WORDS & set(parts)) or any(pair in name for pair in _PAIRS)) and parts[-1] not in _PLACES


def _is_switch(value: str) -> bool:
    return value.lower() in ("true", "false") or value.isdecimal()
