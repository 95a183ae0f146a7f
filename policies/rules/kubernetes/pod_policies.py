"""Admission policies that replace a Pod Security Standard, for fabrics whose daemons need their node."""

from collections.abc import Iterator
from typing import Any

from policies.resource import Resource
from policies.rules.kubernetes.objects import metadata, spec
from policies.stack import Stack

_KIND = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
_BINDING = f"{_KIND}Binding"
# Fields that the standard `baseline` restricts on Linux, and the container lists that it checks
# (kubernetes.io, "Pod Security Standards").
_RESTRICTED = (
    *("hostNetwork", "hostPID", "hostIPC", "privileged", "capabilities", "hostPath", "hostPort", "procMount"),
    *("seccompProfile", "appArmorProfile", "seLinuxOptions", "sysctls", "initContainers"),
    "ephemeralContainers",
)
_ASKED = (("CREATE", "pods"), ("UPDATE", "pods"), ("UPDATE", "pods/ephemeralcontainers"))


def lacking(namespace: Resource, stack: Stack) -> str | None:
    """Reason why the policies in the settings do not replace a standard; None if one does.

    Empty if there is none of them. The pods that a policy matches are checked in full, its expressions only
    for every field that `baseline` restricts: listing it in the settings means trusting them.
    """
    known = [
        one for one in stack.all(_KIND) if metadata(one).get("name") in stack.settings.pod_security_policies
    ]
    faults = [next(_faults(one, namespace, stack), None) for one in known]
    if not known:
        return ""
    return None if None in faults else f"{metadata(known[0]).get('name')} {faults[0]}"


def _faults(policy: Resource, namespace: Resource, stack: Stack) -> Iterator[str]:
    asked = spec(policy)
    if (asked.get("failurePolicy") or "Fail") != "Fail":
        yield "admits pods on errors"
    constraints = asked.get("matchConstraints") or {}
    if asked.get("matchConditions") or not _matches(constraints, namespace):
        yield "does not match every pod there"
    rules = constraints.get("resourceRules") or ()
    missing = [
        f"{verb} {what}" for verb, what in _ASKED if not any(_is_for(one, verb, what) for one in rules)
    ]
    if missing:
        yield f"does not match {', '.join(missing)}"
    text = " ".join(
        str(one.get("expression")) for key in ("variables", "validations") for one in asked.get(key) or ()
    )
    unmentioned = [name for name in _RESTRICTED if name not in text]
    if unmentioned:
        yield f"does not mention {', '.join(unmentioned)}"
    if not any(_denies(one, policy, namespace) for one in stack.all(_BINDING)):
        yield "has no binding that denies there"


def _denies(binding: Resource, policy: Resource, namespace: Resource) -> bool:
    bound = spec(binding)
    return (
        bound.get("policyName") == metadata(policy).get("name")
        and "Deny" in (bound.get("validationActions") or ())
        and not bound.get("paramRef")
        and _matches(bound.get("matchResources") or {}, namespace)
    )


def _matches(constraints: Any, namespace: Resource) -> bool:
    """Return whether all objects of a namespace match; selectors with expressions count as no match."""
    if constraints.get("objectSelector") or constraints.get("excludeResourceRules"):
        return False
    selector, labels = constraints.get("namespaceSelector") or {}, metadata(namespace).get("labels") or {}
    if selector.get("matchExpressions"):
        return False
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())


def _is_for(rule: Any, verb: str, what: str) -> bool:
    asked = (("operations", verb), ("apiGroups", ""), ("apiVersions", "v1"), ("resources", what))
    wide = what if "/" not in what else "pods/*"
    named = all(
        {value, "*", wide if key == "resources" else value} & set(rule.get(key) or ()) for key, value in asked
    )
    return named and not rule.get("resourceNames") and rule.get("scope") in (None, "*", "Namespaced")
