"""Policy for pods that mount folders of their node, where a fabric needs it: these and no others (pure).

Some fabrics have a daemon in every pod, which configures the pod's interfaces and mounts folders of the node.
Only the Pod Security Standard `privileged` admits it. Where a cluster has such pools, the namespaces of jobs
have that one, and this policy enforces the rules of `baseline`, except for exactly these daemons with their
command, variables and mounts. A shell in one would have root access to the node, so it is denied.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from components.kubernetes.queueing.policy import Policy, rule
from components.kubernetes.queueing.quotas import FlavorArgs
from infra.launchers.fabrics import SidecarArgs, reaches_node

NAME, SHELLS = "trainstack-node", "trainstack-node-shells"
# Pod Security Standards, "Baseline" (kubernetes.io, read 2026-11-25).
_CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
    *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
)
_SELINUX = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_SYSCTLS = (
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
    *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
    *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
    *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
)
_ALL = "variables.all.all(one, {})"


def needs_node(flavors: Sequence[FlavorArgs]) -> bool:
    """Return whether pods of any flavor mount folders of their node."""
    return any(reaches_node(flavor.get("pod")) for flavor in flavors)


def policies(flavors: Sequence[FlavorArgs]) -> list[Policy]:
    """Only a fabric's daemon may mount folders of its node, and no shell starts in one."""
    known = _daemons(flavors)
    pods = rule("", "pods", "pods/ephemeralcontainers", operations=("CREATE", "UPDATE"), versions=("v1",))
    shells = rule("", "pods/exec", "pods/attach", operations=("CONNECT",), versions=("v1",))
    return [
        Policy(NAME, [pods], list(_rules(known)), _variables(flavors)),
        Policy(SHELLS, [shells], list(_shells(known))),
    ]


def _variables(flavors: Sequence[FlavorArgs]) -> dict[str, str]:
    """All containers, those that are no init containers, and the folders that runs may mount."""
    run = "dyn(object.spec.containers) + dyn(object.spec.?ephemeralContainers.orValue([]))"
    needs = [flavor["pod"] for flavor in flavors if "pod" in flavor]
    folders = sorted({host for each in needs for host in each["host_folders"].values()})
    return {
        "run": run,
        "all": "variables.run + dyn(object.spec.?initContainers.orValue([]))",
        "folders": json.dumps(folders),
    }


def _daemons(flavors: Sequence[FlavorArgs]) -> list[tuple[SidecarArgs, str | None]]:
    """The sidecars of the flavors, each once, with the folder that each shares with its run."""
    found: dict[str, tuple[SidecarArgs, str | None]] = {}
    for flavor in flavors:
        if "pod" in flavor and "sidecar" in flavor["pod"]:
            sidecar = flavor["pod"]["sidecar"]
            found[sidecar["name"]] = sidecar, flavor["pod"].get("shared_folder")
    return [found[name] for name in sorted(found)]


def _shells(known: Sequence[tuple[SidecarArgs, str | None]]) -> Iterator[tuple[str, str]]:
    names = json.dumps([sidecar["name"] for sidecar, _ in known])
    # Without a name the API server takes a pod's only container (pkg/registry/core/pod/strategy.go,
    # `validateContainer`).
    yield (
        f"object.?container.orValue('') != '' && !(object.container in {names})",
        "no shell in a daemon of the network, which sees folders of the node: name another container",
    )


def _rules(known: Sequence[tuple[SidecarArgs, str | None]]) -> Iterator[tuple[str, str]]:
    yield (
        "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false)"
        " && !object.spec.?hostIPC.orValue(false)",
        "no network, processes or memory of the node",
    )
    yield (_ALL.format("!one.?securityContext.?privileged.orValue(false)"), "no privileged containers")
    added = "one.?securityContext.?capabilities.?add.orValue([])"
    extra = " || ".join(
        f"(one.image == {_text(sidecar['image'])} && name in {json.dumps(list(sidecar['capabilities']))})"
        for sidecar, _ in known
    )
    allowed = f"name in {json.dumps(list(_CAPABILITIES))}" + (f" || {extra}" if extra else "")
    yield _ALL.format(f"{added}.all(name, {allowed})"), "no capabilities beyond the usual ones"
    names = json.dumps([sidecar["name"] for sidecar, _ in known])
    images = json.dumps(sorted({sidecar["image"] for sidecar, _ in known}))
    as_made = " || ".join(map(_is, known)) or "false"
    yield (
        _ALL.replace("{}", f"!(one.name in {names} || one.image in {images}) || {as_made}"),
        "the daemon of a network runs as the stack defines it, and nothing else uses its name or image",
    )
    yield from _beside(names, images)
    mounts = "one.?volumeMounts.orValue([]).exists(mount, mount.name == volume.name)"
    yield (
        "object.spec.?volumes.orValue([]).all(volume, !has(volume.hostPath) || "
        + _ALL.format(f"!{mounts} || one.image in {images} || volume.hostPath.path in variables.folders")
        + ")",
        "no folders of the node but those that the stack's networks need",
    )
    yield (
        _ALL.format("one.?ports.orValue([]).all(port, port.?hostPort.orValue(0) == 0)"),
        "no ports of the node",
    )
    yield (
        _ALL.format("one.?securityContext.?procMount.orValue('Default') == 'Default'"),
        "no other view of processes",
    )
    for key, kind in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        confined = f"?securityContext.?{key}.?type.orValue('') != 'Unconfined'"
        yield f"object.spec.{confined} && " + _ALL.format(f"one.{confined}"), f"no container without {kind}"
    types = json.dumps(list(_SELINUX))
    labelled = "?securityContext.?seLinuxOptions.?type.orValue('') in " + types
    yield f"object.spec.{labelled} && " + _ALL.format(f"one.{labelled}"), "no other SELinux type"
    yield (
        "object.spec.?securityContext.?sysctls.orValue([]).all(one, one.name in "
        f"{json.dumps(list(_SYSCTLS))})",
        "no sysctls that reach beyond the pod",
    )


def _beside(names: str, images: str) -> Iterator[tuple[str, str]]:
    """A run beside a daemon does not reach into it: a shell in a container of a run is allowed."""
    yield (
        f"variables.run.all(one, !(one.name in {names}) && !(one.image in {images}))",
        "the daemon of a network is an init container that goes on (restartPolicy Always), beside the run",
    )
    present = f"variables.all.exists(one, one.name in {names})"
    yield (
        f"!object.spec.?shareProcessNamespace.orValue(false) || !{present}",
        "no shared processes beside the daemon of a network: leave shareProcessNamespace out",
    )
    yield (
        "object.spec.?ephemeralContainers.orValue([]).all(one,"
        f" !(one.?targetContainerName.orValue('') in {names}))",
        "no debugger in the processes of the daemon of a network: target another container",
    )


def _is(known: tuple[SidecarArgs, str | None]) -> str:
    """CEL: whether container `one` is this sidecar as the stack creates it."""
    sidecar, shared = known
    env = dict(sidecar["env"])
    paths = dict(sidecar["host_folders"])
    parts = [
        f"one.name == {_text(sidecar['name'])}",
        f"one.image == {_text(sidecar['image'])}",
        "one.?restartPolicy.orValue('') == 'Always'",
        f"one.?command.orValue([]) == {json.dumps(list(sidecar['command']))}",
        *(f"!has(one.{key})" for key in ("args", "envFrom", "lifecycle", "livenessProbe", "readinessProbe")),
        "!has(one.workingDir)",
        f"one.?env.orValue([]).all(row, !has(row.valueFrom) && row.name in {json.dumps(env)}"
        f" && row.?value.orValue('') == {json.dumps(env)}[row.name])",
        "one.?volumeMounts.orValue([]).all(mount, !has(mount.subPath) && !has(mount.subPathExpr) && "
        + _mounted(paths, shared)
        + ")",
        _probed(sidecar.get("ready_file")),
    ]
    return "(" + " && ".join(parts) + ")"


def _mounted(paths: dict[str, str], shared: str | None) -> str:
    folder = "object.spec.?volumes.orValue([]).exists(volume, volume.name == mount.name && {})"
    of_node = f"volume.?hostPath.?path.orValue('') == {json.dumps(paths)}[mount.mountPath]"
    found = f"(mount.mountPath in {json.dumps(paths)} && {folder.format(of_node)})"
    if shared:
        found = (
            f"({found} || (mount.mountPath == {_text(shared)} && {folder.format('has(volume.emptyDir)')}))"
        )
    return found


def _probed(ready_file: str | None) -> str:
    if ready_file is None:
        return "!has(one.startupProbe)"
    return (
        "(!has(one.startupProbe) || one.startupProbe.?exec.?command.orValue([]) == "
        f"{json.dumps(['cat', ready_file])})"
    )


def _text(value: str) -> Any:
    return json.dumps(value)
