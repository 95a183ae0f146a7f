"""Fields of pods and their owners that take one of a few words, and settings that belong together."""

import ipaddress
from collections.abc import Iterator
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import each
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import absent, at, mapping, pod, rows, text, whole
from rehearsal.kubernetes.rules.book import BOOK, CORE, DAEMON_SET, DEPLOYMENT, PODS, STATEFUL_SET
from rehearsal.kubernetes.rules.violations import (
    NEGATIVE,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)

_APPS = "kubernetes/kubernetes pkg/apis/apps/validation/validation.go"
_OF_POD = {
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "os.name": ("linux", "windows"),
}
_OF_CONTAINER = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("FallbackToLogsOnError", "File"),
    "ports.protocol": ("SCTP", "TCP", "UDP"),
    "livenessProbe.httpGet.scheme": ("HTTP", "HTTPS"),
    "readinessProbe.httpGet.scheme": ("HTTP", "HTTPS"),
    "startupProbe.httpGet.scheme": ("HTTP", "HTTPS"),
}
_SPREADS = ("DoNotSchedule", "ScheduleAnyway")
_MOST_WEIGHT = 100


def _others(value: Any, path: str, allowed: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for here, word in each(value, path):
        if word != "" and word not in allowed:
            yield here, word


@BOOK.rule("K8S-POD-022", *PODS, source=CORE)
def _words(inputs: Properties) -> Iterator[Violation]:
    """Policies and protocols of pods and containers are among those that there are."""
    view = pod(inputs)
    if view is None:
        return
    for path, allowed in _OF_POD.items():
        for here, word in _others(view.spec, path, allowed):
            yield unsupported(f"{view.path}.{here}", word, allowed)
    for own, container in view.containers():
        for path, allowed in _OF_CONTAINER.items():
            for here, word in _others(container, path, allowed):
                yield unsupported(f"{own}.{here}", word, allowed)


@BOOK.rule("K8S-POD-023", *PODS, source=f"{CORE} (validateTopologySpreadConstraints)")
def _spread(inputs: Properties) -> Iterator[Violation]:
    """A pod spreads over the values of a node label, with a skew of 1 or more, and once over each."""
    view = pod(inputs)
    seen = []
    for index, row in rows(view.spec.get("topologySpreadConstraints")) if view else ():
        path = f"{view.path if view else ''}.topologySpreadConstraints[{index}]"
        skew, key, action = whole(row.get("maxSkew")), row.get("topologyKey"), row.get("whenUnsatisfiable")
        if skew is not None and skew <= 0:
            yield invalid(f"{path}.maxSkew", skew, "must be greater than zero")
        if absent(key):
            yield required(f"{path}.topologyKey", "can not be empty")
        if action not in (*_SPREADS, UNKNOWN, None):
            yield unsupported(f"{path}.whenUnsatisfiable", action, _SPREADS)
        if (key, action) in seen and UNKNOWN not in (key, action):
            yield duplicate(path, {"topologyKey": key, "whenUnsatisfiable": action})
        seen.append((key, action))


@BOOK.rule("K8S-AFF-003", *PODS, source=f"{CORE} (validatePodAffinityTerm, validateWeightedPodAffinityTerms)")
def _pod_affinity(inputs: Properties) -> Iterator[Violation]:
    """Affinity to pods is within the values of a node label; a preference has a weight from 1 to 100."""
    view = pod(inputs)
    if view is None:
        return
    for kind in ("podAffinity", "podAntiAffinity"):
        base, own = f"{view.path}.affinity.{kind}", at(view.spec, f"affinity.{kind}")
        needed, wished = (
            f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred")
        )
        terms: list[tuple[str, Any]] = [
            (f"{base}.{needed}[{index}]", row) for index, row in rows(at(own, needed))
        ]
        for index, row in rows(at(own, wished)):
            weight, path = whole(row.get("weight")), f"{base}.{wished}[{index}]"
            if weight is not None and not 1 <= weight <= _MOST_WEIGHT:
                yield invalid(f"{path}.weight", weight, "must be in the range 1-100")
            terms.append((f"{path}.podAffinityTerm", row.get("podAffinityTerm")))
        for path, term in terms:
            key = at(term, "topologyKey")
            if absent(key):
                yield required(f"{path}.topologyKey", "can not be empty")
            elif (label := text(key)) and (wrong := grammar.label_key(label)):
                yield invalid(f"{path}.topologyKey", label, wrong)


@BOOK.rule("K8S-POD-024", *PODS, source=f"{CORE} (ValidatePodSpec, validatePodDNSConfig, validateHostUsers)")
def _together(inputs: Properties) -> Iterator[Violation]:
    """DNS servers and aliases are addresses, named without a DNS policy; labels of nodes are labels."""
    view = pod(inputs)
    if view is None:
        return
    for path in ("dnsConfig.nameservers[]", "hostAliases.ip"):
        for here, value in each(view.spec, path):
            if (own := text(value)) and not _is_address(own):
                yield invalid(f"{view.path}.{here}", own, "must be a valid IP address, (e.g. 10.9.8.7)")
    terms = at(view.spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    if isinstance(terms, dict) and absent(terms.get("nodeSelectorTerms")):
        here = f"{view.path}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        yield required(f"{here}.nodeSelectorTerms", "must have at least one node selector term")
    if view.spec.get("dnsPolicy") == "None" and absent(at(view.spec, "dnsConfig.nameservers")):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{view.path}.dnsConfig.nameservers", detail)
    if view.spec.get("shareProcessNamespace") is True and view.spec.get("hostPID") is True:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{view.path}.shareProcessNamespace", True, detail)
    for key, value in mapping(view.spec.get("nodeSelector")).items():
        label = text(value)
        if wrong := grammar.label_key(str(key)) or (grammar.label_value(label) if label else None):
            yield invalid(f"{view.path}.nodeSelector", value, wrong)
    account = text(view.spec.get("serviceAccountName"))
    if account and (wrong := grammar.subdomain(account)):
        yield invalid(f"{view.path}.serviceAccountName", account, wrong)


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


@BOOK.rule(
    "K8S-POD-025",
    *PODS,
    source=f"{CORE} (ValidateVolumeMounts, validateLocalDescendingPath, validateHandler)",
)
def _paths(inputs: Properties) -> Iterator[Violation]:
    """Paths inside of a volume are relative and stay in it; a hook of a container has one handler."""
    view = pod(inputs)
    for path, container in view.containers() if view else ():
        for index, mount in rows(container.get("volumeMounts")):
            for key in ("subPath", "subPathExpr"):
                own, here = text(mount.get(key)), f"{path}.volumeMounts[{index}].{key}"
                if own and own.startswith("/"):
                    yield invalid(here, own, "must be a relative path")
                elif own and ".." in own.split("/"):
                    yield invalid(here, own, "must not contain '..'")
            if mount.get("subPath") and mount.get("subPathExpr"):
                here = f"{path}.volumeMounts[{index}].subPathExpr"
                yield invalid(here, mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive")
        for key in ("postStart", "preStop"):
            hook = at(container, f"lifecycle.{key}")
            if isinstance(hook, dict) and UNKNOWN not in hook.values():
                given = [
                    name for name in ("exec", "httpGet", "tcpSocket", "sleep") if hook.get(name) is not None
                ]
                if not given:
                    yield required(f"{path}.lifecycle.{key}", "must specify a handler type")
                for extra in given[1:]:
                    yield forbidden(
                        f"{path}.lifecycle.{key}.{extra}", "may not specify more than 1 handler type"
                    )


@BOOK.rule("K8S-APP-008", DEPLOYMENT, source=_APPS)
def _strategy(inputs: Properties) -> Iterator[Violation]:
    """A Deployment rolls or recreates its pods; it is given more time than its pods need to be available."""
    kind, allowed = at(inputs, "spec.strategy.type"), ("Recreate", "RollingUpdate")
    if kind not in (None, "", UNKNOWN, *allowed):
        yield unsupported("spec.strategy.type", kind, allowed)
    if kind == "Recreate" and at(inputs, "spec.strategy.rollingUpdate") is not None:
        detail = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden("spec.strategy.rollingUpdate", detail)
    deadline, ready = (
        whole(at(inputs, f"spec.{key}")) for key in ("progressDeadlineSeconds", "minReadySeconds")
    )
    if deadline is not None and deadline < 0:
        yield invalid("spec.progressDeadlineSeconds", deadline, NEGATIVE)
    elif deadline is not None and ready is not None and deadline <= ready:
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


@BOOK.rule("K8S-APP-009", STATEFUL_SET, DAEMON_SET, source=_APPS)
def _updates(inputs: Properties) -> Iterator[Violation]:
    """Pods of StatefulSets and DaemonSets are updated in turn or on deletion."""
    kind, allowed = at(inputs, "spec.updateStrategy.type"), ("OnDelete", "RollingUpdate")
    if kind not in (None, "", UNKNOWN, *allowed):
        if inputs["kind"] == "DaemonSet":
            yield unsupported("spec.updateStrategy.type", kind, allowed)
        else:
            yield invalid("spec.updateStrategy", kind, "must be 'RollingUpdate' or 'OnDelete'")
    rolling = mapping(at(inputs, "spec.updateStrategy.rollingUpdate"))
    surge, away = rolling.get("maxSurge"), rolling.get("maxUnavailable")
    if inputs["kind"] == "DaemonSet" and away in (0, "0%") and surge in (None, 0, "0%"):
        here = "spec.updateStrategy.rollingUpdate.maxUnavailable"
        yield invalid(here, away, "cannot be 0 when `maxSurge` is 0")
    policy, orders = at(inputs, "spec.podManagementPolicy"), ("OrderedReady", "Parallel")
    if policy not in (None, "", UNKNOWN, *orders):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
