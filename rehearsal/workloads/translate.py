"""Translation of a container into a process of this machine: arguments, environment, folder. Pure."""

import base64
import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from infra import quantity
from rehearsal.workloads.rewriting import LocalNames, rewrite, rewrite_paths, unknown_buckets

Object = Mapping[str, Any]
Lookup = Callable[[str, str], Object | None]

_REFERENCE = re.compile(r"\$(?:\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - a text to search for
_MASTER_PORT = "MASTER_PORT"
# Labels that all pods of one run share, and no pod of another (Kubernetes' Job controller; JobSet v0.12,
# api/jobset/v1alpha2/jobset_types.go, `JobSetUIDKey`).
_RUNS = ("jobset.sigs.k8s.io/jobset-uid", "batch.kubernetes.io/controller-uid")
_FIRST_PORT, _PORT_PAIRS = 20_000, 6_000  # below the ports that Linux gives to outgoing connections
# Network interface of collective libraries: pods have only the loopback one here.
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
# Variables of NCCL's network plug-ins name device files and sockets of the node. They do not exist here, and
# must be the same on all nodes of a run: paths in the folder of each pod would differ.
_PLUGINS = ("NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_")


class ContainerConfigError(Exception):
    """The kubelet cannot create the container: a reference is missing or wrong."""


@dataclass(frozen=True)
class Pod:
    """Fields of a pod for the downward API, and its specification."""

    namespace: str
    name: str
    uid: str
    ip: str
    spec: Object
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node: str = ""

    @property
    def hostname(self) -> str:
        """Host name of the pod."""
        return str(self.spec.get("hostname") or self.name)

    @property
    def service_account(self) -> str:
        """The service account of the pod."""
        return str(self.spec.get("serviceAccountName") or "default")


@dataclass(frozen=True)
class Surroundings:
    """Context of the translation: `lookup(kind, name)` finds objects of the pod's namespace.

    `config_files` are the container paths of files from ConfigMaps; `injected` is the environment
    that the platform adds (identity, endpoints); `folder` is the pod's own folder, `node` its node.
    """

    names: LocalNames
    lookup: Lookup
    folder: Path
    injected: Mapping[str, str] = field(default_factory=dict)
    config_files: frozenset[str] = frozenset()
    node: str = ""


@dataclass(frozen=True)
class ProcessPlan:
    """The process to start."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


def is_ours(container: Object, config_files: frozenset[str]) -> bool:
    """Return whether the container runs a Python script of a mounted ConfigMap: only those run here."""
    command = _command(container)
    if len(command) < 2 or not re.fullmatch(r"(.*/)?python3?(\.\d+)?", command[0]):
        return False
    script = next((word for word in command[1:] if not word.startswith("-")), "")
    if command[1] == "-m":
        script = f"{container.get('workingDir')}/{script.replace('.', '/')}.py"
    return script in config_files


def plan(container: Object, pod: Pod, around: Surroundings) -> ProcessPlan:
    """The process for one container. Raises ContainerConfigError for a missing reference."""
    pod = replace(pod, node=around.node)
    env = environment(container, pod, around)
    command = [expand(word, env) for word in _command(container)]
    missing = [name for text in (*env.values(), *command) for name in unknown_buckets(text, around.names)]
    if missing:
        raise ContainerConfigError(f"bucket {missing[0].partition('://')[2]!r} does not exist")

    def here(text: str) -> str:
        # The pod's own network has only its address here.
        return pod.ip if text == ALL_ADDRESSES else rewrite(text, around.names)

    local = {name: value if name.startswith(_PLUGINS) else here(value) for name, value in env.items()}
    argv = (sys.executable, *(here(word) for word in command[1:]))
    cwd = container.get("workingDir")
    return ProcessPlan(
        argv=argv,
        env={**_base(pod, around), **local, **dict.fromkeys(INTERFACES, "lo")},
        cwd=Path(rewrite_paths(cwd, around.names.paths)) if cwd else around.folder / "home",
    )


def environment(container: Object, pod: Pod, around: Surroundings) -> dict[str, str]:
    """The container's own variables, in the container's terms, references `$(NAME)` resolved in order.

    Only the rendezvous port of a run differs: pods share the ports of this machine.
    """
    found: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        found.update(_bulk(source, around.lookup))
    for entry in container.get("env") or ():
        if entry.get("valueFrom"):
            value = _value_from(entry["valueFrom"], container, pod, around.lookup)
        else:
            value = expand(str(entry.get("value") or ""), found)
        if value is not None:
            found[entry["name"]] = _port_of_run(pod, value) if entry["name"] == _MASTER_PORT else value
    return found


def expand(text: str, known: Mapping[str, str]) -> str:
    """`$(NAME)` replaced where NAME is known; `$$` is a literal `$`."""

    def replaced(found: re.Match[str]) -> str:
        if found[1] is None:
            return "$"
        return known.get(found[1], found[0])

    return _REFERENCE.sub(replaced, text)


def contents(config_map: Object) -> dict[str, bytes]:
    """The files of a ConfigMap or Secret."""
    files = {name: base64.b64decode(text) for name, text in (config_map.get("binaryData") or {}).items()}
    for name, text in (config_map.get("data") or {}).items():
        secret = config_map.get("kind") == "Secret"
        files[name] = base64.b64decode(text) if secret else str(text).encode()
    files.update({name: str(text).encode() for name, text in (config_map.get("stringData") or {}).items()})
    return files


def field_value(path: str, pod: Pod) -> str:
    """A field of the downward API, such as `status.podIP` or `metadata.labels['app']`."""
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path)
    if keyed:
        return str((pod.labels if keyed[1] == "labels" else pod.annotations).get(keyed[2], ""))
    plain = {
        "metadata.name": pod.name, "metadata.namespace": pod.namespace, "metadata.uid": pod.uid,
        "spec.nodeName": pod.node, "spec.serviceAccountName": pod.service_account,
        "status.hostIP": pod.ip, "status.podIP": pod.ip, "status.podIPs": pod.ip,
    }  # fmt: skip
    if path in plain:
        return plain[path]
    if path in ("metadata.labels", "metadata.annotations"):
        table = pod.labels if path.endswith("labels") else pod.annotations
        return "\n".join(f"{key}={json.dumps(value)}" for key, value in sorted(table.items()))
    raise ContainerConfigError(f"field path {path!r} is not supported by the downward API")


def _command(container: Object) -> list[str]:
    return [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]


def _port_of_run(pod: Pod, wanted: str) -> str:
    run = next((pod.labels[key] for key in _RUNS if key in pod.labels), None)
    return wanted if run is None else port_of_run(run)


def port_of_run(run: str) -> str:
    """The rendezvous port of a run; the next port, for their launchers, is free, too.

    torch's store listens on all addresses of a machine (torch/csrc/distributed/c10d/socket.cpp,
    `SocketListenOp`), so two runs with the same port cannot start at the same time.
    """
    drawn = int.from_bytes(hashlib.sha256(run.encode()).digest()[:8], "big")
    return str(_FIRST_PORT + 2 * (drawn % _PORT_PAIRS))


def _base(pod: Pod, around: Surroundings) -> dict[str, str]:
    return {**clean_start(around.folder, pod.hostname), **around.injected}


def clean_start(folder: Path, hostname: str) -> dict[str, str]:
    """The initial environment of a program: no variables of the daemon, no credentials."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "HOSTNAME": hostname,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "TZ": "UTC",
    }


def _bulk(source: Object, lookup: Lookup) -> Iterator[tuple[str, str]]:
    for field_name, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        reference = source.get(field_name)
        if reference:
            found = _require(lookup, kind, reference)
            for name, value in contents(found).items() if found else ():
                yield f"{source.get('prefix') or ''}{name}", value.decode(errors="replace")


def _value_from(source: Object, container: Object, pod: Pod, lookup: Lookup) -> str | None:
    if source.get("fieldRef"):
        return field_value(source["fieldRef"]["fieldPath"], pod)
    if source.get("resourceFieldRef"):
        return _resource(source["resourceFieldRef"], container)
    for field_name, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        reference = source.get(field_name)
        if reference:
            found = _require(lookup, kind, reference)
            files = contents(found) if found else {}
            if reference["key"] in files:
                return files[reference["key"]].decode(errors="replace")
            if reference.get("optional"):
                return None
            name = f"{pod.namespace}/{reference['name']}"
            raise ContainerConfigError(f"couldn't find key {reference['key']} in {kind} {name}")
    raise ContainerConfigError("valueFrom names no source")


def _require(lookup: Lookup, kind: str, reference: Object) -> Object | None:
    found = lookup(kind, reference["name"])
    if found is None and not reference.get("optional"):
        raise ContainerConfigError(f'{kind.lower()} "{reference["name"]}" not found')
    return found


def _resource(reference: Object, container: Object) -> str:
    """A request or limit, divided by the divisor and rounded up; by default the capacity of this machine."""
    side, _, name = str(reference["resource"]).partition(".")
    resources = container.get("resources") or {}
    given = (resources.get(side) or {}).get(name) or (resources.get("limits") or {}).get(name)
    if given is None and name == "cpu":
        given = len(os.sched_getaffinity(0))
    elif given is None and name == "memory":
        given = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    amount = quantity.parse(given if given is not None else 0)
    divisor = quantity.parse(reference.get("divisor") or 1) or quantity.parse(1)
    return str(math.ceil(amount / divisor))
