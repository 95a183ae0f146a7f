"""Names, labels and annotations of every object."""

from collections.abc import Callable, Iterator

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import at, mapping, name, pod, text
from rehearsal.kubernetes.rules.book import ANY, BOOK, CORE, CRON_JOB, NAMESPACE, PODS, SERVICE, ClusterView
from rehearsal.kubernetes.rules.violations import invalid

_META = "kubernetes/kubernetes staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go"
_RBAC = "rbac.authorization.k8s.io"
_ROLES = tuple(
    f"kubernetes:{_RBAC}/v1:{kind}" for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
)
_WITH_PODS = tuple(token.rpartition(":")[2] for token in PODS)
# Kinds whose names have a grammar of their own, or none.
_OTHER_NAMES = (
    "Namespace",
    "PodDisruptionBudget",
    "Service",
    "CertificateSigningRequest",
    "ClusterTrustBundle",
)
_ANNOTATION_BYTES = 256 * 1024
# What the controller adds to a CronJob's name fits into the name of a Job: 11 characters of 63.
_CRON_NAME = 52


def _misnamed(inputs: Properties, wrong: Callable[[str], str | None]) -> Iterator[Violation]:
    own = name(inputs)
    if own is not None and (detail := wrong(own)):
        yield invalid("metadata.name", own, detail)


@BOOK.rule("K8S-NAME-001", ANY, source=_META)
def _subdomain(inputs: Properties) -> Iterator[Violation]:
    """Most names are DNS subdomains."""
    other_grammar = inputs["kind"] in _OTHER_NAMES or str(inputs["apiVersion"]).startswith(_RBAC)
    if not other_grammar:
        yield from _misnamed(inputs, grammar.subdomain)


@BOOK.rule("K8S-NAME-002", NAMESPACE, SERVICE, source=CORE)
def _label(inputs: Properties) -> Iterator[Violation]:
    """The name of a namespace or Service is a DNS label."""
    yield from _misnamed(inputs, grammar.label)


@BOOK.rule_around(
    "K8S-NAME-003",
    SERVICE,
    source="kubernetes/kubernetes pkg/features/kube_features.go (RelaxedServiceNameValidation, on by default "
    "from 1.36 on)",
)
def _service_name(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """Before Kubernetes 1.36 the name of a Service starts with a letter."""
    if world.version < (1, 36):
        yield from _misnamed(inputs, lambda own: None if grammar.label(own) else grammar.label_1035(own))


@BOOK.rule("K8S-NAME-004", *_ROLES, source="kubernetes/kubernetes pkg/apis/rbac/validation/validation.go")
def _path_segment(inputs: Properties) -> Iterator[Violation]:
    """The names of roles and bindings are whatever fits into a path."""
    yield from _misnamed(inputs, grammar.path_segment)


@BOOK.rule("K8S-NAME-005", CRON_JOB, source="kubernetes.io/docs/concepts/workloads/controllers/cron-jobs")
def _cron_job(inputs: Properties) -> Iterator[Violation]:
    """The name of a CronJob leaves room for what the controller appends."""
    own = name(inputs)
    if own is not None and len(own) > _CRON_NAME:
        yield invalid("metadata.name", own, f"must be no more than {_CRON_NAME} characters")


@BOOK.rule("K8S-META-001", ANY, source=_META)
def _labels(inputs: Properties) -> Iterator[Violation]:
    """The keys and values of labels follow their grammar, on the object and on its pods."""
    found = {"metadata.labels": at(inputs, "metadata.labels")}
    if inputs["kind"] in _WITH_PODS and (view := pod(inputs)) and view.template:
        found[f"{view.path.removesuffix('.spec')}.metadata.labels"] = view.metadata.get("labels")
    for path, labels in found.items():
        for key, value in mapping(labels).items():
            if wrong := grammar.label_key(str(key)):
                yield invalid(path, key, wrong)
            if (content := text(value)) is not None and (wrong := grammar.label_value(content)):
                yield invalid(path, content, wrong)


@BOOK.rule("K8S-META-002", ANY, source=_META)
def _annotations(inputs: Properties) -> Iterator[Violation]:
    """The keys of annotations follow the grammar of label keys, whatever their case."""
    for key in mapping(at(inputs, "metadata.annotations")):
        if wrong := grammar.label_key(str(key).lower()):
            yield invalid("metadata.annotations", key, wrong)


@BOOK.rule("K8S-META-003", ANY, source=_META)
def _annotation_size(inputs: Properties) -> Iterator[Violation]:
    """All annotations together are at most 256 KiB."""
    found = mapping(at(inputs, "metadata.annotations"))
    size = sum(len(str(key).encode()) + len((text(value) or "").encode()) for key, value in found.items())
    if size > _ANNOTATION_BYTES:
        yield Violation(
            "metadata.annotations", f"Too long: may not be more than {_ANNOTATION_BYTES} bytes, not {size}"
        )
