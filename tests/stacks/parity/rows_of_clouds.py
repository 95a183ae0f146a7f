"""The table, continued: what only one cloud asks (`on`)."""

from collections.abc import Mapping
from typing import Any

from tests.stacks.parity.model import Honoured, Outcome, Refused
from tests.stacks.stack_files import LOAD_BALANCER

_OIDC = "on.load_balancer.oidc"
_ACM = "arn:aws:acm:us-east-1:123456789012:certificate/11111111-2222-3333-4444-555555555555"
_SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:sso/other-AbCd12"
_RULE = {
    "condition": "AcceleratedHardwareReady",
    "reason": "NvidiaXID79Error",
    "after_minutes": 5,
    "action": "Reboot",
}
_KEY = "arn:aws:kms:us-east-1:123456789012:key/22222222-3333-4444-5555-666666666666"
_DEPLOYS = "arn:aws:iam::123456789012:role/deploys"
_REPAIR = "on.repair.rules.0"
_L4 = "on.pools.l4"
# A pool with shared GPUs has a queue of its own, and guarantees in shares.
_APART = {
    "layout.pools.1.own_queue": True,
    **{f"teams.{team}.gpus": {"a100": 8} for team in range(2)},
    "teams.2.gpus": {},
}
_OF_A100 = {"layout.pools.1.machine": "p4d.24xlarge", "layout.pools.1.zones": ["us-east-1b"]}
_PCS = {"image_id": "ami-0123456789abcdef0"}
_IMAGE = f"ghcr.io/slinkyproject/slurm@sha256:{'a' * 64}"
_IMAGES = dict.fromkeys(
    ("slurmctld", "slurmdbd", "slurmrestd", "slurmd", "login", "mariadb", "shell", "python"), _IMAGE
)
_DIRECTORY = {"uri": "ldaps://ldap.example.com", "base": "dc=example"}
_SLINKY: dict[str, object] = {"kubernetes_version": "1.36", "images": _IMAGES}
_SLINKY_PARTS: dict[str, dict[str, object]] = {
    "": {},
    ".kubernetes_version": {},
    ".api_access": {"api_access": ["10.0.0.0/8"]},
    **{f".images.{name}": {} for name in _IMAGES},
    ".directory": {"directory": _DIRECTORY},
    ".directory.uri": {"directory": _DIRECTORY},
    ".directory.base": {"directory": _DIRECTORY},
    ".accounting_gib": {"accounting_gib": 100},
    ".container": {"container": "/fsx/smoke.sqsh"},
}
_DIRECTOR = {"cluster_id": "research"}

GIVEN: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "currency": {"gcp": {"on.billing_currency": {"code": "EUR", "per_usd": 0.5}}},
    "way in": {"aws": {"on.load_balancer": LOAD_BALANCER, **_OF_A100}},
    "EFA driver": {
        "aws": {
            "layout.pools.0.min_nodes": 1,
            **_OF_A100,
            **_APART,
            "on.pools": {"l4": {"sharing": {"kind": "mig", "partition": "1g.5gb"}}},
        }
    },
    "repair": {
        "aws": {
            "on.repair.rules": [_RULE],
            "on.assume_role": {"role_arn": _DEPLOYS},
            "on.pools": {"l4": {"sharing": {"kind": "time_sharing", "clients": 3}}},
            **_APART,
        }
    },
    "networks": {
        "gcp": {
            "layout.pools.0.machine": "a3-ultragpu-8g",
            "layout.pools.0.zones": ["us-central1-b"],
            "layout.pools.0.rdma": True,
            "on.pools": {},
        }
    },
    "classic": {
        "gcp": {
            "layout.pools.0.machine": "a3-ultragpu-8g",
            "layout.pools.0.zones": ["us-central1-b"],
            "layout.pools.0.rdma": True,
            "on.pools": {},
            "on.accelerator_networks": "classic",
        }
    },
    "queued": {"gcp": {**_APART, "on.pools": {"l4": {"sharing": {"kind": "time_sharing", "clients": 2}}}}},
    "flex_start": {
        "gcp": {
            "layout.pools.1.machine": "a2-highgpu-1g",
            "layout.pools.1.zones": ["us-central1-a"],
            "on.pools": {"l4": {"sharing": {"kind": "mig", "partition": "1g.5gb"}}},
            **_APART,
        }
    },
    "whole": {"gcp": {"layout.pools.1.machine": "a2-highgpu-1g", "layout.pools.1.zones": ["us-central1-a"]}},
}


def _row(
    batch: str, field: str, value: Any, seen: str, *, at: str = "", also: Any = None
) -> tuple[str, Outcome]:
    return field, Honoured(
        at or field.replace("[]", ".0").replace("{}", ".l4"), value, seen, batch, also or {}
    )


def _demanded(path: str) -> Outcome:
    """A part that a cluster has: without it nothing is deployed."""
    return Refused(path, None, path, "^Add it: ")


AWS: dict[str, Outcome] = dict(
    [
        *((f"on.{name}", _demanded(f"on.{name}")) for name in ("database", "repair")),
        ("on.pcs", Refused("on.pcs", _PCS, "on.pcs", "^Leave it out")),
        *(
            (f"on.pcs.{name}", Refused("on.pcs", {**_PCS, name: value}, "on.pcs", "^Leave it out"))
            for name, value in {**_PCS, "size": "SMALL", "container": "/fsx/smoke.sqsh"}.items()
        ),
        *(
            (f"on.slinky{name}", Refused("on.slinky", {**_SLINKY, **more}, "on.slinky", "^Leave it out"))
            for name, more in _SLINKY_PARTS.items()
        ),
        _row("on", "on.account_id", "210987654321", r"^~ aws aws allowedAccountIds: .*-> .*210987654321"),
        _row(
            "on",
            "on.assume_role",
            {"role_arn": "arn:aws:iam::210987654321:role/deploys"},
            r"^~ aws aws assumeRoles.*: .*-> .*210987654321:role/deploys",
        ),
        _row("repair", "on.assume_role.role_arn", f"{_DEPLOYS}-all", r"^~ aws aws assumeRoles.*deploys-all"),
        _row("repair", "on.assume_role.external_id", "ext-1", r"^~ aws aws assumeRoles.*ext-1"),
        _row("on", "on.admin_arns", ["arn:aws:iam::123456789012:role/others"], r"^\+ AccessEntry .*others"),
        _row("on", "on.nat", "per_zone", r"^\+ NatGateway network-nat-us-east-1c"),
        _row("on", "on.endpoints", ["sts"], r"^- VpcEndpoint network-ecr-api"),
        _row("on", "on.database.min_acu", 1, r"minCapacity: 0.5 -> 1"),
        _row("on", "on.database.max_acu", 8, r"maxCapacity: 4.0 -> 8"),
        _row(
            "on",
            "on.addon_versions",
            {"coredns": "v1.12.0-eksbuild.9"},
            r"^~ Addon cluster-coredns .*v1.12.0-eksbuild.9",
        ),
        _row(
            "on",
            "on.permissions_boundary",
            "arn:aws:iam::210987654321:policy/boundary",
            r"^~ Role cluster-node-role .*policy/boundary",
        ),
        _row("disk key", "on.disk_key_arn", _KEY, r"^~ LaunchTemplate .*kmsKeyId: .*22222222-3333"),
        _row("on", "on.node_image", "1.36.1-20260101", r'^~ NodeGroup .*-> "1.36.1-20260101"'),
        _row("EFA driver", "on.efa_driver", "dra", r"^~ Job smoke-a100-job .*resourceClaims"),
        _row("whole", "on.load_balancer", LOAD_BALANCER, r"^\+ LoadBalancer "),
        _row("way in", "on.load_balancer.host", "ml.example.com", r'-> "https://ml.example.com"'),
        _row("way in", "on.load_balancer.certificate_arn", _ACM, r"^~ Listener .*11111111-2222"),
        _row(
            "way in",
            "on.load_balancer.allowed_cidrs",
            ["10.30.0.0/16"],
            r"^\+ SecurityGroupIngressRule mlflow-from-10.30.0.0-16",
        ),
        _row(
            "way in", f"{_OIDC}.issuer", "https://sso.example.com/other", r"issuer: .*sso.example.com/other"
        ),
        _row(
            "way in",
            f"{_OIDC}.authorization_endpoint",
            "https://sso.example.com/in",
            r"authorizationEndpoint: .*/in",
        ),
        _row(
            "way in", f"{_OIDC}.token_endpoint", "https://sso.example.com/tokens", r"tokenEndpoint: .*/tokens"
        ),
        _row(
            "way in",
            f"{_OIDC}.user_info_endpoint",
            "https://sso.example.com/who",
            r"userInfoEndpoint: .*/who",
        ),
        _row("way in", f"{_OIDC}.client_id", "other-client", r"clientId: .*other-client"),
        _row("way in", f"{_OIDC}.client_secret_arn", _SECRET, r"clientSecret.*-> .*other-AbCd12"),
        _row(
            "on",
            "on.pools{}.sharing=time_sharing",
            {"kind": "time_sharing", "clients": 2},
            r"nvidia.com/device-plugin.config: nothing -> .*turns-2",
            at=f"{_L4}.sharing",
            also=_APART,
        ),
        _row(
            "repair",
            "on.pools{}.sharing=time_sharing.clients",
            {"kind": "time_sharing", "clients": 4},
            r"nvidia.com/device-plugin.config: .*turns-3.* -> .*turns-4",
            at=f"{_L4}.sharing",
        ),
        _row(
            "way in",
            "on.pools{}.sharing=mig",
            {"kind": "mig", "partition": "1g.5gb"},
            r"nvidia.com/device-plugin.config: nothing -> .*partitions",
            at=f"{_L4}.sharing",
            also=_APART,
        ),
        _row(
            "EFA driver",
            "on.pools{}.sharing=mig.partition",
            {"kind": "mig", "partition": "3g.20gb"},
            r'^~ Tag l4-us-east-1b-offers-gpu .*value: "56" -> "16"',
            at=f"{_L4}.sharing",
        ),
        _row("repair", "teams[].shares", {"l4": 6}, r'^~ ClusterQueue .*team-research--l4 .*-> "6"'),
        _row("repair", "on.repair.at_once", 3, r"maxParallelNodesRepaired\w*: .* -> 3"),
        _row("repair", "on.repair.stop_above", 5, r"maxUnhealthyNode\w*: .* -> 5"),
        _row(
            "repair",
            "on.repair.rules[].condition",
            "KernelReady",
            r'-> "KernelReady"',
            at=f"{_REPAIR}.condition",
        ),
        _row("repair", "on.repair.rules[].reason", "OtherFault", r'-> "OtherFault"', at=f"{_REPAIR}.reason"),
        _row(
            "repair",
            "on.repair.rules[].after_minutes",
            17,
            r"minRepairWaitTimeMins: 5.0 -> 17.0",
            at=f"{_REPAIR}.after_minutes",
        ),
        _row("repair", "on.repair.rules[].action", "NoAction", r'-> "NoAction"', at=f"{_REPAIR}.action"),
    ]
)
_CLIENT = {"client_id": "1-a.apps.googleusercontent.com", "client_secret": "projects/ml/secrets/s"}
GCP: dict[str, Outcome] = dict(
    [
        ("on.database", _demanded("on.database")),
        ("on.director", Refused("on.director", _DIRECTOR, "on.director", "^Leave it out")),
        *(
            (
                f"on.director.{name}",
                Refused("on.director", {**_DIRECTOR, name: value}, "on.director", "^Leave it out"),
            )
            for name, value in {**_DIRECTOR, "container": "/home/smoke.sqsh"}.items()
        ),
        ("on.maintenance", _demanded("on.maintenance")),
        _row("on", "on.project", "other-ml-dev", r'^~ gcp gcp project: .* -> "other-ml-dev"'),
        _row("on", "on.billing_account", "0A0A0A-0B0B0B-0C0C0C", r"^~ Budget .*0A0A0A-0B0B0B-0C0C0C"),
        _row(
            "on",
            "on.impersonate",
            "deploys@other-ml-dev.iam.gserviceaccount.com",
            r"^~ gcp gcp impersonateServiceAccount: .*deploys@other",
        ),
        _row("on", "on.billing_currency", {"code": "EUR", "per_usd": 0.5}, r'currencyCode: "USD" -> "EUR"'),
        _row("currency", "on.billing_currency.code", "CHF", r'currencyCode: "EUR" -> "CHF"'),
        _row("currency", "on.billing_currency.per_usd", 2.0, r'units: .* -> "40000"'),
        _row("on", "on.admins", ["user:others@example.com"], r"^\+ IAMMember cluster-admin-others"),
        _row("on", "on.channel", "rapid", r'channel: "REGULAR" -> "RAPID"'),
        _row("on", "on.maintenance.days", ["MO", "TU", "WE"], r"BYDAY=MO,TU,WE"),
        _row("on", "on.maintenance.start", "04:30", r"startTime: .*T04:30"),
        _row("on", "on.maintenance.hours", 7, r"endTime: .*T11:"),
        _row("on", "on.maintenance.hold_nodes", False, r"maintenanceExclusions.* -> nothing"),
        _row("on", "on.pods_per_node", 16, r"defaultMaxPodsPerNode: .* -> 16"),
        _row("on", "on.dataset_cache", True, r"^\+ AnywhereCache "),
        _row("on", "on.dataset_claims", True, r"^\+ Bucket storage-shared-datasets"),
        _row("on", "on.rapid_checkpoints", "us-central1-a", r"^\+ Bucket storage-rapid"),
        _row("on", "on.homes_gib", 200, r"capacityGb: 100\.0 -> 200\.0"),
        *(
            (f"on.login{part}", Refused("on.login", _CLIENT, "on.login", "^Leave it out."))
            for part in ("", ".client_id", ".client_secret")
        ),
        _row("on", "on.checkpoint_addon", True, r"highScaleCheckpointing.*-> true"),
        _row("on", "on.readiness_addon", True, r"nodeReadinessConfig.*-> true"),
        _row("on", "on.database.tier", "db-custom-4-15360", r'-> "db-custom-4-15360"'),
        _row("on", "on.database.availability", "regional", r'availabilityType: "ZONAL" -> "REGIONAL"'),
        _row("on", "on.database.disk_gib", 77, r"diskSize: .* -> 77"),
        _row(
            "whole",
            "on.endpoint",
            "ip",
            r"ipEndpointsConfig.enabled: false -> true",
            also={"layout.api_access": ["198.51.100.0/24"]},
        ),
        _row("on", "on.pools{}.driver", "latest", r"gpuDriverVersion: .*LATEST"),
        _row("on", "on.pools{}.local_ssds", 1, r"l4-nodes .*localSsdCount"),
        _row(
            "on",
            "on.pools{}.image_cache",
            "projects/example-ml-dev/global/images/torch",
            r"l4-nodes .*global/images/torch",
        ),
        _row("on", "on.pools{}.compact", False, r"a100-nodes .*placementPolicy", at="on.pools.a100.compact"),
        _row(
            "cluster",
            "on.pools{}.sharing=time_sharing",
            {"kind": "time_sharing", "clients": 3},
            r"gpuSharingStrategy.*TIME_SHARING",
            at=f"{_L4}.sharing",
            also=_APART,
        ),
        _row(
            "queued",
            "on.pools{}.sharing=time_sharing.clients",
            {"kind": "time_sharing", "clients": 4},
            r"maxSharedClientsPerGpu: .* -> 4",
            at=f"{_L4}.sharing",
        ),
        _row(
            "whole",
            "on.pools{}.sharing=mig",
            {"kind": "mig", "partition": "2g.10gb"},
            r'gpuPartitionSize: nothing -> "2g.10gb"',
            at=f"{_L4}.sharing",
            also=_APART,
        ),
        _row(
            "flex_start",
            "on.pools{}.sharing=mig.partition",
            {"kind": "mig", "partition": "3g.20gb"},
            r'gpuPartitionSize: .* -> "3g.20gb"',
            at=f"{_L4}.sharing",
        ),
        _row("queued", "teams[].shares", {"l4": 6}, r'^~ ClusterQueue .*team-research--l4 .*-> "6"'),
        _row("networks", "on.accelerator_networks", "classic", r"^\+ Network rdma-b-rdma"),
        _row("classic", "on.first_rdma_zone", "us-central1-a", r"^\+ Network rdma-b-0"),
    ]
)
