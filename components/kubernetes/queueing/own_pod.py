"""A pod of a team may write one annotation on itself: the time of its run's last checkpoint (ADR 34)."""

from components.kubernetes.queueing.policy import Policy, rule
from smoke_training.checkpoint_policy import LAST

NAME = "trainstack-own-pod"
# The only account to which the stack grants it (`teams.checkpoints`); others have what administrators grant.
_BY_A_POD = "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':default'"
# A token that a kubelet requested names its pod (Kubernetes documentation, "Managing Service Accounts",
# bound tokens; pkg/serviceaccount/claims.go). One that a person requested does not.
_OWN = (
    "request.userInfo.?extra[?'authentication.kubernetes.io/pod-uid'].orValue([])"
    ".exists(uid, uid == oldObject.metadata.uid)"
)
_SAME = (
    "object.spec == oldObject.spec"
    " && object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({})"
    " && object.metadata.?finalizers.orValue([]) == oldObject.metadata.?finalizers.orValue([])"
    " && object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])"
    f" && variables.now.all(key, key == '{LAST}'"
    " || (key in variables.was && variables.was[key] == variables.now[key]))"
    " && variables.was.all(key, key in variables.now)"
)
_FORM = (
    f"!('{LAST}' in variables.now) || variables.now['{LAST}']"
    ".matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$')"
)
# Changes that a team's service account makes to pods.
POLICY = Policy(
    NAME,
    [rule("", "pods", operations=("UPDATE",), versions=("v1",))],
    [
        (_OWN, "a pod may change only itself"),
        (_SAME, f"a pod may change only its annotation {LAST}"),
        (_FORM, f"annotation {LAST}: write UTC as 2026-11-25T20:00:00Z"),
    ],
    {
        "was": "oldObject.metadata.?annotations.orValue({})",
        "now": "object.metadata.?annotations.orValue({})",
    },
    only_from=_BY_A_POD,
)
