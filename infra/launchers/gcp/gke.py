"""GPU networks of GKE: requirements of pods for GPUDirect-TCPX, GPUDirect-TCPXO and gIB (pure).

TCPX (A3 High) and TCPXO (A3 Mega) need a daemon in every pod, in its network, that moves packets into the
memory of the GPUs. It mounts folders of the node and may configure the pod's interfaces. gIB (A3 Ultra, A4)
is NCCL's plugin for RDMA adapters and needs neither.

GKE's device plugin mounts the node's folder with the driver's libraries in containers with GPUs as
/usr/local/nvidia (container-engine-accelerators@992db812 cmd/nvidia_gpu/nvidia_gpu.go, `host-path`). The
installers (components/gcp/pools/installers.py) put NCCL's plugins there, so no pod mounts them by itself.

Sources: GoogleCloudPlatform/container-engine-accelerators: gpudirect-tcpx/README.md (release of 2026-06-22),
gpudirect-tcpxo/{README.md,best-practice.md,nccl-test-latest.yaml}@992db812 and
nccl-tcpxo-installer.yaml@10c8d237 (v1.0.16), gpudirect-rdma/{nccl-test,nccl-test-managed-rdma}.yaml@992db812.
Daemon and plugin are a pair, tied to the driver (R580: v1.0.22 with v1.0.16; elideng-sg/
hypercomputer-internode-deepdive@db026b5f, playbook 4.1). Untested on hardware.
"""

import json
from collections.abc import Mapping, Sequence

from infra.launchers.fabrics import PluginArgs, PodNeeds, SidecarArgs

_REGISTRY = "us-docker.pkg.dev/gce-ai-infra"
# Google publishes no digests of these: pinned by version; the pairs must stay together.
TCPX_PLUGIN = f"{_REGISTRY}/gpudirect-tcpx/nccl-plugin-gpudirecttcpx-dev:v3.1.12"
TCPX_DAEMON = f"{_REGISTRY}/gpudirect-tcpx/tcpgpudmarxd-dev:v2.0.15"
TCPXO_PLUGIN = f"{_REGISTRY}/gpudirect-tcpxo/nccl-plugin-gpudirecttcpx-dev:v1.0.16"
TCPXO_DAEMON = f"{_REGISTRY}/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.22"
GIB_PLUGIN = f"{_REGISTRY}/gpudirect-gib/nccl-plugin-gib:v1.1.1"

NVIDIA = "/usr/local/nvidia"  # the driver's folder in containers with GPUs
NVIDIA_ON_NODE = "/home/kubernetes/bin/nvidia"
LIBRARIES = f"{NVIDIA}/lib64"
GIB = f"{NVIDIA}/gib"
GIB_OF_GOOGLE = "/usr/local/gib"
"""The plugin's folder in Google's images and recipes."""
GIB_ON_NODE = "/home/kubernetes/bin/gib"
"""Its folder on nodes in Google's manifests, which mount it."""
_INSTALLED = "trainstack"  # folder of a file for each installed plugin
NETWORK_RESOURCE = "networking.gke.io.networks"
INTERFACES = "networking.gke.io/interfaces"
"""Annotation of a pod with its networks, as JSON."""
_DEVICES = "devices.gke.io/container"
# Devices of the GPUs for the daemons; only the run's container requests GPUs.
_GPU_DEVICES = [*(f"/dev/nvidia{index}" for index in range(8)), "/dev/nvidiactl", "/dev/nvidia-uvm"]
# Network interfaces of a pod: eth0 is the default; on machines with RDMA eth1 is a second ordinary one.
_FIRST, _FIRST_RDMA = 1, 2
_APERTURES = "/dev/aperture_devices"
_TCPX_SOCKETS = "/run/tcpx"
_CHUNKS = {
    "NCCL_P2P_NET_CHUNKSIZE": "524288",
    "NCCL_P2P_PCI_CHUNKSIZE": "524288",
    "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
}
# The plugin has no profile: this is the release's own list. Cores by interface are those of a3-highgpu-8g.
# NCCL compares the name of a network with the plugin's and fails without it; unset, it falls back to sockets.
# "GPUDirectTCPX_v7" is that of Google's scripts (cluster-toolkit@10470803 examples/machine-learning/
# a3-highgpu-8g/nccl-tests/run-nccl-tests.sh), "FasTrak" that of the plugin's log (allenai/OLMo sets it, too).
TCPX_ENV: Mapping[str, str] = {
    "NCCL_NET": "GPUDirectTCPX_v7",
    "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_ALGO": "Ring,Tree",
    "NCCL_PROTO": "Simple",
    "NCCL_CROSS_NIC": "0",
    "NCCL_NET_GDR_LEVEL": "PIX",
    "NCCL_P2P_PXN_LEVEL": "0",
    "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME": "eth1,eth2,eth3,eth4",
    "NCCL_GPUDIRECTTCPX_CTRL_DEV": "eth0",
    "NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX": _TCPX_SOCKETS,
    "NCCL_DYNAMIC_CHUNK_SIZE": "524288",
    **_CHUNKS,
    "NCCL_BUFFSIZE": "4194304",
    "NCCL_NSOCKS_PERTHREAD": "4",
    "NCCL_SOCKET_NTHREADS": "1",
    "NCCL_GPUDIRECTTCPX_TX_BINDINGS": (
        "eth1:8-21,112-125;eth2:8-21,112-125;eth3:60-73,164-177;eth4:60-73,164-177"
    ),
    "NCCL_GPUDIRECTTCPX_RX_BINDINGS": (
        "eth1:22-35,126-139;eth2:22-35,126-139;eth3:74-87,178-191;eth4:74-87,178-191"
    ),
    "NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS": "500000",
}

# What the plugin's own nccl-env-profile.sh sets where a pod's interfaces have these names. Its configuration
# checker ends a run in which one of them is another (google/nccl-plugin-gpudirect-tcpxo@8f816be3,
# tcpxo_scripts/nccl-env-profile.sh), except for the log settings.
TCPXO_ENV: Mapping[str, str] = {
    "NCCL_NET": "FasTrak",
    "NCCL_LIB_DIR": LIBRARIES,
    "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": _APERTURES,
    "NCCL_FASTRAK_CTRL_DEV": "eth0",
    "NCCL_FASTRAK_IFNAME": ",".join(f"eth{index}" for index in range(1, 9)),
    "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_CROSS_NIC": "0",
    "NCCL_PROTO": "Simple,LL128",
    "NCCL_MIN_NCHANNELS": "4",
    "NCCL_NVLSTREE_MAX_CHUNKSIZE": "131072",
    **_CHUNKS,
    "NCCL_FASTRAK_NUM_FLOWS": "2",
    "NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL": "0",
    "NCCL_BUFFSIZE": "8388608",
    "NCCL_FASTRAK_USE_SNAP": "1",
    "NCCL_FASTRAK_USE_LLCM": "1",
    "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(8))),
    "NCCL_NET_GDR_LEVEL": "PIX",
    "NCCL_FASTRAK_ENABLE_HOTPATH_LOGGING": "0",
    "NCCL_TUNER_PLUGIN": "libnccl-tuner.so",
    "NCCL_TUNER_CONFIG_PATH": f"{LIBRARIES}/a3plus_tuner_config.textproto",
    "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE": f"{LIBRARIES}/a3plus_guest_config.textproto",
    "NCCL_FASTRAK_PLUGIN_ACCEPT_TIMEOUT_MS": "600000",
}


def driver_only() -> PodNeeds:
    """Return the requirements of GPU nodes without a GPU network: the driver's libraries."""
    return {"env": {"LD_LIBRARY_PATH": LIBRARIES}, "annotations": {}, "host_folders": {}}


def tcpx(networks: Sequence[str]) -> PodNeeds:
    """Return those of A3 High; `networks` are its four, in the order of its interfaces."""
    daemon = _daemon(
        "tcpx-daemon",
        TCPX_DAEMON,
        [
            *("/tcpgpudmarxd/build/app/tcpgpudmarxd", "--gpu_nic_preset", "a3vm", "--gpu_shmem_type", "fd"),
            *("--uds_path", _TCPX_SOCKETS, "--setup_param", "--verbose 128 2 0"),
        ],
        ["NET_ADMIN"],
    )
    return {
        "env": {"LD_LIBRARY_PATH": LIBRARIES, **TCPX_ENV},
        "plugin": {**_plugin(TCPX_PLUGIN), "paired": True},
        "annotations": {**interfaces(networks, _FIRST), **_injected(daemon, _GPU_DEVICES)},
        "host_folders": {},
        "shared_folder": _TCPX_SOCKETS,
        "sidecar": daemon,
    }


def tcpxo(networks: Sequence[str]) -> PodNeeds:
    """Return those of A3 Mega; `networks` are its eight, in the order of its interfaces."""
    entry = "/fts/entrypoint_rxdm_container.sh"
    script = f"chmod 755 {entry} && exec {entry} --num_hops=2"
    daemon = _daemon(
        "tcpxo-daemon", TCPXO_DAEMON, ["/bin/sh", "-c", script], ["NET_ADMIN", "NET_BIND_SERVICE"]
    )
    daemon["env"] = {**daemon["env"], "HEALTH_CHECK_LOG_FILE": "/run/health-check"}
    daemon["ready_file"] = "/run/health-check"
    return {
        "env": {"LD_LIBRARY_PATH": LIBRARIES, **TCPXO_ENV},
        "plugin": {**_plugin(TCPXO_PLUGIN), "paired": True},
        "annotations": {
            **interfaces(networks, _FIRST),
            **_injected(daemon, [*_GPU_DEVICES, "/dev/dmabuf_import_helper"]),
        },
        "host_folders": {_APERTURES: _APERTURES},
        "sidecar": daemon,
    }


def gib(networks: Sequence[str] = ()) -> PodNeeds:
    """Return those of machines with RDMA adapters; no networks where pods claim the adapters.

    The plugin's own script has the settings of the machine, because "Google expects to update" them (AI
    Hypercomputer documentation, "Enable NCCL/gIB").
    """
    return {
        "env": {"LD_LIBRARY_PATH": LIBRARIES, "NCCL_NET": "gIB"},
        "profile": f"{GIB}/scripts/set_nccl_env.sh",
        "plugin": {**_plugin(GIB_PLUGIN), "folder": GIB, "linked": GIB_OF_GOOGLE},
        "annotations": interfaces(networks, _FIRST_RDMA) if networks else {},
        "host_folders": {},
    }


def installed(plugin: str, folder: str) -> str:
    """Return the file below the driver's `folder` that is there once a plugin is installed, by its image."""
    name, version = plugin.rsplit("/", 1)[0].rsplit("/", 1)[1], plugin.rpartition(":")[2]
    return f"{folder}/{_INSTALLED}/{name}-{version}"


def other_version(plugin: str) -> str | None:
    """Return the image of the version that replaced a plugin which has to fit a pod's daemon; None: none."""
    pairs = {image.rpartition(":")[0]: image for image in (TCPX_PLUGIN, TCPXO_PLUGIN)}
    wanted = pairs.get(plugin.rpartition(":")[0], plugin)
    return None if wanted == plugin else wanted


def _plugin(image: str) -> PluginArgs:
    return {"image": image, "installed": installed(image, NVIDIA)}


def interfaces(networks: Sequence[str], first: int) -> dict[str, str]:
    """Return annotations that attach a pod to these networks, from interface number `first` on."""
    own = [{"interfaceName": "eth0", "network": "default"}]
    further = [
        {"interfaceName": f"eth{index}", "network": name} for index, name in enumerate(networks, first)
    ]
    return {
        "networking.gke.io/default-interface": "eth0",
        INTERFACES: json.dumps([*own, *further], separators=(",", ":")),
    }


def network_requests(networks: Sequence[str]) -> dict[str, str]:
    """Return the resource requests of a pod in these networks."""
    return {f"{NETWORK_RESOURCE}/{name}": "1" for name in networks}


def _daemon(name: str, image: str, command: Sequence[str], capabilities: Sequence[str]) -> SidecarArgs:
    return {
        "name": name,
        "image": image,
        "command": command,
        "env": {"LD_LIBRARY_PATH": LIBRARIES},
        "capabilities": capabilities,
        "host_folders": {
            LIBRARIES: f"{NVIDIA_ON_NODE}/lib64",
            "/hostsysfs": "/sys",
            "/hostprocsysfs": "/proc/sys",
        },
        # No source states their usage; the machines have 208 processors and 1872 GiB.
        "cpu": 4,
        "memory_gib": 8,
    }


def _injected(daemon: SidecarArgs, devices: Sequence[str]) -> dict[str, str]:
    """Return the annotation for the node's device injector: a container's devices (a list in YAML)."""
    return {f"{_DEVICES}.{daemon['name']}": "".join(f"- path: {path}\n" for path in devices)}
