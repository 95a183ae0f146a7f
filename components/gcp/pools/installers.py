"""The DaemonSets that install the NCCL plugins of GKE's GPU networks on nodes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pulumi
from pulumi_kubernetes import apps, meta

from components.base import Component, Options
from components.kubernetes.accelerators import POOL_LABEL
from components.ordering import after
from infra.launchers.gcp import gke
from smoke_training.fabric import Fabric

Body = dict[str, Any]

# The namespace of GKE's own node agents: only there may pods have this priority, and access their node.
NAMESPACE = "kube-system"
_INJECTOR = (
    "gcr.io/gke-release/nri-device-injector"
    "@sha256:6e79483d52abdc28454bf186320b10a56b0f117a10e8d65d5c74dbb821a76970"
)
_TARGET = "/target"
_GIB_TARGET = "/target-gib"
# Jobs may run with an earlier version: their processes have its libraries mapped, and cp would write into
# these, which ends the processes. So files are copied beside and replace others by a rename.
_PUT = """\
put() {
  staged=$2/.trainstack-new
  rm -rf $staged
  mkdir -p $staged
  cp -r $1/. $staged
  [ -z "$3" ] || grep -rlI "$3" $staged | xargs -r sed -i "s,$3,$4,g"
  cd $staged
  find . -type d -exec sh -c 'cd "$0" && mkdir -p "$@"' $2 {} +
  find . ! -type d -exec sh -c 'for one; do mv -fT "$one" "$0/$one" || exit 1; done' $2 {} +
  cd /
  rm -rf $staged
}
"""
# The plugin's profile and its configurations refer to each other by their paths. Pods have it below the
# driver's folder; manifests of Google mount the other one.
_GIB = f"""\
/scripts/container_entry.sh install
put /var/lib/gib/lib64 {_TARGET}/lib64
put /var/lib/gib {_GIB_TARGET}
put /var/lib/gib {_TARGET}/gib {gke.GIB_OF_GOOGLE} {gke.GIB}
"""
_GIB_MOUNT = {"name": "gib", "mountPath": _GIB_TARGET}
_GIB_VOLUME = {"name": "gib", "hostPath": {"path": gke.GIB_ON_NODE, "type": "DirectoryOrCreate"}}
_APERTURES = """\
set -e
iptables -I INPUT -p tcp -m tcp -j ACCEPT
modprobe import-helper
for nic in $(lspci -nn -D | grep 1ae0:0084 | cut -d ' ' -f 1); do
  mkdir -p /dev/aperture_devices/$nic
  umount -R /dev/aperture_devices/$nic 2>/dev/null || true
  mount --bind $(readlink -f /sys/bus/pci/devices/$nic) /dev/aperture_devices/$nic
done
chmod -R a+r /dev/aperture_devices
chmod a+rw /dev/aperture_devices/*/resource*
"""


class InstalledArgs(TypedDict):
    """The pools of one fabric."""

    fabric: str
    """`tcpx`, `tcpxo` or `rdma`."""
    pools: Sequence[str]
    """The pools: values of the node label `trainstack.dev/pool`."""


class GcpFabricInstallersArgs(TypedDict):
    """Arguments of `GcpFabricInstallers`."""

    fabrics: Sequence[InstalledArgs]
    """Fabrics to install, each on its own pools; none twice."""


class GcpFabricInstallers(Component):
    """One DaemonSet per fabric that copies its NCCL plugin to the nodes of its pools, once for each node.

    They are Google's manifests (GoogleCloudPlatform/container-engine-accelerators@992db812, for TCPXO
    10c8d237) with fewer permissions. The copying container mounts its folders of the node and is not
    privileged, nor is the device injector, and none has the network of the node. Only the set-up of TCPXO's
    devices enters the node. gIB is installed below the driver's folder, which every container with GPUs
    mounts, so that no pod mounts folders of its node, and also where Google's manifests mount it. Google
    publishes no digests of the plugins: they are named by version. Untested on hardware.
    """

    installed: pulumi.Output[list[str]]
    """Names of the DaemonSets; dependents come after them."""

    def __init__(self, name: str, args: GcpFabricInstallersArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        bodies = daemons(args["fabrics"])
        made = [
            apps.v1.DaemonSet(
                f"{name}-{body['metadata']['name']}",
                metadata=meta.v1.ObjectMetaArgs(**body["metadata"]),
                spec=body["spec"],
                opts=self.child(),
            )
            for body in bodies
        ]
        names = [body["metadata"]["name"] for body in bodies]
        self.installed = after(pulumi.Output.from_input(names), made)
        self.register_declared()


def daemons(fabrics: Sequence[InstalledArgs]) -> list[Body]:
    """The DaemonSets, as plain data (apps/v1)."""
    found = [_installer(one) for one in fabrics]
    injected = [
        pool
        for one in fabrics
        if Fabric(one["fabric"]) in (Fabric.TCPX, Fabric.TCPXO)
        for pool in one["pools"]
    ]
    return [*found, *([_injector(injected)] if injected else [])]


def _installer(one: InstalledArgs) -> Body:
    fabric = Fabric(one["fabric"])
    if fabric is Fabric.RDMA:
        copying = _copying(gke.GIB_PLUGIN, _GIB, _GIB_MOUNT)
        return _daemon("nccl-gib", gke.GIB_PLUGIN, one["pools"], [copying], [_GIB_VOLUME])
    plugin = {Fabric.TCPX: gke.TCPX_PLUGIN, Fabric.TCPXO: gke.TCPXO_PLUGIN}[fabric]
    script = f"""\
chmod 755 /scripts/container_entry.sh
/scripts/container_entry.sh install --install-nccl
put /var/lib/{fabric}/lib64 {_TARGET}/lib64
"""
    before = [_device_setup(plugin)] if fabric is Fabric.TCPXO else []
    return _daemon(
        f"nccl-{fabric}", plugin, one["pools"], [*before, _copying(plugin, script)], enters_node=bool(before)
    )


def _copying(image: str, script: str, *mounts: Body) -> Body:
    """Copies a plugin. Pods wait for the file that it creates last, by the version (`gke.installed`)."""
    done = gke.installed(image, _TARGET)
    folder = done.rpartition("/")[0]
    whole = f"set -e\n{_PUT}rm -rf {folder}\n{script}mkdir -p {folder}\ntouch {done}\n"
    return {
        "name": "plugin",
        "image": image,
        "command": ["/bin/sh", "-c", whole],
        "resources": {"requests": {"cpu": "150m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"]},
        },
        "volumeMounts": [{"name": "driver", "mountPath": _TARGET}, *mounts],
    }


def _device_setup(image: str) -> Body:
    """A kernel module and the NICs' memory windows below /dev, by commands of the node in its own namespaces.

    The plugin's image has `nsenter` (it is Ubuntu's), so no further image gets such permissions.
    """
    return {
        "name": "devices",
        "image": image,
        "command": ["nsenter", "--all", "--target=1", "--", "sh", "-c", _APERTURES],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"privileged": True},
    }


def _injector(pools: Sequence[str]) -> Body:
    """Gives the daemons in pods the GPUs that only the run's container requests, by the pods' annotations.

    It sets the devices of a container in containerd (NRI, on by default in 2.0), and for that only reads
    the node's (nri_device_injector.go), so that it needs no privileges.
    """
    container = {
        "name": "device-injector",
        "image": _INJECTOR,
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "dev", "mountPath": "/dev", "readOnly": True},
            {"name": "nri", "mountPath": "/var/run/nri"},
        ],
    }
    volumes = [
        {"name": "dev", "hostPath": {"path": "/dev"}},
        {"name": "nri", "hostPath": {"path": "/var/run/nri"}},
    ]
    return _daemon_of("device-injector", pools, {"containers": [container], "volumes": volumes})


def _daemon(
    name: str,
    image: str,
    pools: Sequence[str],
    before: Sequence[Body],
    volumes: Sequence[Body] = (),
    *,
    enters_node: bool = False,
) -> Body:
    # A daemon needs a running container. Its image is on the node already.
    idle = {
        "name": "installed",
        "image": image,
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "32Mi"}},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    # GKE creates the folder with the driver. An earlier installer would hide that it is missing.
    driver = {"name": "driver", "hostPath": {"path": gke.NVIDIA_ON_NODE, "type": "Directory"}}
    pod: Body = {"initContainers": list(before), "containers": [idle], "volumes": [driver, *volumes]}
    return _daemon_of(name, pools, {**pod, **({"hostPID": True} if enters_node else {})})


def _daemon_of(name: str, pools: Sequence[str], pod: Mapping[str, Any]) -> Body:
    # Not the label of other node agents: GKE's own manifests, applied manually, must not adopt these pods.
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "trainstack-fabric"}
    chosen = {"key": POOL_LABEL, "operator": "In", "values": sorted(pools)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [chosen]}]}
    spec = {
        "priorityClassName": "system-node-critical",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        # Before jobs: also on nodes that are not ready for others.
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        **pod,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
