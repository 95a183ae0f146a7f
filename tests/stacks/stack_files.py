"""Random stack files of the medium layout on AWS: mostly sensible, with a few values that may be anything."""

from typing import Any

from hypothesis import strategies as st

from infra.catalog.aws import facts
from tests.stacks.stack_files_both import WILD as BOTH
from tests.stacks.stack_files_windows import WILD as WINDOWS
from tests.stacks.stack_files_windows import windowed

Values = dict[str, Any]
DIGEST = "@sha256:" + "a" * 64
REGIONS = ("us-east-1", "us-east-2", "eu-central-1", "ap-northeast-2")
RESERVATION = "cr-0123456789abcdef0"
LOAD_BALANCER: Values = {
    "host": "mlflow.example.com",
    "certificate_arn": "arn:aws:acm:us-east-1:123456789012:certificate/0f0e0d0c-0b0a-0908-0706-050403020100",
    "allowed_cidrs": ["10.20.0.0/16", "192.168.7.0/24"],
    "oidc": {
        "issuer": "https://id.example.com/realms/ml",
        "authorization_endpoint": "https://id.example.com/realms/ml/authorize",
        "token_endpoint": "https://id.example.com/realms/ml/token",
        "user_info_endpoint": "https://id.example.com/realms/ml/userinfo",
        "client_id": "mlflow",
        "client_secret_arn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:sso/mlflow-AbCd12",
    },
}

# What a team may use in a month.
BUDGETS: tuple[Values, ...] = (
    {},
    {"monthly_usd": 0, "over_budget": "stop"},
    {"monthly_usd": 9000.5, "monthly_gpu_hours": 1200},
    {
        "monthly_gpu_hours": 40,
        "over_budget": "stop",
        "budget_exempt": [
            {
                "kind": "priority",
                "name": "production",
                "reason": "what customers wait for",
                "approved_by": "lead@example.com",
                "last_day": "never",
            }
        ],
    },
)
# Budgets of a team, good ones and bad ones; the same on every cloud.
TEAM_BUDGETS: dict[str, st.SearchStrategy[Any]] = {
    "teams.0.monthly_usd": st.sampled_from([None, 0, 12_000, -1, float("inf")]),
    "teams.0.monthly_gpu_hours": st.sampled_from([None, 0, 1500.5, -1]),
    "teams.0.over_budget": st.sampled_from(["warn", "stop", "kill"]),
    "teams.0.budget_exempt": st.lists(
        st.fixed_dictionaries(
            {
                "kind": st.sampled_from(["priority", "job", "person"]),
                "name": st.sampled_from(["production", "urgent", ""]),
                "reason": st.just("deadline"),
                "approved_by": st.sampled_from(["lead@example.com", "lead"]),
                "last_day": st.sampled_from(["2026-12-31", "2026-02-30", "never"]),
            }
        ),
        max_size=2,
    ),
}
# Values at paths such as `teams.0.weight`, good ones and bad ones.
WILD: dict[str, st.SearchStrategy[Any]] = {
    **TEAM_BUDGETS,
    "cost_center": st.sampled_from(["research", "", "x" * 65]),
    "environment": st.sampled_from(["dev", "prod", "Production"]),
    "expires_on": st.sampled_from(["never", "2027-03-31", "2027-02-30", "soon"]),
    "tags": st.sampled_from([{}, {"project": "a"}, {"owner": "another team"}]),
    "layout.kubernetes_version": st.sampled_from(["1.35", "1.36", "1.37", "1.19", "1.x"]),
    "layout.api_access": st.lists(
        st.sampled_from(["203.0.113.0/24", "198.51.100.7/32", "0.0.0.0/0", "::/0", "10.0.0.1/8"]), max_size=2
    ),
    "layout.network_cidr": st.builds(
        "{}/{}".format,
        st.sampled_from(
            ["10.0.0.0", "172.16.0.0", "172.17.0.0", "100.64.0.0", "127.0.0.0", "10.0.0.1", "ten"]
        ),
        st.integers(14, 22),
    ),
    "layout.zones": st.lists(st.sampled_from(["us-east-1a", "us-east-1b", "eu-west-1a"]), max_size=3),
    "layout.idle_minutes": st.integers(0, 300),
    "layout.system_pool.machine": st.sampled_from(["m6i.xlarge", "m7g.large", "t3.nano", "g5.xlarge", "m6i"]),
    "layout.system_pool.min_nodes": st.integers(0, 8),
    "layout.system_pool.max_nodes": st.sampled_from([0, 1, 2, 6, 450, 451]),
    "layout.pools.0.name": st.sampled_from(["p0", "p1", "gpu-pool", "a" * 33, "Pool"]),
    "layout.pools.0.machine": st.sampled_from(
        ["p5.48xlarge", "g6.2xlarge", "g4dn.metal", "m6i.xlarge", "p9"]
    ),
    "layout.pools.0.purchase": st.sampled_from(
        [
            {"kind": "block", "id": RESERVATION},
            {"kind": "reserved", "id": "r-1"},
            {"kind": "block"},
            {"kind": "x"},
        ]
    ),
    **WINDOWS,
    "layout.pools.0.rdma": st.booleans(),
    "layout.pools.0.zones": st.sampled_from([[], ["us-east-1a"], ["us-east-1a", "us-east-1a"], ["nowhere"]]),
    "layout.pools.0.min_nodes": st.integers(-1, 12),
    "layout.pools.0.max_nodes": st.sampled_from([0, 1, 64, 450, 451]),
    "layout.pools.0.disk_gib": st.sampled_from([1, 100, 16384, 65537]),
    "on.admin_arns": st.lists(
        st.sampled_from(
            [
                "arn:aws:iam::123456789012:role/platform",
                "arn:aws:iam::123456789012:user/me",
                "arn:aws:sts::123456789012:assumed-role/platform/me",
                "me",
            ]
        ),
        max_size=2,
    ),
    "teams.0.members": st.lists(
        st.sampled_from(
            [
                "arn:aws:iam::123456789012:role/platform",
                "arn:aws:iam::123456789012:role/research",
                "arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com/eu-west-2/AWSReservedSSO_Ml_1",
                "arn:aws:iam::123456789012:role/AWSReservedSSO_Ml_1",
                "ada",
            ]
        ),
        max_size=2,
    ),
    "teams.0.folder": st.sampled_from(["research", "t1", "Old"]),
    "on.efa_driver": st.sampled_from(["device_plugin", "dra", "none"]),
    "on.endpoints": st.lists(st.sampled_from(["sts", "ecr.api", "fsx", "ecr.drk"]), max_size=3),
    "on.load_balancer": st.sampled_from(
        [
            None,
            LOAD_BALANCER,
            {**LOAD_BALANCER, "allowed_cidrs": ["0.0.0.0/0"]},
            {**LOAD_BALANCER, "host": "mlflow"},
            {**LOAD_BALANCER, "certificate_arn": "arn:aws:acm:eu-west-1"},
        ]
    ),
    "on.database": st.fixed_dictionaries(
        {
            "min_acu": st.sampled_from([0, 0.5, 0.7, 4, 256]),
            "max_acu": st.sampled_from([0, 0.5, 1, 4, 256, 300]),
        }
    ),
    "data.log_retention_days": st.sampled_from([0, 1, 90, 100, 3653]),
    **BOTH,
    "data.shared_fs": st.sampled_from(
        [
            None,
            {"capacity_gib": 1200, "throughput_mb_s_per_tib": 1000, "zone": "us-east-1a"},
            {"capacity_gib": 4800, "throughput_mb_s_per_tib": 1000, "zone": "us-east-1a", "rdma": True},
            {"capacity_gib": 4800, "throughput_mb_s_per_tib": 125, "zone": "us-east-1a", "rdma": True},
        ]
    ),
    "tracking.replicas": st.integers(0, 11),
    "teams.0.name": st.sampled_from(["ML Team", "team 1", "Équipe", "!!", "x" * 60]),
    "teams.0.weight": st.sampled_from([0, 0.0001, 0.001, 1000, 5000, float("inf"), float("nan")]),
    "teams.0.gpus": st.dictionaries(st.sampled_from(["p0", "p1", "none"]), st.integers(-1, 64), max_size=2),
    "budget.monthly_usd": st.sampled_from([0, 0.5, 1e4, 1e9, float("inf")]),
    "teams.0.alert_emails": st.lists(st.sampled_from(["a@example.com", "b@example.com", "none"]), max_size=3),
    "layout.monitoring": st.sampled_from(
        [
            {"kind": "none"},
            {"kind": "in_cluster", "retention_days": 7, "storage_gib": 20},
            {"kind": "in_cluster", "retention_days": 0, "storage_gib": 20},
            {"kind": "in_cluster", "storage_gib": 5},
        ]
    ),
    "budget.alert_emails": st.lists(st.sampled_from(["a@example.com", "b@example.com", "none"]), max_size=3),
    "budget.anomaly_usd": st.sampled_from([0, 1, float("inf")]),
    "smoke.pools": st.lists(st.sampled_from(["p0", "p1", "p2", "none"]), max_size=3),
    "smoke.nodes": st.integers(0, 6),
    "smoke.schedule": st.sampled_from([None, "0 5 * * 1", "* * * * *", "monday"]),
}


def at(values: Any, path: str, value: Any) -> None:
    """Set a value at a path; lists are indexed by numbers, missing mappings are made."""
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        values = values.setdefault(step, {}) if isinstance(values, dict) else values[step]
    values[last] = value


@st.composite
def pools(draw: st.DrawFn, region: str, zones: list[str], name: str) -> Values:
    """A pool that the region offers, bought and sized in one of the ways that exist."""
    place = facts.region(region)
    machine = facts.instance_type(draw(st.sampled_from(sorted(place.instance_types))))
    kinds = ["on_demand", "spot", "reserved", *(["block"] if machine.capacity_block else [])]
    kind = draw(st.sampled_from(kinds))
    rdma = bool(machine.efa) and draw(st.booleans())
    single = rdma or kind in ("reserved", "block")
    most = 1 if single else min(len(zones), len(place.instance_types[machine.name]))
    chosen = draw(st.lists(st.sampled_from(zones), min_size=1, max_size=most, unique=True))
    largest = draw(st.integers(1, 6))
    return {
        "name": name,
        "machine": machine.name,
        "purpose": draw(st.sampled_from(["training", "fine_tuning", "interactive"])),
        "purchase": {"kind": kind} | ({"id": RESERVATION} if kind in ("reserved", "block") else {}),
        "zones": chosen,
        "rdma": rdma,
        "min_nodes": draw(st.integers(0, largest)),
        "max_nodes": largest,
    }


@st.composite
def stack_files(draw: st.DrawFn) -> Values:
    """The settings of a stack file, as plain values."""
    region = draw(st.sampled_from(REGIONS))
    known = facts.region(region).zones
    zones = draw(st.lists(st.sampled_from(known), min_size=2, max_size=min(3, len(known)), unique=True))
    drawn = [draw(pools(region, zones, f"p{index}")) for index in range(draw(st.integers(1, 3)))]
    made = draw(windowed(drawn))
    gated = draw(st.booleans())
    named = draw(
        st.none() | st.lists(st.sampled_from([pool["name"] for pool in made]), min_size=1, unique=True)
    )
    validated = [
        pool
        for pool in made
        if (pool["purpose"] != "interactive" if named is None else pool["name"] in named)
    ]
    nodes = draw(st.integers(1, min((pool["max_nodes"] for pool in validated), default=1)))
    free = {
        pool["name"]: facts.instance_type(pool["machine"]).accelerator_count
        * (pool["max_nodes"] - (nodes if gated and pool in validated else 0))
        for pool in made
    }
    teams = draw(st.integers(1, 3))
    spec: Values = {
        "owner": "a@example.com",
        "cost_center": "research",
        "environment": "dev",
        "data_class": "internal",
        "expires_on": "2027-03-31",
        "layout": {"zones": zones, "pools": made},
        "on": {
            "account_id": "123456789012",
            "admin_arns": ["arn:aws:iam::123456789012:role/platform"],
            "nat": draw(st.sampled_from(["single", "per_zone"])),
        },
        "data": {"shared_fs": None, "homes": draw(st.booleans()), "protect": draw(st.booleans())},
        "tracking": {"image": f"registry.example.com/mlflow{DIGEST}"},
        "teams": [
            {
                "name": f"Team {index}",
                "gpus": {name: draw(st.integers(0, gpus // teams)) for name, gpus in free.items()},
                "weight": draw(st.floats(0.001, 1000)),
                **draw(st.sampled_from(BUDGETS)),
            }
            for index in range(teams)
        ],
        "budget": {"monthly_usd": 5000, "alert_emails": ["a@example.com"]},
        "smoke": {
            "enabled": gated,
            "pools": named,
            "nodes": nodes,
            "image": f"registry.example.com/torch{DIGEST}",
            "schedule": draw(st.sampled_from([None, "0 5 * * 1"])) if gated else None,
        },
    }
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        path = draw(st.sampled_from(sorted(WILD)))
        at(spec, path, draw(WILD[path]))
    return {"cloud": "aws", "profile": "medium", "region": region, "spec": spec}
