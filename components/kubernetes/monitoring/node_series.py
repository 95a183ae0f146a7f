"""Series of the node exporter that grow with processors and pods, and what is left of them.

Each of a node's processors has 8 modes of `node_cpu_seconds_total`, 2 of `node_cpu_guest_seconds_total`, 7
counters of softnet, 3 of schedstat and up to 6 of cpufreq (node_exporter v1.12 collector/). On one with 192,
these are 5,000 series, of which no dashboard or alert of ours reads any. The chart's own rules read the modes
that are kept (`instance:node_cpu_utilisation:rate5m`).
"""

from typing import Any, Final

from infra.catalog.kubernetes.prometheus import CPU_MODES

# Interfaces of pods: CNI of AWS (eni), of GKE (gke, lxc), and others.
_PODS_INTERFACES = "^(veth|eni|cali|lxc|gke|cilium|cni|tunl|nodelocaldns).*$"
ARGUMENTS: Final = (
    # The first two are those of kube-prometheus-stack 88.5.3: a list of ours replaces them.
    "--collector.filesystem.mount-points-exclude="
    "^/(dev|proc|sys|run/containerd/.+|var/lib/docker/.+|var/lib/kubelet/.+)($|/)",
    "--collector.filesystem.fs-types-exclude="
    "^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs"
    "|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs|erofs)$",
    "--no-collector.cpu.guest",
    "--no-collector.cpufreq",
    "--no-collector.schedstat",
    "--no-collector.softnet",
    f"--collector.netclass.ignored-devices={_PODS_INTERFACES}",
    f"--collector.netdev.device-exclude={_PODS_INTERFACES}",
)
"""Arguments of the exporter."""


def relabelings() -> list[dict[str, Any]]:
    """Drop modes of processors that nothing reads: the exporter cannot leave them out."""
    kept = "|".join(CPU_MODES)
    names = {"sourceLabels": ["__name__", "mode"], "separator": ";"}
    return [
        # RE2 has no negative look-ahead: kept samples get a mark, the others of the metric are dropped.
        {
            **names,
            "regex": f"node_cpu_seconds_total;({kept})",
            "targetLabel": "__tmp_kept",
            "replacement": "yes",
        },
        {"sourceLabels": ["__name__", "__tmp_kept"], "regex": "node_cpu_seconds_total;", "action": "drop"},
        {"regex": "__tmp_kept", "action": "labeldrop"},
    ]
