"""Pod security admission by the `enforce` label of a namespace.

As with quotas, the API server refuses the pods and not the objects whose controllers make them.
"""

from collections.abc import Callable, Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Rule, Violation
from rehearsal.kubernetes.rules.accessors import (
    PodView,
    at,
    mapping,
    namespace,
    pod,
    rows,
    text,
    texts,
    unsure,
    whole,
)
from rehearsal.kubernetes.rules.book import BOOK, NAMESPACE, PODS, ClusterView
from rehearsal.kubernetes.rules.violations import invalid, no_pod

_FOLDER = "kubernetes/kubernetes staging/src/k8s.io/pod-security-admission/policy"
_PREFIX = "pod-security.kubernetes.io/"
_LEVELS = ("privileged", "baseline", "restricted")
_DEFAULT_CAPABILITIES = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip
_PLAIN_VOLUMES = frozenset({
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected",
    "secret",
})  # fmt: skip
_SECCOMP = ("RuntimeDefault", "Localhost")

# An error of a pod: path, and the policy's message.
Check = Callable[[PodView], Iterator[tuple[str, str]]]


def _privileged(view: PodView) -> Iterator[tuple[str, str]]:
    """No container is privileged."""
    for path, container in view.containers():
        if at(container, "securityContext.privileged") is True:
            own = container.get("name")
            detail = f'privileged (container "{own}" must not set securityContext.privileged=true)'
            yield f"{path}.securityContext.privileged", detail


def _host_namespaces(view: PodView) -> Iterator[tuple[str, str]]:
    """A pod shares no namespace with its node."""
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if view.spec.get(key) is True:
            yield f"{view.path}.{key}", f"host namespaces ({key}=true)"


def _host_paths(view: PodView) -> Iterator[tuple[str, str]]:
    """A pod mounts no folder of its node."""
    for index, volume in rows(view.spec.get("volumes")):
        if volume.get("hostPath") is not None:
            yield (
                f"{view.path}.volumes[{index}].hostPath",
                f'hostPath volumes (volume "{volume.get("name")}")',
            )


def _host_ports(view: PodView) -> Iterator[tuple[str, str]]:
    """A container uses no port of its node."""
    for path, container in view.containers():
        for index, port in rows(container.get("ports")):
            if number := whole(port.get("hostPort")):
                detail = f'hostPort (container "{container.get("name")}" uses hostPort {number})'
                yield f"{path}.ports[{index}].hostPort", detail


def _added(view: PodView, allowed: frozenset[str], words: str) -> Iterator[tuple[str, str]]:
    for path, container in view.containers():
        for _, capability in texts(at(container, "securityContext.capabilities.add")):
            if capability not in allowed:
                own = container.get("name")
                said = (
                    f'container "{own}" must not include "{capability}" in securityContext.capabilities.add'
                )
                detail = f"{words} ({said})"
                yield f"{path}.securityContext.capabilities.add", detail


def _capabilities(view: PodView) -> Iterator[tuple[str, str]]:
    """Containers get no capabilities beyond the default ones."""
    yield from _added(view, _DEFAULT_CAPABILITIES, "non-default capabilities")


def _all_dropped(view: PodView) -> Iterator[tuple[str, str]]:
    """Containers drop all capabilities, and may add only NET_BIND_SERVICE."""
    for path, container in view.containers():
        dropped = at(container, "securityContext.capabilities.drop")
        if not unsure(dropped) and "ALL" not in [item for _, item in texts(dropped)]:
            own = container.get("name")
            said = f'container "{own}" must set securityContext.capabilities.drop=["ALL"]'
            detail = f"unrestricted capabilities ({said})"
            yield f"{path}.securityContext.capabilities.drop", detail
    yield from _added(view, frozenset({"NET_BIND_SERVICE"}), "unrestricted capabilities")


def _non_root(view: PodView) -> Iterator[tuple[str, str]]:
    """Containers run as a user other than root, by their own setting or that of the pod."""
    whole_pod = at(view.spec, "securityContext.runAsNonRoot")
    for path, container in view.containers():
        own = at(container, "securityContext.runAsNonRoot")
        said = whole_pod if own is None else own
        if said is not True and said is not UNKNOWN:
            detail = f'pod or container "{container.get("name")}" must set securityContext.runAsNonRoot=true'
            yield f"{path}.securityContext.runAsNonRoot", f"runAsNonRoot != true ({detail})"


def _no_escalation(view: PodView) -> Iterator[tuple[str, str]]:
    """Containers disable privilege escalation."""
    for path, container in view.containers():
        if at(container, "securityContext.allowPrivilegeEscalation") not in (False, UNKNOWN):
            detail = (
                f'container "{container.get("name")}" must set securityContext.allowPrivilegeEscalation=false'
            )
            yield (
                f"{path}.securityContext.allowPrivilegeEscalation",
                f"allowPrivilegeEscalation != false ({detail})",
            )


def _seccomp(view: PodView) -> Iterator[tuple[str, str]]:
    """System calls are filtered, by the container's own profile or the pod's."""
    whole_pod = at(view.spec, "securityContext.seccompProfile.type")
    for path, container in view.containers():
        own = at(container, "securityContext.seccompProfile.type")
        said = whole_pod if own is None else own
        if said not in (*_SECCOMP, UNKNOWN):
            detail = (
                f'pod or container "{container.get("name")}" must set securityContext.seccompProfile.type to '
            )
            words = f'seccompProfile ({detail}"RuntimeDefault" or "Localhost")'
            yield f"{path}.securityContext.seccompProfile.type", words


def _plain_volumes(view: PodView) -> Iterator[tuple[str, str]]:
    """A pod mounts only types of volumes that expose nothing of the node."""
    for index, volume in rows(view.spec.get("volumes")):
        sources = {key for key, value in volume.items() if key != "name" and value is not None}
        if sources and not sources & _PLAIN_VOLUMES and "hostPath" not in sources:
            detail = f'restricted volume types (volume "{volume.get("name")}" uses restricted volume type)'
            yield f"{view.path}.volumes[{index}]", detail


# (level, check, source)
_CHECKS: tuple[tuple[str, Check, str], ...] = (
    ("baseline", _privileged, "check_privileged.go"),
    ("baseline", _host_namespaces, "check_hostNamespaces.go"),
    ("baseline", _host_paths, "check_hostPathVolumes.go"),
    ("baseline", _host_ports, "check_hostPorts.go"),
    ("baseline", _capabilities, "check_capabilities_baseline.go"),
    ("restricted", _all_dropped, "check_capabilities_restricted.go"),
    ("restricted", _non_root, "check_runAsNonRoot.go"),
    ("restricted", _no_escalation, "check_allowPrivilegeEscalation.go"),
    ("restricted", _seccomp, "check_seccompProfile_restricted.go"),
    ("restricted", _plain_volumes, "check_restrictedVolumes.go"),
)


def _register(number: int, level: str, check: Check, file: str) -> None:
    def around(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
        view, enforced = pod(inputs), _enforced(world, namespace(inputs))
        # The restricted level forbids default capabilities too, so it has a stricter check of its own.
        covered = enforced == level or (enforced == "restricted" and check is not _capabilities)
        for path, detail in check(view) if view and covered else ():
            yield no_pod(inputs, path, f'violates PodSecurity "{enforced}:latest": {detail}')

    summary = f"{level}: {' '.join((check.__doc__ or '').split())}"
    BOOK.add(Rule(f"K8S-PSA-{number:03}", PODS, summary, f"{_FOLDER}/{file}", around=around))


for _number, (_level, _check, _file) in enumerate(_CHECKS, start=2):
    _register(_number, _level, _check, _file)


@BOOK.rule("K8S-PSA-001", NAMESPACE, source="kubernetes.io/docs/concepts/security/pod-security-admission")
def _known_level(inputs: Properties) -> Iterator[Violation]:
    """The pod security labels of a namespace name one of three levels."""
    labels = mapping(at(inputs, "metadata.labels"))
    for mode in ("enforce", "audit", "warn"):
        level = text(labels.get(_PREFIX + mode))
        if level is not None and level not in _LEVELS:
            yield invalid(f"metadata.labels[{_PREFIX}{mode}]", level, f"must be one of {', '.join(_LEVELS)}")


def _enforced(world: ClusterView, where: str) -> str:
    """The level that a namespace enforces; without a label nothing is refused."""
    record = world.get("Namespace", "", where)
    labels = mapping(at(record.inputs, "metadata.labels")) if record else {}
    return str(labels.get(_PREFIX + "enforce") or "")
