"""Environment variables of containers and the sources of their values."""

import re
from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules.accessors import absent, at, pod, rows, text
from rehearsal.kubernetes.rules.book import BOOK, CORE, PODS
from rehearsal.kubernetes.rules.violations import invalid, required

_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
# One label or annotation.
_KEYED = re.compile(r"metadata\.(labels|annotations)\['.+'\]")


@BOOK.rule("K8S-POD-008", *PODS, source=CORE)
def _environment(inputs: Properties) -> Iterator[Violation]:
    """A variable has a name and one source of its value."""
    view = pod(inputs)
    for path, container in view.containers() if view else ():
        for index, variable in rows(container.get("env")):
            here, source = f"{path}.env[{index}]", variable.get("valueFrom")
            if absent(variable.get("name")):
                yield required(f"{here}.name")
            elif "=" in (text(variable.get("name")) or ""):
                yield invalid(f"{here}.name", variable["name"], "must not contain '='")
            if not isinstance(source, dict):
                continue
            given = [key for key in _ENV_SOURCES if source.get(key) is not None]
            if not given:
                yield invalid(f"{here}.valueFrom", "", f"must specify one of: {', '.join(_ENV_SOURCES)}")
            elif len(given) > 1:
                yield invalid(f"{here}.valueFrom", "", "may not have more than one field specified at a time")
            elif not absent(variable.get("value")):
                yield invalid(f"{here}.valueFrom", "", "may not be specified when `value` is not empty")


@BOOK.rule("K8S-POD-015", *PODS, source=CORE)
def _fields(inputs: Properties) -> Iterator[Violation]:
    """A variable with a field reference names a supported field."""
    view = pod(inputs)
    for path, container in view.containers() if view else ():
        for index, variable in rows(container.get("env")):
            here, source = f"{path}.env[{index}].valueFrom.fieldRef", at(variable, "valueFrom.fieldRef")
            own = text(at(source, "fieldPath"))
            if isinstance(source, dict) and absent(source.get("fieldPath")):
                yield required(f"{here}.fieldPath")
            elif own and own not in _FIELDS and not _KEYED.fullmatch(own):
                yield invalid(
                    f"{here}.fieldPath", own, "error converting fieldPath: field label not supported"
                )
