"""Policies about objects of the stack, of controllers and of accounts in a team's namespace (pure)."""

import json

from agents.gpu_ledger import book_store
from agents.waiting import mlflow_logins
from components.kubernetes.people import by_controllers
from components.kubernetes.queueing.policy import Body, Policy, rule
from components.kubernetes.queueing.tenancy import GIVEN_LABEL, TRACKING
from components.kubernetes.runtime_names import POOL_RUNTIME
from smoke_training import checkpoint_policy

GIVEN, FINALIZERS, TOKENS = "trainstack-given", "trainstack-finalizers", "trainstack-tokens"
CLAIMS, EVENTS = "trainstack-claims", "trainstack-events"
# The most letters that events.k8s.io accepts in a note.
MOST_LETTERS = 1024
MOST_TOKEN_S = 24 * 60 * 60
# Objects that programs of the stack create later: one of this name in their place would be taken for theirs.
_RESERVED = (book_store.NAME, checkpoint_policy.CONFIG, mlflow_logins.SECRET, TRACKING)
_MOST_KEYS = 20
_ADMINISTRATORS = "the stack created this for the team; only administrators change it"


def policies(member: str) -> list[Policy]:
    """All of them; `member`: CEL, true for requests of members."""
    return [_given(member), _claims(member), _finalizers(member), _tokens(member), _events(member)]


def _every_kind(*operations: str) -> Body:
    return {**rule("*", "*", operations=operations), "scope": "Namespaced"}


def _given(member: str) -> Policy:
    """Members cannot change or delete objects that the stack created in their namespace, nor forge some.

    They may change all other objects of the kind. A deleted claim could not be created again: its volume
    would stay bound to the old one.
    """
    labelled = f".?metadata.?labels[?'{GIVEN_LABEL}'].hasValue()"
    name = "object.?metadata.?name.orValue('')"
    named = (
        "(request.resource.resource in ['configmaps', 'secrets']"
        f" && ({name} in {json.dumps(_RESERVED)} || {name}.startsWith('{book_store.NAME}-')))"
        f" || (request.resource.resource == 'resourceclaimtemplates' && {name}.startsWith('{POOL_RUNTIME}'))"
    )
    return Policy(
        GIVEN,
        [_every_kind("CREATE", "UPDATE", "DELETE")],
        [
            (f"request.operation == 'CREATE' || !oldObject{labelled}", _ADMINISTRATORS),
            (
                f"request.operation == 'DELETE' || !object{labelled}",
                f"label {GIVEN_LABEL} marks objects of the stack: leave it out",
            ),
            (
                f"request.operation != 'CREATE' || !({named})",
                f"the names {', '.join(_RESERVED)}, and {POOL_RUNTIME}* of templates of claims, are reserved"
                " for objects of the stack: choose another",
            ),
        ],
        only_from=member,
    )


def _claims(member: str) -> Policy:
    """Members make no claims, nor do controllers for them, whatever the name.

    The quota of a namespace has room for the stack's alone (`teams.claims`), but it is raised before a new
    one is made: another would take its name or its room, and a controller whose claim the quota refuses tries
    again and again. A template of a StatefulSet can have any label, so a label would not separate them.
    """
    controller = by_controllers("statefulset-controller", "ephemeral-volume-controller")
    return Policy(
        CLAIMS,
        [rule("", "persistentvolumeclaims")],
        [
            (
                f"!{member} && !{controller}",
                "claims are the stack's: mount one of `kubectl get pvc`, or an emptyDir",
            )
        ],
    )


def _finalizers(member: str) -> Policy:
    """Members add no finalizers: nothing removes one, so the namespace could never be deleted."""
    finalizers = "?metadata.?finalizers.orValue([])"
    # The API server and Kueue's webhook add their own to what a member creates.
    own = (
        "(request.kind.kind == 'Pod' && one == 'kueue.x-k8s.io/managed')"
        " || (request.kind.kind == 'PersistentVolumeClaim' && one == 'kubernetes.io/pvc-protection')"
    )
    added = (
        f"object.{finalizers}.all(one, one == 'foregroundDeletion' || {own}"
        f" || (request.operation == 'UPDATE' && one in oldObject.{finalizers}))"
    )
    removed = (
        f"request.operation == 'CREATE' || oldObject.{finalizers}.all(one,"
        f" !one.startsWith('kueue.x-k8s.io/') || one in object.{finalizers})"
    )
    return Policy(
        FINALIZERS,
        [_every_kind("CREATE", "UPDATE")],
        [
            (added, "finalizers are set by controllers, which remove them again: leave them out"),
            (removed, "Kueue removes its finalizer itself: delete the object, and wait"),
        ],
        only_from=member,
    )


def _tokens(member: str) -> Policy:
    """Tokens of accounts end: a member who leaves the team takes none along."""
    return Policy(
        TOKENS,
        [rule("", "secrets"), rule("", "serviceaccounts/token")],
        [
            (
                "request.kind.kind != 'Secret'"
                " || object.?type.orValue('') != 'kubernetes.io/service-account-token'",
                "such a token never ends: use `kubectl create token`",
            ),
            (
                "request.kind.kind != 'TokenRequest'"
                f" || object.spec.?expirationSeconds.orValue(0) <= {MOST_TOKEN_S}",
                f"tokens last {MOST_TOKEN_S} seconds at most: request a new one when it ends",
            ),
        ],
        only_from=member,
    )


def _events(member: str) -> Policy:
    """Members write Events of ordinary size: no quota counts them.

    Most texts of an Event of the core API have no limit (kubernetes v1.36.2
    pkg/apis/core/validation/events.go, `legacyValidateEvent`). Some thousand of a megabyte fill the store, so
    that the API server refuses all writes.
    """
    named = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    fields = [
        *("message", "note", "reason", "action", "type"),
        *("reportingController", "reportingComponent", "reportingInstance"),
        *(f"{one}.?{part}" for one in ("source", "deprecatedSource") for part in ("component", "host")),
        *(f"{one}.?{part}" for one in ("involvedObject", "regarding", "related") for part in named),
    ]
    texts = ", ".join(f"variables.event.?{field}.orValue('')" for field in fields)
    about = "variables.event.metadata.?"
    maps = ", ".join(f"{about}{field}.orValue({{}})" for field in ("labels", "annotations"))
    small = (
        f"[{texts}].all(text, size(text) <= {MOST_LETTERS}) && [{maps}].all(one,"
        f" one.size() <= {_MOST_KEYS} && one.all(key, size(one[key]) <= {MOST_LETTERS}))"
        f" && {about}ownerReferences.orValue([]).size() == 0"
    )
    message = (
        f"an Event has texts of {MOST_LETTERS} letters at most, {_MOST_KEYS} labels and annotations, and no "
        "ownerReferences: write long texts to the log"
    )
    return Policy(
        EVENTS,
        [rule(group, "events", operations=("CREATE", "UPDATE")) for group in ("", "events.k8s.io")],
        [(small, message)],
        {"event": "dyn(object)"},
        only_from=member,
    )
