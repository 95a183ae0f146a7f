"""Invalid and valid specs of Google Cloud by name."""

from typing import Any

from tests.infra.stackspec.stack_files import TRAINING

_RESERVATION = "projects/research-1/reservations/h100"
_LUSTRE = {"capacity_gib": 9000, "throughput_mb_s_per_tib": 1000, "zone": "us-central1-a"}
_FIRST: tuple[str | int, ...] = ("layout", "pools", 0)

BROKEN: dict[str, tuple[tuple[str | int, ...], Any, str, str]] = {
    "a zone of another region": (
        ("layout", "zones"),
        ["us-central1-a", "us-east1-b"],
        "layout.zones[1]",
        "zone-not-in-region",
    ),
    "a machine in a zone that lacks it": (
        (*_FIRST, "machine"),
        "a3-ultragpu-8g",
        "layout.pools[0].zones[0]",
        "machine-not-in-zone",
    ),
    "a machine in no zone of the region": (
        (*_FIRST, "machine"),
        "a4x-maxgpu-4g",
        "layout.pools[0].machine",
        "unknown-gpu-type",
    ),
    "a type of another cloud": (
        (*_FIRST, "machine"),
        "p5.48xlarge",
        "layout.pools[0].machine",
        "unknown-gpu-type",
    ),
    "rdma without a fabric": (
        (*_FIRST, "machine"),
        "a2-highgpu-8g",
        "layout.pools[0].rdma",
        "machine-without-gpu-network",
    ),
    "rdma over several zones": (
        (*_FIRST, "zones"),
        ["us-central1-a", "us-central1-b"],
        "layout.pools[0].zones",
        "rdma-needs-one-zone",
    ),
    "a public range": (
        ("layout", "network_cidr"),
        "192.169.0.0/16",
        "layout.network_cidr",
        "network-not-private",
    ),
    "the range of Docker": (
        ("layout", "network_cidr"),
        "172.17.0.0/16",
        "layout.network_cidr",
        "network-range-in-use",
    ),
    "a small range": (
        ("layout", "network_cidr"),
        "10.0.0.0/24",
        "layout.network_cidr",
        "network-size-not-supported",
    ),
    "pools beyond the range": (
        ("layout", "pools", 2, "max_nodes"),
        600,
        "layout.network_cidr",
        "network-too-small",
    ),
    "pods beyond the range": (("on", "pods_per_node"), 4, "on.pods_per_node", "greater-than-equal"),
    "a pool beyond GKE": (
        ("layout", "pools", 2, "max_nodes"),
        1001,
        "layout.pools[2].max_nodes",
        "value-not-accepted",
    ),
    "ranges for an API server without an address": (
        ("layout", "api_access"),
        ["203.0.113.0/24"],
        "layout.api_access",
        "api-ranges-without-address",
    ),
    "an API server that admits no range": (
        ("on", "endpoint"),
        "ip",
        "layout.api_access",
        "api-without-ranges",
    ),
    "a Kubernetes that GKE has not": (
        ("layout", "kubernetes_version"),
        "1.19",
        "layout.kubernetes_version",
        "kubernetes-version-not-offered",
    ),
    "a Kubernetes that completes no jobs": (
        ("layout", "kubernetes_version"),
        "1.35",
        "layout.kubernetes_version",
        "kubernetes-version-without-mutations",
    ),
    "a Kubernetes of another channel": (
        ("layout", "kubernetes_version"),
        "1.31",
        "layout.kubernetes_version",
        "version-not-in-channel",
    ),
    "too little time for upgrades": (
        ("on", "maintenance", "hours"),
        4,
        "on.maintenance.hours",
        "maintenance-too-short",
    ),
    "a day twice": (("on", "maintenance", "days"), ["SA", "SA"], "on.maintenance.days", "day-named-twice"),
    "a pool that does not exist": (("on", "pools"), {"b200": {}}, "on.pools.b200", "unknown-pool"),
    "sharing in a training pool": (
        ("on", "pools"),
        {"h100": {"sharing": {"kind": "time_sharing", "clients": 2}}},
        "on.pools.h100.sharing",
        "sharing-not-interactive",
    ),
    "sharing without GPUs": (
        ("on", "pools"),
        {"cpu": {"sharing": {"kind": "time_sharing", "clients": 2}}},
        "on.pools.cpu.sharing",
        "sharing-without-gpus",
    ),
    "shares as overflow of whole GPUs": (
        ("on", "pools"),
        {"a100": {"sharing": {"kind": "mig", "partition": "1g.5gb"}}},
        "layout.pools[1].own_queue",
        "sharing-without-own-queue",
    ),
    "more shares than pods on a node": (
        ("on", "pools"),
        {"h100": {"sharing": {"kind": "time_sharing", "clients": 14}}},
        "on.pools.h100.sharing",
        "more-shares-than-pods",
    ),
    "shares of whole": (("teams", 0, "shares"), {"h100": 1}, "teams[0].shares.h100", "shares-of-whole-gpus"),
    "shares of CPUs": (("teams", 0, "shares"), {"cpu": 1}, "teams[0].shares.cpu", "pool-without-gpus"),
    "shares of no pool": (("teams", 0, "shares"), {"b200": 1}, "teams[0].shares.b200", "unknown-pool"),
    "a partition of another GPU": (
        ("on", "pools"),
        {"a100": {"sharing": {"kind": "mig", "partition": "1g.10gb"}}},
        "on.pools.a100.sharing.partition",
        "unknown-partition",
    ),
    "local disks that the type has not": (
        ("on", "pools"),
        {"h100": {"local_ssds": 8}},
        "on.pools.h100.local_ssds",
        "local-ssd-count",
    ),
    "local disks of a CPU type": (
        ("on", "pools"),
        {"cpu": {"local_ssds": 1}},
        "on.pools.cpu.local_ssds",
        "machine-without-local-ssds",
    ),
    "a reservation by its short name": (
        (*_FIRST, "purchase"),
        {"kind": "reserved", "id": "h100"},
        "layout.pools[0].purchase.id",
        "invalid-reservation-name",
    ),
    "a rack whose NVLink between nodes is not set up": (
        _FIRST,
        {**TRAINING, "machine": "a4x-highgpu-4g", "purchase": {"kind": "reserved", "id": _RESERVATION}},
        "layout.pools[0].machine",
        "machine-not-supported",
    ),
    "a machine that is not sold on demand": (
        _FIRST,
        {
            **TRAINING,
            "machine": "a4-highgpu-8g",
            "zones": ["us-central1-b"],
            "purchase": {"kind": "on_demand"},
        },
        "layout.pools[0].purchase.kind",
        "purchase-not-offered",
    ),
    "a part of a machine that cannot be reserved": (
        (*_FIRST, "machine"),
        "a3-highgpu-1g",
        "layout.pools[0].purchase.kind",
        "purchase-not-offered",
    ),
    "runs of several nodes on nodes that start one by one": (
        (*_FIRST, "purchase"),
        {"kind": "flex_start"},
        "layout.pools[0].purchase.kind",
        "flex-start-not-for-gangs",
    ),
    "a reservation of another cloud": (
        (*_FIRST, "purchase"),
        {"kind": "reserved", "id": "cr-0123456789abcdef0"},
        "layout.pools[0].purchase.id",
        "invalid-reservation-name",
    ),
    "reserved nodes without GPUs": (
        ("layout", "pools", 2, "purchase"),
        {"kind": "reserved", "id": _RESERVATION},
        "layout.pools[2].purchase.kind",
        "purchase-needs-gpus",
    ),
    "RDMA without GPUs": (("layout", "pools", 2, "rdma"), True, "layout.pools[2].rdma", "rdma-without-gpus"),
    "a CPU type that its agents fill": (
        ("layout", "pools", 2, "machine"),
        "n2-standard-2",
        "layout.pools[2].machine",
        "cpu-type-not-for-jobs",
    ),
    "an unknown type for the system": (
        ("layout", "system_pool", "machine"),
        "m6i.xlarge",
        "layout.system_pool.machine",
        "unknown-cpu-type",
    ),
    "GPUs of a pool without": (("teams", 0, "gpus"), {"cpu": 1}, "teams[0].gpus.cpu", "pool-without-gpus"),
    "quotas beyond the pool": (
        ("teams", 0, "gpus"),
        {"h100": 17},
        "layout.pools[0].max_nodes",
        "guarantees-exceed-pool",
    ),
    "a validation without GPUs": (("smoke", "pools"), ["cpu"], "smoke.pools", "pool-without-gpus"),
    "an administrator as member": (
        ("teams", 0, "members"),
        ["group:Platform@example.com"],
        "teams[0].members[0]",
        "member-is-administrator",
    ),
    "a service account as member": (
        ("teams", 0, "members"),
        ["serviceAccount:x@research-1.iam.gserviceaccount.com"],
        "teams[0].members[0]",
        "invalid-member",
    ),
    "a member of another cloud": (
        ("teams", 0, "members"),
        ["arn:aws:iam::123456789012:user/ada"],
        "teams[0].members[0]",
        "invalid-member",
    ),
    "a member of two teams": (
        ("teams",),
        [
            {"name": "A", "gpus": {}, "members": ["user:ada@example.com"]},
            {"name": "B", "gpus": {}, "members": ["user:ada@example.com"]},
        ],
        "teams[1].members[0]",
        "member-of-two-teams",
    ),
    "an administrator twice": (
        ("on", "admins"),
        ["group:platform@example.com", "group:Platform@example.com"],
        "on.admins",
        "principal-named-twice",
    ),
    "a file system between two sizes": (
        ("data", "shared_fs"),
        {**_LUSTRE, "capacity_gib": 10000},
        "data.shared_fs.capacity_gib",
        "lustre-size-not-offered",
    ),
    "a file system of no tier": (
        ("data", "shared_fs"),
        {**_LUSTRE, "throughput_mb_s_per_tib": 200},
        "data.shared_fs.throughput_mb_s_per_tib",
        "lustre-throughput-not-offered",
    ),
    "a file system over RDMA": (
        ("data", "shared_fs"),
        {**_LUSTRE, "rdma": True},
        "data.shared_fs.rdma",
        "lustre-without-rdma",
    ),
    "a Rapid bucket where no node is": (
        ("on", "rapid_checkpoints"),
        "us-central1-f",
        "on.rapid_checkpoints",
        "zone-not-of-network",
    ),
    "a database with an odd number of processors": (
        ("on", "database", "tier"),
        "db-custom-3-7680",
        "on.database.tier",
        "database-processors-not-offered",
    ),
    "a report of anomalies": (("budget", "anomaly_usd"), 500, "budget.anomaly_usd", "anomalies-not-reported"),
    "too many addresses": (
        ("budget", "alert_emails"),
        [f"{n}@example.com" for n in range(6)],
        "budget.alert_emails",
        "value-not-accepted",
    ),
    "too many addresses of a team": (
        ("teams", 0, "alert_emails"),
        [f"{n}@example.com" for n in range(17)],
        "teams[0].alert_emails",
        "value-not-accepted",
    ),
    "a key of another cloud": (("on", "account_id"), "123456789012", "on.account_id", "key-of-other-choice"),
}

ACCEPTED: dict[str, dict[tuple[str | int, ...], Any]] = {
    "a reservation": {(*_FIRST, "purchase"): {"kind": "reserved", "id": _RESERVATION}},
    "a block of a reservation": {
        (*_FIRST, "purchase"): {"kind": "reserved", "id": f"{_RESERVATION}/reservationBlocks/block-1"}
    },
    "a reservation in calendar mode": {(*_FIRST, "purchase"): {"kind": "block", "id": _RESERVATION}},
    "a block of a reservation in calendar mode": {
        (*_FIRST, "purchase"): {"kind": "block", "id": f"{_RESERVATION}/reservationBlocks/block-1"}
    },
    "queued nodes": {(*_FIRST, "purchase"): {"kind": "queued"}},
    "nodes placed closely": {
        (*_FIRST, "rdma"): False,
        (*_FIRST, "machine"): "a2-highgpu-8g",
        ("on", "pools"): {"h100": {"compact": True, "local_ssds": 8}},
    },
    "nodes with GPUDirect over TCP placed closely": {
        (*_FIRST, "machine"): "a3-megagpu-8g",
        (*_FIRST, "purchase"): {"kind": "spot"},
        ("on", "pools"): {"h100": {"compact": True}},
    },
    "partitions": {
        ("on", "pools"): {"a100": {"sharing": {"kind": "mig", "partition": "1g.5gb"}}},
        ("layout", "pools", 1, "own_queue"): True,
        ("teams", 0, "shares"): {"a100": 28},  # seven of each of four GPUs
    },
    "turns": {
        ("on", "pools"): {"a100": {"sharing": {"kind": "time_sharing", "clients": 3}}},
        ("layout", "pools", 1, "own_queue"): True,
        ("teams", 0, "shares"): {"a100": 12},
    },
    "an address of the API server": {("on", "endpoint"): "ip", ("layout", "api_access"): ["203.0.113.0/24"]},
    "the channel with the longest support": {("on", "channel"): "extended"},
    "a file system": {("data", "shared_fs"): _LUSTRE},
    "networks by GKE": {
        (*_FIRST, "machine"): "a3-ultragpu-8g",
        (*_FIRST, "purchase"): {"kind": "spot"},
        (*_FIRST, "zones"): ["us-central1-b"],
    },
    "a Rapid bucket": {("on", "rapid_checkpoints"): "us-central1-a"},
    "one zone": {("layout", "zones"): ["us-central1-a"], ("layout", "pools", 1, "zones"): ["us-central1-a"]},
}
