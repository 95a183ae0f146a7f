"""Closed lists of fields of objects, and fields that only some types of an object have."""

import json
from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import each
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules.accessors import absent, at, mapping
from rehearsal.kubernetes.rules.book import (
    BOOK,
    CONFIG_MAP,
    CORE,
    CRON_JOB,
    JOB,
    QUOTA,
    SECRET,
    SERVICE,
    STATEFUL_SET,
)
from rehearsal.kubernetes.rules.objects.policies import BUDGET
from rehearsal.kubernetes.rules.objects.scaling import SCALER
from rehearsal.kubernetes.rules.violations import forbidden, invalid, required, unsupported

_SOURCE = (
    "kubernetes/kubernetes v1.36.2 pkg/apis/{apps,autoscaling,batch,core,policy}/validation/validation.go, "
    "read 2026-11-29"
)
_REPLACEMENT = ("Failed", "TerminatingOrFailed")
_RETENTION = ("Delete", "Retain")
_SELECT = ("Disabled", "Max", "Min")
# By the end of a type: property path -> its words.
_WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    SERVICE: {
        "spec.ports.protocol": ("SCTP", "TCP", "UDP"),
        "spec.ipFamilyPolicy": ("PreferDualStack", "RequireDualStack", "SingleStack"),
        "spec.ipFamilies[]": ("IPv4", "IPv6"),
        "spec.internalTrafficPolicy": ("Cluster", "Local"),
    },
    JOB: {"spec.podReplacementPolicy": _REPLACEMENT},
    CRON_JOB: {"spec.jobTemplate.spec.podReplacementPolicy": _REPLACEMENT},
    STATEFUL_SET: {
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": _RETENTION,
        "spec.persistentVolumeClaimRetentionPolicy.whenScaled": _RETENTION,
    },
    SCALER: {
        "spec.behavior.scaleUp.selectPolicy": _SELECT,
        "spec.behavior.scaleDown.selectPolicy": _SELECT,
        "spec.metrics.resource.target.type": ("AverageValue", "Utilization", "Value"),
    },
    BUDGET: {"spec.unhealthyPodEvictionPolicy": ("AlwaysAllow", "IfHealthyBudget")},
    QUOTA: {
        "spec.scopes[]": (
            "BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass",
            "Terminating", "VolumeAttributesClass",
        ),
    },
}  # fmt: skip
# The keys that a Secret of a type has.
_TYPED = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
}
_DOCKER = (".dockerconfigjson", ".dockercfg")


@BOOK.rule("K8S-WORD-001", *_WORDS, source=_SOURCE)
def _words(inputs: Properties) -> Iterator[Violation]:
    """Fields with closed lists have one of their words."""
    for token, paths in _WORDS.items():
        if token.rpartition(":")[2] != inputs["kind"]:
            continue
        for path, allowed in paths.items():
            for here, word in each(inputs, path):
                required_word = path.endswith("target.type")
                if word not in (UNKNOWN, *allowed) and (word != "" or required_word):
                    yield unsupported(here, word, allowed)


@BOOK.rule("K8S-SVC-012", SERVICE, source=f"{CORE} (ValidateService)")
def _of_type(inputs: Properties) -> Iterator[Violation]:
    """Source ranges belong to load balancers, and external traffic to Services that have it."""
    kind = at(inputs, "spec.type")
    if kind is UNKNOWN or kind not in (None, "", "ClusterIP", "NodePort"):
        return
    if kind != "NodePort" and at(inputs, "spec.externalTrafficPolicy") not in (None, "", UNKNOWN):
        detail = "may only be set for externally-accessible services"
        addresses = at(inputs, "spec.externalIPs")
        if absent(addresses):
            policy = at(inputs, "spec.externalTrafficPolicy")
            yield invalid("spec.externalTrafficPolicy", policy, detail)
    if not absent(at(inputs, "spec.loadBalancerSourceRanges")):
        yield forbidden("spec.loadBalancerSourceRanges", "may only be used when `type` is 'LoadBalancer'")


@BOOK.rule("K8S-DATA-003", CONFIG_MAP, SECRET, source=f"{CORE} (ValidateConfigMap, ValidateSecret)")
def _typed(inputs: Properties) -> Iterator[Violation]:
    """A key of a ConfigMap is text or bytes; a Secret has the keys of its type."""
    if inputs["kind"] == "ConfigMap":
        for key in mapping(inputs.get("binaryData")):
            if key in mapping(inputs.get("data")):
                yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        return
    kind, given = inputs.get("type"), (inputs.get("data"), inputs.get("stringData"))
    if UNKNOWN in given or not isinstance(kind, str):
        return
    keys = {**mapping(given[0]), **mapping(given[1])}
    for key in _TYPED.get(kind, ()):
        if key not in keys:
            yield required(f"data[{key}]")
    for key in _DOCKER:
        value = mapping(given[1]).get(key)
        if key in _TYPED.get(kind, ()) and isinstance(value, str) and not _is_json(value):
            yield invalid(f"data[{key}]", "<secret contents redacted>", "invalid JSON")


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True
