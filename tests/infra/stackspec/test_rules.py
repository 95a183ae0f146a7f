"""Invalid specs are refused, with code and path."""

import copy
from typing import Any

import pytest

from infra import stackspec
from infra.stackspec import StackSpec
from infra.stackspec.model import FORMS
from tests.infra.stackspec.stack_files import Values, problems
from tests.stacks.stack_files import LOAD_BALANCER

_BALANCER = ("on", "load_balancer")
_CERTIFICATE, _OIDC = LOAD_BALANCER["certificate_arn"], LOAD_BALANCER["oidc"]
_ADA = "arn:aws:iam::123456789012:user/ada"
BROKEN: dict[str, tuple[Any, ...]] = {
    "efa on a type without it": (
        ("layout", "pools", 0, "machine"),
        "g5.xlarge",
        "layout.pools[0].rdma",
        "machine-without-efa",
    ),
    "efa over several zones": (
        ("layout", "pools", 0, "zones"),
        ["us-east-1a", "us-east-1b"],
        "layout.pools[0].zones",
        "rdma-needs-one-zone",
    ),
    "a zone of another region": (
        ("layout", "zones"),
        ["us-east-1a", "eu-west-1b"],
        "layout.zones[1]",
        "zone-not-in-region",
    ),
    "the zone without EKS": (
        ("layout", "zones"),
        [f"us-east-1{letter}" for letter in "abcdef"],
        "layout.zones",
        "zone-without-eks",
    ),
    "a zone twice": (("layout", "zones"), ["us-east-1b", "us-east-1b"], "layout.zones", "zone-named-twice"),
    "a pool zone without a subnet": (
        ("layout", "pools", 0, "zones"),
        ["us-east-1f"],
        "layout.pools[0].zones[0]",
        "zone-not-of-stack",
    ),
    "an address of a team twice": (
        ("teams", 0, "alert_emails"),
        ["a@example.com", "a@example.com"],
        "teams[0].alert_emails",
        "address-named-twice",
    ),
    "alerts without a recipient": (("budget", "alert_emails"), [], "budget.alert_emails", "too-short"),
    "a disk too small for metrics": (
        ("layout", "monitoring"),
        {"kind": "in_cluster", "retention_days": 30, "storage_gib": 5},
        "layout.monitoring.storage_gib",
        "greater-than-equal",
    ),
    "an unknown type": (
        ("layout", "pools", 0, "machine"),
        "p9.48xlarge",
        "layout.pools[0].machine",
        "unknown-gpu-type",
    ),
    "a public range": (
        ("layout", "network_cidr"),
        "8.8.0.0/16",
        "layout.network_cidr",
        "network-not-private",
    ),
    "a small range": (
        ("layout", "network_cidr"),
        "10.0.0.0/24",
        "layout.network_cidr",
        "network-size-not-supported",
    ),
    "host bits in the range": (
        ("layout", "network_cidr"),
        "10.0.0.1/16",
        "layout.network_cidr",
        "not-an-ipv4-network",
    ),
    "an open API server": (
        ("layout", "api_access"),
        ["0.0.0.0/0"],
        "layout.api_access[0]",
        "client-range-too-wide",
    ),
    "an old Kubernetes": (
        ("layout", "kubernetes_version"),
        "1.19",
        "layout.kubernetes_version",
        "kubernetes-version-not-offered",
    ),
    "an image of another Kubernetes": (
        ("on", "node_image"),
        "1.34.2-20260714",
        "on.node_image",
        "node-image-of-other-version",
    ),
    "an image that is no release": (
        ("on", "node_image"),
        "latest",
        "on.node_image",
        "string-pattern-mismatch",
    ),
    "a version of no add-on": (
        ("on", "addon_versions"),
        {"core-dns": "v1.14.2-eksbuild.4"},
        "on.addon_versions.core-dns",
        "unknown-addon",
    ),
    "a version that is none": (
        ("on", "addon_versions"),
        {"coredns": "1.14"},
        "on.addon_versions.coredns",
        "string-pattern-mismatch",
    ),
    "devices claimed in a pool that starts empty": (
        ("on", "efa_driver"),
        "dra",
        "layout.pools[0].min_nodes",
        "claimed-pool-starts-empty",
    ),
    "a block without reservation": (
        ("layout", "pools", 0, "purchase"),
        {"kind": "block"},
        "layout.pools[0].purchase.id",
        "required-key-missing",
    ),
    "spot with a reservation": (
        ("layout", "pools", 0, "purchase"),
        {"kind": "spot", "id": "cr-0123456789abcdef0"},
        "layout.pools[0].purchase.id",
        "key-of-other-choice",
    ),
    "more at least than at most": (
        ("layout", "pools", 0, "min_nodes"),
        5,
        "layout.pools[0].min_nodes",
        "minimum-above-maximum",
    ),
    "a budget of nothing": (("budget", "monthly_usd"), 0, "budget.monthly_usd", "greater-than"),
    "a budget of a team": (
        ("teams", 0, "monthly_budget_usd"),
        1,
        "teams[0].monthly_budget_usd",
        "unknown-key",
    ),
    "no pool for jobs that name no queue": (
        ("layout", "pools", 0, "own_queue"),
        True,
        "layout.pools",
        "every-pool-has-own-queue",
    ),
    "a quota on no pool": (("teams", 0, "gpus"), {"h100": 1}, "teams[0].gpus.h100", "unknown-pool"),
    "quotas beyond the pool": (
        ("teams", 0, "gpus"),
        {"a100": 17},
        "layout.pools[0].max_nodes",
        "guarantees-exceed-pool",
    ),
    "a smoke test on no pool": (("smoke", "pools"), ["a100", "h100"], "smoke.pools[1]", "unknown-pool"),
    "a smoke test on one pool twice": (
        ("smoke", "pools"),
        ["a100", "a100"],
        "smoke.pools[1]",
        "pool-named-twice",
    ),
    "a smoke test on nothing": (("smoke", "pools"), [], "smoke.pools", "gate-validates-nothing"),
    "a gate without a training pool": (
        ("layout", "pools", 0, "purpose"),
        "interactive",
        "smoke.pools",
        "gate-validates-nothing",
    ),
    "a smoke test beyond the pool": (("smoke", "nodes"), 5, "smoke.nodes", "gate-larger-than-pool"),
    "a gate that never opens": (("smoke", "accept"), ["INCONCLUSIVE"], "smoke.accept", "pass-must-open-gate"),
    "a schedule that cannot be read": (
        ("smoke", "schedule"),
        "every monday",
        "smoke.schedule",
        "invalid-schedule",
    ),
    "a schedule without end": (
        ("smoke", "schedule"),
        "*/5 * * * *",
        "smoke.schedule",
        "schedule-too-frequent",
    ),
    "a schedule that repeats no gate": (
        ("smoke", "enabled"),
        False,
        "smoke.schedule",
        "schedule-without-gate",
    ),
    "an image without digest": (
        ("smoke", "image"),
        "registry.example.com/torch:latest",
        "smoke.image",
        "string-pattern-mismatch",
    ),
    "an environment that is none": (("environment",), "production", "environment", "literal-error"),
    "a class of data that is none": (("data_class",), "secret", "data_class", "literal-error"),
    "an end that is no day": (("expires_on",), "soon", "expires_on", "string-pattern-mismatch"),
    "an end that is no day of the calendar": (("expires_on",), "2027-02-30", "expires_on", "no-such-day"),
    "an address that is none": (("owner",), "platform", "owner", "string-pattern-mismatch"),
    "an account by name": (("on", "account_id"), "research", "on.account_id", "string-pattern-mismatch"),
    "no administrator": (("on", "admin_arns"), [], "on.admin_arns", "too-short"),
    "a session as administrator": (
        ("on", "admin_arns"),
        ["arn:aws:sts::123456789012:assumed-role/admin/session"],
        "on.admin_arns[0]",
        "principal-is-session",
    ),
    "a pool without GPUs over RDMA": (
        ("layout", "pools", 0, "machine"),
        "m6i.4xlarge",
        "layout.pools[0].rdma",
        "rdma-without-gpus",
    ),
    "a validation where there are no GPUs": (
        ("layout", "pools", 0, "machine"),
        "m6i.4xlarge",
        "smoke.pools",
        "pool-without-gpus",
    ),
    "GPUs of a pool without": (
        ("layout", "pools", 0, "machine"),
        "m6i.4xlarge",
        "teams[0].gpus.a100",
        "pool-without-gpus",
    ),
    "a CPU type that its agents fill": (
        ("layout", "pools", 0, "machine"),
        "m6i.large",
        "layout.pools[0].machine",
        "cpu-type-not-for-jobs",
    ),
    "a member of no known form": (
        ("teams", 0, "members"),
        ["ada"],
        "teams[0].members[0]",
        "invalid-principal-arn",
    ),
    "a session as member": (
        ("teams", 0, "members"),
        ["arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Ml_0123456789abcdef/ada"],
        "teams[0].members[0]",
        "principal-is-session",
    ),
    "a permission set without its path": (
        ("teams", 0, "members"),
        ["arn:aws:iam::123456789012:role/AWSReservedSSO_Ml_0123456789abcdef"],
        "teams[0].members[0]",
        "permission-set-path-missing",
    ),
    "a permission set itself": (
        ("teams", 0, "members"),
        ["arn:aws:sso:::permissionSet/ssoins-1234/ps-5678"],
        "teams[0].members[0]",
        "invalid-principal-arn",
    ),
    "an administrator as member": (
        ("teams", 0, "members"),
        ["arn:aws:iam::123456789012:role/platform"],
        "teams[0].members[0]",
        "member-is-administrator",
    ),
    "a member named twice": (
        ("teams", 0, "members"),
        [_ADA, _ADA],
        "teams[0].members[1]",
        "member-of-two-teams",
    ),
    "a member of two teams": (
        ("teams",),
        [
            {"name": "A", "gpus": {}, "members": [_ADA]},
            {"name": "B", "gpus": {}, "members": [_ADA]},
        ],
        "teams[1].members[0]",
        "member-of-two-teams",
    ),
    "a folder of two teams": (
        ("teams",),
        [
            {"name": "Vision", "gpus": {}},
            {"name": "Video", "gpus": {}, "folder": "vision"},
        ],
        "teams[1].folder",
        "folder-taken",
    ),
    "a reservation of no known form": (
        ("layout", "pools", 0, "purchase"),
        {"kind": "reserved", "id": "the-blue-one"},
        "layout.pools[0].purchase.id",
        "invalid-reservation-id",
    ),
    "a key of another cloud": (("on", "project"), "research-1", "on.project", "key-of-other-choice"),
    "a key of another layout": (("layout", "max_hours"), 4, "layout.max_hours", "key-of-other-choice"),
    "a purchase without a kind": (
        ("layout", "pools", 0, "purchase"),
        {},
        "layout.pools[0].purchase.kind",
        "required-key-missing",
    ),
    "a purchase in one word": (
        ("layout", "pools", 0, "purchase"),
        "spot",
        "layout.pools[0].purchase",
        "model-attributes-type",
    ),
    "a database smaller than itself": (
        ("on", "database"),
        {"min_acu": 8},
        "on.database.min_acu",
        "minimum-above-maximum",
    ),
    "no teams": (("teams",), [], "teams", "too-short"),
    "a load balancer open to the internet": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": ["10.0.0.0/8", "0.0.0.0/0"]},
        "on.load_balancer.allowed_cidrs[1]",
        "client-range-too-wide",
    ),
    "a load balancer for a range with host bits": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": ["10.20.0.1/16"]},
        "on.load_balancer.allowed_cidrs[0]",
        "not-an-ipv4-network",
    ),
    "a load balancer for a range twice": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": ["10.20.0.0/16", "10.20.0.0/16"]},
        "on.load_balancer.allowed_cidrs[1]",
        "client-range-repeated",
    ),
    "a load balancer without clients": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": []},
        "on.load_balancer.allowed_cidrs",
        "too-short",
    ),
    "a host without a domain": (
        _BALANCER,
        {**LOAD_BALANCER, "host": "mlflow"},
        "on.load_balancer.host",
        "string-pattern-mismatch",
    ),
    "a certificate of another region": (
        _BALANCER,
        {**LOAD_BALANCER, "certificate_arn": _CERTIFICATE.replace("us-east-1", "us-west-2")},
        "on.load_balancer.certificate_arn",
        "arn-in-other-region",
    ),
    "a certificate of another account": (
        _BALANCER,
        {**LOAD_BALANCER, "certificate_arn": _CERTIFICATE.replace("123456789012", "210987654321")},
        "on.load_balancer.certificate_arn",
        "arn-in-other-account",
    ),
    "a certificate of IAM": (
        _BALANCER,
        {**LOAD_BALANCER, "certificate_arn": "arn:aws:iam::123456789012:server-certificate/ours"},
        "on.load_balancer.certificate_arn",
        "string-pattern-mismatch",
    ),
    "an identity provider without TLS": (
        _BALANCER,
        {**LOAD_BALANCER, "oidc": {**_OIDC, "token_endpoint": "http://id.example.com/token"}},
        "on.load_balancer.oidc.token_endpoint",
        "string-pattern-mismatch",
    ),
    "a secret in the stack file": (
        _BALANCER,
        {**LOAD_BALANCER, "oidc": {**_OIDC, "client_secret": "hunter2"}},
        "on.load_balancer.oidc.client_secret",
        "unknown-key",
    ),
    "a secret without its last characters": (
        _BALANCER,
        {**LOAD_BALANCER, "oidc": {**_OIDC, "client_secret_arn": _OIDC["client_secret_arn"][:-7]}},
        "on.load_balancer.oidc.client_secret_arn",
        "string-pattern-mismatch",
    ),
    "a secret of another region": (
        _BALANCER,
        {
            **LOAD_BALANCER,
            "oidc": {
                **_OIDC,
                "client_secret_arn": _OIDC["client_secret_arn"].replace("us-east-1", "eu-west-1"),
            },
        },
        "on.load_balancer.oidc.client_secret_arn",
        "arn-in-other-region",
    ),
    "a load balancer without a login": (
        _BALANCER,
        {key: value for key, value in LOAD_BALANCER.items() if key != "oidc"},
        "on.load_balancer.oidc",
        "required-key-missing",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_deployed_is_refused_by_name(values: Values, case: str) -> None:
    stackspec.load("dev", copy.deepcopy(values), "f")  # it is this change, and nothing else, that breaks it
    steps, value, path, code = BROKEN[case]
    place = values["spec"]
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    assert (code, path) in [(one.code, one.path) for one in problems(values)]


def test_alerts_of_a_team_need_monitoring(values: Values) -> None:
    values["spec"]["teams"][0]["alert_emails"] = ["vision@example.com"]
    stackspec.load("dev", copy.deepcopy(values), "f")
    values["spec"]["layout"] |= {"monitoring": {"kind": "none"}, "idle_gpus": None}
    (problem,) = problems(values)
    assert (problem.code, problem.path) == ("alerts-not-monitored", "teams[0].alert_emails")


def test_idle_gpus_need_monitoring(values: Values) -> None:
    values["spec"]["layout"] |= {
        "monitoring": {"kind": "none"},
        "idle_gpus": {"minutes": 30, "grace_minutes": 10, "jobs": "stop"},
    }
    (problem,) = problems(values)
    assert (problem.code, problem.against) == ("idle-gpus-not-monitored", "layout.monitoring.kind")
    assert problem.value == {"minutes": 30, "grace_minutes": 10, "jobs": "stop"}
    values["spec"]["layout"]["idle_gpus"] = None
    stackspec.load("dev", values, "f")


def test_teams_that_become_one_namespace_are_refused(values: Values) -> None:
    team = values["spec"]["teams"][0]
    values["spec"]["teams"] = [
        {**team, "name": "Vision Lab", "gpus": {}},
        {**team, "name": "vision_lab", "gpus": {}},
    ]
    (problem,) = problems(values)
    assert (problem.code, problem.path) == ("name-taken", "teams[1].name")


def test_every_string_format_has_a_description() -> None:
    """A format without one would end in a traceback for a wrong value."""

    def patterns(schema: object) -> set[str]:
        if isinstance(schema, dict):
            here = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set()
            return here.union(*map(patterns, schema.values()))
        return set().union(*map(patterns, schema)) if isinstance(schema, list) else set()

    found = patterns(StackSpec.model_json_schema())
    assert found and found <= FORMS.keys()
