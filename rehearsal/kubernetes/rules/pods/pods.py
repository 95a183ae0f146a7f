"""Pods and pod templates: containers, volumes, mounts, ports, environment, tolerations."""

from collections.abc import Iterator
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import absent, at, mapping, pod, rows, text, unsure, whole
from rehearsal.kubernetes.rules.book import BOOK, CORE, JOB, PODS
from rehearsal.kubernetes.rules.violations import (
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)

_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@BOOK.rule("K8S-POD-001", *PODS, source=CORE)
def _some_container(inputs: Properties) -> Iterator[Violation]:
    """A pod has a container, and every container an image."""
    view = pod(inputs)
    if view is None:
        return
    if absent(view.spec.get("containers")):
        yield required(f"{view.path}.containers")
    for path, container in view.containers():
        if absent(container.get("image")):
            yield required(f"{path}.image")


@BOOK.rule("K8S-POD-002", *PODS, source=CORE)
def _container_names(inputs: Properties) -> Iterator[Violation]:
    """Containers, the init containers among them, have different names that are DNS labels."""
    view = pod(inputs)
    seen: set[str] = set()
    for path, container in view.containers() if view else ():
        if absent(container.get("name")):
            yield required(f"{path}.name")
        elif (own := text(container.get("name"))) is not None:
            if wrong := grammar.label(own):
                yield invalid(f"{path}.name", own, wrong)
            if own in seen:
                yield duplicate(f"{path}.name", own)
            seen.add(own)


@BOOK.rule("K8S-POD-007", *PODS, source=CORE)
def _container_ports(inputs: Properties) -> Iterator[Violation]:
    """Ports are numbers from 1 to 65535; their names are short and different."""
    view = pod(inputs)
    for path, container in view.containers() if view else ():
        seen: set[str] = set()
        for index, port in rows(container.get("ports")):
            here, own = f"{path}.ports[{index}]", text(port.get("name"))
            for key in ("containerPort", "hostPort"):
                number = whole(port.get(key))
                unset = key == "hostPort" and number == 0
                if number is not None and not unset and (wrong := grammar.port(number)):
                    yield invalid(f"{here}.{key}", number, wrong)
            if own and (wrong := grammar.port_name(own)):
                yield invalid(f"{here}.name", own, wrong)
            elif own and own in seen:
                yield duplicate(f"{here}.name", own)
            seen.add(own or "")


@BOOK.rule("K8S-POD-009", *PODS, source=CORE)
def _active_deadline(inputs: Properties) -> Iterator[Violation]:
    """A pod's own deadline is at least one second."""
    view = pod(inputs)
    seconds = whole(view.spec.get("activeDeadlineSeconds")) if view else None
    if view and seconds is not None and not 1 <= seconds <= 2**31 - 1:
        yield invalid(
            f"{view.path}.activeDeadlineSeconds", seconds, f"must be between 1 and {2**31 - 1}, inclusive"
        )


@BOOK.rule("K8S-POD-010", *PODS, source=CORE)
def _tolerations(inputs: Properties) -> Iterator[Violation]:
    """A toleration's operator, value, effect and seconds fit together."""
    view = pod(inputs)
    if view is None:
        return
    for index, row in rows(view.spec.get("tolerations")):
        yield from toleration(f"{view.path}.tolerations[{index}]", row)


def toleration(path: str, row: Any) -> Iterator[Violation]:
    """The error of one toleration."""
    row = mapping(row)
    if unsure(dict(row)):
        return
    key, operator, effect = row.get("key"), row.get("operator") or "Equal", row.get("effect")
    if isinstance(key, str) and key and (wrong := grammar.label_key(key)):
        yield invalid(f"{path}.key", key, wrong)
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, detail)
    if operator not in ("Equal", "Exists"):
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if operator == "Exists" and row.get("value"):
        yield invalid(f"{path}.operator", operator, "value must be empty when `operator` is 'Exists'")
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)
    if row.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(
            f"{path}.effect", effect or "", "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )


@BOOK.rule("K8S-POD-011", *PODS, source=CORE)
def _init_containers(inputs: Properties) -> Iterator[Violation]:
    """Init containers end, so that they have no probes; those that restart always are sidecars and may."""
    view = pod(inputs)
    if view is None:
        return
    for index, container in rows(view.spec.get("initContainers")):
        if container.get("restartPolicy") is not None:
            continue
        for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(key) is not None:
                path = f"{view.path}.initContainers[{index}].{key}"
                yield forbidden(path, "may not be set for init containers without restartPolicy=Always")


@BOOK.rule("K8S-POD-012", *PODS, source=CORE)
def _host_names(inputs: Properties) -> Iterator[Violation]:
    """A pod's host name and subdomain are DNS labels."""
    view = pod(inputs)
    if view is None:
        return
    for key in ("hostname", "subdomain"):
        own = text(view.spec.get(key))
        if own and (wrong := grammar.label(own)):
            yield invalid(f"{view.path}.{key}", own, wrong)


@BOOK.rule("K8S-POD-013", *(token for token in PODS if token != JOB), source=CORE)
def _restart_policy(inputs: Properties) -> Iterator[Violation]:
    """A pod's restart policy fits what owns it."""
    view = pod(inputs)
    policy = view.spec.get("restartPolicy") if view else None
    always = ("Always",) if inputs["kind"] in ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet") else ()
    allowed = always or (
        ("OnFailure", "Never") if inputs["kind"] == "CronJob" else ("Always", "OnFailure", "Never")
    )
    needed = inputs["kind"] == "CronJob"
    if view and policy is not UNKNOWN and policy not in (*allowed, *(() if needed else (None, ""))):
        yield unsupported(f"{view.path}.restartPolicy", policy or "Always", allowed)


@BOOK.rule("K8S-POD-014", *PODS, source=CORE)
def _security_context(inputs: Properties) -> Iterator[Violation]:
    """A seccomp profile is complete; ids have 31 bits; privileged containers may gain privileges."""
    view = pod(inputs)
    if view is None:
        return
    contexts = [(f"{view.path}.securityContext", mapping(view.spec.get("securityContext")))]
    contexts += [(f"{path}.securityContext", mapping(container.get("securityContext")))
                 for path, container in view.containers()]  # fmt: skip
    for path, context in contexts:
        profile = context.get("seccompProfile")
        kind = at(profile, "type")
        if isinstance(profile, dict) and absent(kind):
            yield required(f"{path}.seccompProfile.type", "type is required when seccompProfile is set")
        elif kind is not UNKNOWN and kind is not None and kind not in _SECCOMP:
            yield unsupported(f"{path}.seccompProfile.type", kind, _SECCOMP)
        ids = [(key, whole(context.get(key))) for key in ("runAsUser", "runAsGroup", "fsGroup")]
        groups = context.get("supplementalGroups")
        ids += [(f"supplementalGroups[{index}]", whole(value))
                for index, value in enumerate(groups if isinstance(groups, list) else ())]  # fmt: skip
        for key, number in ids:
            if number is not None and not 0 <= number < 2**31:
                yield invalid(f"{path}.{key}", number, f"must be between 0 and {2**31 - 1}, inclusive")
        if context.get("allowPrivilegeEscalation") is False and context.get("privileged") is True:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(path, dict(context), detail)
