"""The table: fields that every cloud has, each with a second value and where a composed stack shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.stacks.parity import rows_of_checkpoints
from tests.stacks.parity.model import Estimated, Honoured, Outcome, Refused

Row = dict[str, Outcome]
DIGEST = "@sha256:" + "a" * 64
BOTH = ("aws", "gcp")


@dataclass(frozen=True)
class Each:
    """A value of its own for each cloud."""

    aws: Any
    gcp: Any

    def of(self, cloud: str) -> Any:
        return self.aws if cloud == "aws" else self.gcp


def _of(value: Any, cloud: str) -> Any:
    return value.of(cloud) if isinstance(value, Each) else value


def both(batch: str, field: str, value: Any, seen: Any, *, at: str = "", also: Any = None) -> tuple[str, Row]:
    """A field that both clouds honour; `value`, `seen` and `also` may be an `Each`."""
    place = at or field.partition("=")[0].replace("[]", ".0")
    return field, {
        cloud: Honoured(place, _of(value, cloud), _of(seen, cloud), batch, _of(also, cloud) or {})
        for cloud in BOTH
    }


def _reserved(kind: str, number: int) -> Each:
    """A reservation of either cloud."""
    return Each(
        {"kind": kind, "id": f"cr-0aaaaaaaaaaaaaaa{number}"},
        {"kind": kind, "id": f"projects/example-ml-dev/reservations/number-{number}"},
    )


def _only_google(kind: str) -> tuple[str, Row]:
    bought = {"kind": kind}
    at, path = "layout.pools.0.purchase", "layout.pools[0].purchase.kind"
    # Queued nodes start with jobs, so GKE gets no minimum.
    seen = {"flex_start": r"NodePool a100-nodes .*flexStart: .*true", "queued": r"queuedProvisioning.*true"}
    return f"layout.pools[].purchase={kind}", {
        "aws": Refused(at, bought, path, "Capacity Block"),
        "gcp": Honoured(at, bought, seen[kind], kind),
    }


SHARED_FS = Each(
    {"capacity_gib": 9600, "throughput_mb_s_per_tib": 250, "zone": "us-east-1a"},
    {"capacity_gib": 18000, "throughput_mb_s_per_tib": 500, "zone": "us-central1-b"},
)
_EMAILS = ["other@example.com"]
_LEDGER, _EXEMPT = r"^~ Deployment ledger .*-> .*", "teams.0.budget_exempt.0."
_MEMBERS = Each(["arn:aws:iam::123456789012:role/other"], ["user:other@example.com"])

_JOB = {"kind": "job", "name": "a", "reason": "b", "approved_by": "lead@example.com", "last_day": "never"}
_STOPS = {"teams.0.monthly_usd": 9, "teams.0.over_budget": "stop", "teams.0.budget_exempt": [_JOB]}

# What the stack files say before and after a batch is changed, where its values need more than they say.
GIVEN: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "cluster": {
        "aws": {"layout.pools.1.zones": ["us-east-1a"], "layout.pools.2.zones": ["us-east-1a"]},
        "gcp": {
            "layout.pools.1.zones": ["us-central1-a"],
            "layout.pools.2.zones": ["us-central1-a"],
            "on.endpoint": "ip",
            "layout.api_access": ["198.51.100.0/24"],
            "layout.idle_minutes": 15,
        },
    },
    "fabric": {"gcp": {"layout.pools.0.machine": "a3-megagpu-8g", "on.pools": {}}},
    "block": {
        "aws": {"layout.pools.0.machine": "p5.48xlarge", "layout.pools.0.zones": ["us-east-1a"]},
        "gcp": {"layout.pools.0.machine": "a3-megagpu-8g", "on.pools": {}},
    },
    "reserved": {"gcp": {"on.pools": {}}},
    "file system": {
        "gcp": {
            "data.shared_fs": {"capacity_gib": 9000, "throughput_mb_s_per_tib": 1000, "zone": "us-central1-c"}
        }
    },
    "exempt": dict.fromkeys(BOTH, _STOPS),
    "validated pools": {cloud: {"teams.2.gpus": {}} for cloud in BOTH},
    "keep": {cloud: {"data.on_destroy": "discard"} for cloud in BOTH},
}

COMMON: dict[str, Row] = dict(
    [
        both("name", "name", "other", r"^\+ Cluster other-cluster-cluster"),
        both(
            "region",
            "region",
            Each("us-east-2", "europe-west4"),
            r'^~ \w+ \w+ region: "us-[a-z]+-?1" -> "(us-east-2|europe-west4)"',
            also=Each(
                {
                    "layout.zones": ["us-east-2a", "us-east-2b"],
                    **{f"layout.pools.{index}.zones": ["us-east-2a"] for index in range(3)},
                    "data.shared_fs.zone": "us-east-2a",
                },
                {
                    "layout.zones": ["europe-west4-a", "europe-west4-b"],
                    **{f"layout.pools.{index}.zones": ["europe-west4-a"] for index in range(3)},
                },
            ),
        ),
        both("whole", "owner", "other@example.com", r"owner: .* -> .other.?example.?com"),
        both("whole", "cost_center", "other-center", r"cost.center: .* -> .other-center"),
        both("whole", "environment", "test", r'environment: "dev" -> "test"'),
        both("whole", "data_class", "public", r'data.class: "internal" -> "public"'),
        both("whole", "expires_on", "2027-03-31", r'expires.on: "never" -> "2027-03-31"'),
        both("whole", "tags", {"other": "tag"}, r'other: nothing -> "tag"'),
        (
            "layout.kubernetes_version",
            {
                cloud: Refused("layout.kubernetes_version", "1.35", "layout.kubernetes_version", "1.36")
                for cloud in BOTH
            },
        ),
        both("cluster", "layout.api_access", ["203.0.113.0/24"], r'^~ Cluster .* -> "203.0.113.0/24"'),
        both("cluster", "layout.network_cidr", "10.64.0.0/17", r'^~ (Vpc|Subnetwork) .*-> "10\.64\.'),
        both(
            "cluster",
            "layout.zones",
            Each(["us-east-1a", "us-east-1b"], ["us-central1-a", "us-central1-c"]),
            Each(r"^- Subnet network-private-us-east-1c", r"^~ Cluster .*nodeLocations"),
        ),
        both(
            "cluster",
            "layout.idle_minutes",
            45,
            Each(r"scale-down-unneeded-time.*45m", r"^~ ComputeClass .*consolidationDelayMinutes.*-> 45"),
        ),
        both("cluster", "layout.admission", "deny", r'^~ ValidatingAdmissionPolicyBinding .*-> "Deny"'),
        both(
            "cluster",
            "layout.system_pool.machine",
            Each("m6i.2xlarge", "e2-standard-8"),
            r'-> "(m6i.2xlarge|e2-standard-8)"',
        ),
        both(
            "cluster", "layout.system_pool.min_nodes", 3, r"^~ Node(Group|Pool) cluster-system .*[mM]in.*-> 3"
        ),
        both(
            "cluster", "layout.system_pool.max_nodes", 9, r"^~ Node(Group|Pool) cluster-system .*[mM]ax.*-> 9"
        ),
        both(
            "keep",
            "layout.pools[].name",
            "chips",
            r"^\+ Node(Group|Pool) chips-nodes",
            at="layout.pools.2.name",
        ),
        both(
            "pools",
            "layout.pools[].machine",
            Each("g6.4xlarge", "g2-standard-16"),
            r'^~ (LaunchTemplate|NodePool) l4-nodes .*ype: "g.*" -> "(g6.4xlarge|g2-standard-16)"',
            at="layout.pools.1.machine",
        ),
        both("pools", "layout.pools[].purpose", "fine_tuning", r'purpose: "training" -> "fine_tuning"'),
        both("pools", "layout.pools[].min_nodes", 1, r"a100-nodes.*(minSize|MinNodeCount): 0.0 -> 1.0"),
        both("pools", "layout.pools[].max_nodes", 5, r"a100-nodes.*(maxSize|MaxNodeCount): 4.0 -> 5.0"),
        both("pools", "layout.pools[].disk_gib", 640, r"a100-nodes.* -> \"?640"),
        both(
            "no gate",
            "layout.pools[].preference",
            -1,
            r'^~ ClusterQueue .*team-research .*flavors order: \["cpu", "l4"\] -> \["l4", "cpu"\]',
            at="layout.pools.1.preference",
        ),
        both("pools", "layout.pools[].own_queue", False, r"^- LocalQueue .*team-research-a100"),
        (
            "layout.pools[].expected_utilization",
            {
                cloud: Estimated("layout.pools.0.expected_utilization", 0.9, "no price, no resource")
                for cloud in BOTH
            },
        ),
        both(
            "fabric", "layout.pools[].rdma", Each(False, True), r"smoke-a100-code data\.plan\.json\.fabric: "
        ),
        both(
            "fabric",
            "layout.pools[].zones",
            Each(["us-east-1a"], ["us-central1-a"]),
            Each(r"^\+ NodeGroup a100-nodes-us-east-1a", r'^~ NodePool a100.*nodeLocations.*"us-central1-a"'),
        ),
        both(
            "reserved",
            "layout.pools[].purchase=reserved",
            _reserved("reserved", 1),
            r'capacity: ".*" -> "reserved"',
        ),
        both(
            "reserved",
            "layout.pools[].purchase=reserved.id",
            _reserved("reserved", 1),
            r"a100-nodes.*(cr-0a+1|number-1)",
        ),
        both(
            "reserved",
            "layout.pools[].purchase=on_demand",
            {"kind": "on_demand"},
            r'l4-nodes.*capacity: "spot" -> "on-demand"',
            at="layout.pools.1.purchase",
        ),
        both(
            "reserved",
            "layout.pools[].purchase=spot",
            {"kind": "spot"},
            r'cpu-nodes.*capacity: "on-demand" -> "spot"',
            at="layout.pools.2.purchase",
        ),
        both(
            "block",
            "layout.pools[].purchase=block",
            _reserved("block", 2),
            r'capacity: ".*" -> "(capacity-)?block"',
        ),
        both(
            "block",
            "layout.pools[].purchase=block.id",
            _reserved("block", 2),
            r"a100-nodes.*(cr-0a+2|number-2)",
        ),
        _only_google("flex_start"),
        _only_google("queued"),
        *rows_of_checkpoints.ROWS,
        both("data", "data.log_retention_days", 60, r"^~ .*etention.*-> 60\.0$"),
        both("data", "data.protect", True, r"[pP]rotection.*-> true"),
        both("whole", "data.homes", False, r"^- (AwsHomes|GcpHomes) "),
        both("keep", "data.on_destroy", "keep", r"final(SnapshotIdentifier|BackupDescription): nothing -> "),
        both("keep", "data.shared_fs", Each(None, SHARED_FS.gcp), r"^[-+] (AwsLustre|GcpLustre) "),
        both(
            "file system",
            "data.shared_fs.capacity_gib",
            Each(9600, 36000),
            r'^~ (LustreFileSystem|Instance) .*apacity.*-> "?(9600|36000)',
        ),
        both(
            "file system",
            "data.shared_fs.throughput_mb_s_per_tib",
            Each(250, 500),
            r'^~ (LustreFileSystem|Instance) .*hroughput: .*-> "?(250|500)',
        ),
        both(
            "file system",
            "data.shared_fs.zone",
            Each("us-east-1a", "us-central1-b"),
            r"^~ (LustreFileSystem|Instance) storage-lustre (subnetIds|location): ",
        ),
        (
            "data.shared_fs.rdma",
            {
                "aws": Honoured(
                    "data.shared_fs.rdma",
                    True,
                    r"efaEnabled.*-> true",
                    "validated pools",
                    {"data.shared_fs.capacity_gib": 38400},
                ),
                "gcp": Refused(
                    "data.shared_fs",
                    {**SHARED_FS.gcp, "rdma": True},
                    "data.shared_fs.rdma",
                    "false.*throughput",
                ),
            },
        ),
        both(
            "work",
            "tracking.image",
            f"registry.example.com/other{DIGEST}",
            r"^~ Deployment .*-> .registry.example.com/other",
        ),
        both("work", "tracking.replicas", 3, r"^~ Deployment .*replicas: 2.0 -> 3.0"),
        both("work", "tracking.workers", 4, r'^~ Deployment .*env.*: "2" -> "4"'),
        both("work", "teams[].name", "Robotics", r"^\+ Namespace .*team-robotics", at="teams.2.name"),
        both(
            "work",
            "teams[].gpus",
            {"a100": 0, "l4": 1},
            r'^~ ClusterQueue .*team-research .*nominalQuota: "2" -> "1"',
        ),
        both("work", "teams[].weight", 5, r'team-research spec.fairSharing.weight: "2" -> "5"'),
        both(
            "work",
            "teams[].members",
            _MEMBERS,
            r"^\+ (AccessEntry members-access-other|IAMMember members-user-other)",
        ),
        both("work", "teams[].folder", "sight", r"^\+ (Aws|Gcp)TeamData team-sight", at="teams.1.folder"),
        both("work", "teams[].monthly_usd", 4321, _LEDGER + r"usd\W+4321"),
        both("work", "teams[].monthly_gpu_hours", 8765, _LEDGER + r"gpu_hours\W+8765"),
        both("work", "teams[].over_budget", "stop", r"^~ ClusterQueue .*team-research .*gpu-budget"),
        *(
            both(
                "exempt",
                f"teams[].budget_exempt[].{key}",
                value,
                rf"{_LEDGER}{key}\W+{value}",
                at=_EXEMPT + key,
            )
            for key, value in {
                "kind": "priority",
                "name": "sweep",
                "reason": "season",
                "approved_by": "boss@example.com",
                "last_day": "2026-12-24",
            }.items()
        ),
        both("work", "budget.monthly_usd", 61234, r"^~ Budget .*61234"),
        both("work", "budget.alert_emails", _EMAILS, r"^~ (Budget|NotificationChannel) .*other@example.com"),
        (
            "budget.anomaly_usd",
            {
                "aws": Honoured("budget.anomaly_usd", 500, r"^\+ AnomalySubscription", "work"),
                "gcp": Refused("budget.anomaly_usd", 500, "budget.anomaly_usd", "null.*google-cloud-project"),
            },
        ),
        both(
            "work",
            "smoke.image",
            f"registry.example.com/torch{DIGEST}",
            r"^~ Job smoke-a100-job .*-> .registry.example.com/torch",
        ),
        both("work", "smoke.nodes", 3, r"^~ Job smoke-a100-job .*completions: 2.0 -> 3.0"),
        both("work", "smoke.depth", "quick", r'depth: "full" -> "quick"'),
        both("exempt", "smoke.burn", "5m", r"burn_s: nothing -> 300", also={"smoke.depth": "burn"}),
        both("work", "smoke.min_scaling_efficiency", 0.61, r"min_scaling_efficiency: 0.8 -> 0.61"),
        both("work", "smoke.timeout_s", 1111, r"timeout_s: 900 -> 1111"),
        both("work", "smoke.queue_timeout_s", 3333, r'^~ Job smoke-a100-watch .*-> "3333"'),
        both("work", "smoke.drain", True, r'smoke--a100 spec.preemption.reclaimWithinCohort: .* -> "Any"'),
        both("work", "smoke.schedule", "7 3 * * 2", r'^~ CronJob .*-> "7 3 \* \* 2"'),
        both("work", "smoke.accept", ["PASS", "INCONCLUSIVE"], r'accept\[1\]: nothing -> "INCONCLUSIVE"'),
        both("validated pools", "smoke.pools", ["l4"], r"^\+ Job smoke-l4-job"),
        both("no gate", "smoke.enabled", False, r"^- SmokeHome smoke$", also={"smoke.schedule": None}),
    ]
)
