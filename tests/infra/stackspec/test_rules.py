"""What cannot be deployed is refused, with the path of what is wrong."""

import copy
from typing import Any

import pytest

from infra import stackspec
from infra.stackspec import StackSpec
from infra.stackspec.model import FORMS
from tests.infra.stackspec.stack_files import Values, paths, problems
from tests.stacks.stack_files import LOAD_BALANCER

_BALANCER = ("on", "load_balancer")
_CERTIFICATE, _OIDC = LOAD_BALANCER["certificate_arn"], LOAD_BALANCER["oidc"]
_ADA = "arn:aws:iam::123456789012:user/ada"
BROKEN: dict[str, tuple[Any, ...]] = {
    "efa on a type without it": (("layout", "pools", 0, "machine"), "g5.xlarge", "layout.pools[0].rdma"),
    "efa over several zones": (
        ("layout", "pools", 0, "zones"),
        ["us-east-1a", "us-east-1b"],
        "layout.pools[0].zones",
    ),
    "a zone of another region": (("layout", "zones"), ["us-east-1a", "eu-west-1b"], "layout.zones[1]"),
    "the zone without EKS": (
        ("layout", "zones"),
        [f"us-east-1{letter}" for letter in "abcdef"],
        "layout.zones",
    ),
    "a zone twice": (("layout", "zones"), ["us-east-1b", "us-east-1b"], "layout.zones"),
    "a pool zone without a subnet": (
        ("layout", "pools", 0, "zones"),
        ["us-east-1f"],
        "layout.pools[0].zones[0]",
    ),
    "an address of a team twice": (
        ("teams", 0, "alert_emails"),
        ["a@example.com", "a@example.com"],
        "teams[0].alert_emails",
    ),
    "alerts to nobody": (("budget", "alert_emails"), [], "budget.alert_emails"),
    "a disk too small for metrics": (
        ("layout", "monitoring"),
        {"kind": "in_cluster", "retention_days": 30, "storage_gib": 5},
        "layout.monitoring.storage_gib",
    ),
    "an unknown type": (("layout", "pools", 0, "machine"), "p9.48xlarge", "layout.pools[0].machine"),
    "a public range": (("layout", "network_cidr"), "8.8.0.0/16", "layout.network_cidr"),
    "a small range": (("layout", "network_cidr"), "10.0.0.0/24", "layout.network_cidr"),
    "host bits in the range": (("layout", "network_cidr"), "10.0.0.1/16", "layout.network_cidr"),
    "an open API server": (
        ("layout", "api_access"),
        ["0.0.0.0/0"],
        "layout.api_access[0]",
    ),
    "an old Kubernetes": (("layout", "kubernetes_version"), "1.19", "layout.kubernetes_version"),
    "an image of another Kubernetes": (("on", "node_image"), "1.34.2-20260714", "on.node_image"),
    "an image that is no release": (("on", "node_image"), "latest", "on.node_image"),
    "a version of no add-on": (
        ("on", "addon_versions"),
        {"core-dns": "v1.14.2-eksbuild.4"},
        "on.addon_versions.core-dns",
    ),
    "a version that is none": (("on", "addon_versions"), {"coredns": "1.14"}, "on.addon_versions.coredns"),
    "devices claimed in a pool that starts empty": (
        ("on", "efa_driver"),
        "dra",
        "layout.pools[0].min_nodes",
    ),
    "a block without reservation": (
        ("layout", "pools", 0, "purchase"),
        {"kind": "block"},
        "layout.pools[0].purchase.id",
    ),
    "spot with a reservation": (
        ("layout", "pools", 0, "purchase"),
        {"kind": "spot", "id": "cr-0123456789abcdef0"},
        "layout.pools[0].purchase.id",
    ),
    "more at least than at most": (("layout", "pools", 0, "min_nodes"), 5, "layout.pools[0].min_nodes"),
    "a budget of nothing": (("budget", "monthly_usd"), 0, "budget.monthly_usd"),
    "a budget of a team": (("teams", 0, "monthly_budget_usd"), 1, "teams[0].monthly_budget_usd"),
    "no pool for jobs that name no queue": (("layout", "pools", 0, "own_queue"), True, "layout.pools"),
    "a quota on no pool": (("teams", 0, "gpus"), {"h100": 1}, "teams[0].gpus.h100"),
    "quotas beyond the pool": (("teams", 0, "gpus"), {"a100": 17}, "layout.pools[0].max_nodes"),
    "a smoke test on no pool": (("smoke", "pools"), ["a100", "h100"], "smoke.pools[1]"),
    "a smoke test on one pool twice": (("smoke", "pools"), ["a100", "a100"], "smoke.pools[1]"),
    "a smoke test on nothing": (("smoke", "pools"), [], "smoke.pools"),
    "a gate where nobody trains": (("layout", "pools", 0, "purpose"), "interactive", "smoke.pools"),
    "a smoke test beyond the pool": (("smoke", "nodes"), 5, "smoke.nodes"),
    "a gate that never opens": (("smoke", "accept"), ["INCONCLUSIVE"], "smoke.accept"),
    "a schedule that cannot be read": (("smoke", "schedule"), "every monday", "smoke.schedule"),
    "a schedule without end": (("smoke", "schedule"), "*/5 * * * *", "smoke.schedule"),
    "a schedule that repeats no gate": (("smoke", "enabled"), False, "smoke.schedule"),
    "an image without digest": (("smoke", "image"), "registry.example.com/torch:latest", "smoke.image"),
    "an environment that is none": (("environment",), "production", "environment"),
    "a class of data that is none": (("data_class",), "secret", "data_class"),
    "an end that is no day": (("expires_on",), "soon", "expires_on"),
    "an end that is no day of the calendar": (("expires_on",), "2027-02-30", "expires_on"),
    "an address that is none": (("owner",), "nobody", "owner"),
    "an account by name": (("on", "account_id"), "research", "on.account_id"),
    "no administrator": (("on", "admin_arns"), [], "on.admin_arns"),
    "a session as administrator": (
        ("on", "admin_arns"),
        ["arn:aws:sts::123456789012:assumed-role/admin/session"],
        "on.admin_arns[0]",
    ),
    "a pool without GPUs over RDMA": (
        ("layout", "pools", 0, "machine"),
        "m6i.4xlarge",
        "layout.pools[0].rdma",
    ),
    "a validation where there are no GPUs": (("layout", "pools", 0, "machine"), "m6i.4xlarge", "smoke.pools"),
    "GPUs of a pool without": (("layout", "pools", 0, "machine"), "m6i.4xlarge", "teams[0].gpus.a100"),
    "a CPU type that its agents fill": (
        ("layout", "pools", 0, "machine"),
        "m6i.large",
        "layout.pools[0].machine",
    ),
    "a member of no known form": (("teams", 0, "members"), ["ada"], "teams[0].members[0]"),
    "a session as member": (
        ("teams", 0, "members"),
        ["arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Ml_0123456789abcdef/ada"],
        "teams[0].members[0]",
    ),
    "a permission set without its path": (
        ("teams", 0, "members"),
        ["arn:aws:iam::123456789012:role/AWSReservedSSO_Ml_0123456789abcdef"],
        "teams[0].members[0]",
    ),
    "a permission set itself": (
        ("teams", 0, "members"),
        ["arn:aws:sso:::permissionSet/ssoins-1234/ps-5678"],
        "teams[0].members[0]",
    ),
    "an administrator as member": (
        ("teams", 0, "members"),
        ["arn:aws:iam::123456789012:role/platform"],
        "teams[0].members[0]",
    ),
    "a member named twice": (
        ("teams", 0, "members"),
        [_ADA, _ADA],
        "teams[0].members[1]",
    ),
    "a member of two teams": (
        ("teams",),
        [
            {"name": "A", "gpus": {}, "members": [_ADA]},
            {"name": "B", "gpus": {}, "members": [_ADA]},
        ],
        "teams[1].members[0]",
    ),
    "a folder of two teams": (
        ("teams",),
        [
            {"name": "Vision", "gpus": {}},
            {"name": "Video", "gpus": {}, "folder": "vision"},
        ],
        "teams[1].folder",
    ),
    "a reservation of no known form": (
        ("layout", "pools", 0, "purchase"),
        {"kind": "reserved", "id": "the-blue-one"},
        "layout.pools[0].purchase.id",
    ),
    "a key of another cloud": (("on", "project"), "research-1", "on.project"),
    "a key of another layout": (("layout", "max_hours"), 4, "layout.max_hours"),
    "a purchase without a kind": (("layout", "pools", 0, "purchase"), {}, "layout.pools[0].purchase.kind"),
    "a purchase in one word": (("layout", "pools", 0, "purchase"), "spot", "layout.pools[0].purchase"),
    "a database smaller than itself": (("on", "database"), {"min_acu": 8}, "on.database.min_acu"),
    "no teams": (("teams",), [], "teams"),
    "a load balancer for everybody": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": ["10.0.0.0/8", "0.0.0.0/0"]},
        "on.load_balancer.allowed_cidrs[1]",
    ),
    "a load balancer for a range with host bits": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": ["10.20.0.1/16"]},
        "on.load_balancer.allowed_cidrs[0]",
    ),
    "a load balancer for a range twice": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": ["10.20.0.0/16", "10.20.0.0/16"]},
        "on.load_balancer.allowed_cidrs[1]",
    ),
    "a load balancer for nobody": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": []},
        "on.load_balancer.allowed_cidrs",
    ),
    "a host without a domain": (_BALANCER, {**LOAD_BALANCER, "host": "mlflow"}, "on.load_balancer.host"),
    "a certificate of another region": (
        _BALANCER,
        {**LOAD_BALANCER, "certificate_arn": _CERTIFICATE.replace("us-east-1", "us-west-2")},
        "on.load_balancer.certificate_arn",
    ),
    "a certificate of another account": (
        _BALANCER,
        {**LOAD_BALANCER, "certificate_arn": _CERTIFICATE.replace("123456789012", "210987654321")},
        "on.load_balancer.certificate_arn",
    ),
    "a certificate of IAM": (
        _BALANCER,
        {**LOAD_BALANCER, "certificate_arn": "arn:aws:iam::123456789012:server-certificate/ours"},
        "on.load_balancer.certificate_arn",
    ),
    "an identity provider without TLS": (
        _BALANCER,
        {**LOAD_BALANCER, "oidc": {**_OIDC, "token_endpoint": "http://id.example.com/token"}},
        "on.load_balancer.oidc.token_endpoint",
    ),
    "a secret in the stack file": (
        _BALANCER,
        {**LOAD_BALANCER, "oidc": {**_OIDC, "client_secret": "hunter2"}},
        "on.load_balancer.oidc.client_secret",
    ),
    "a secret without its last characters": (
        _BALANCER,
        {**LOAD_BALANCER, "oidc": {**_OIDC, "client_secret_arn": _OIDC["client_secret_arn"][:-7]}},
        "on.load_balancer.oidc.client_secret_arn",
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
    ),
    "a load balancer without a login": (
        _BALANCER,
        {key: value for key, value in LOAD_BALANCER.items() if key != "oidc"},
        "on.load_balancer.oidc",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_deployed_is_refused_by_name(values: Values, case: str) -> None:
    stackspec.load("dev", copy.deepcopy(values), "f")  # it is this change, and nothing else, that breaks it
    steps, value, path = BROKEN[case]
    place = values["spec"]
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    assert path in paths(values)


def test_a_team_that_nothing_would_tell_is_refused(values: Values) -> None:
    values["spec"]["teams"][0]["alert_emails"] = ["vision@example.com"]
    stackspec.load("dev", copy.deepcopy(values), "f")
    values["spec"]["layout"] |= {"monitoring": {"kind": "none"}, "idle_gpus": None}
    (problem,) = problems(values)
    assert problem.path == "teams[0].alert_emails"
    assert "in_cluster" in problem.fix


def test_who_looks_for_idle_gpus_and_measures_none_is_told_so(values: Values) -> None:
    values["spec"]["layout"] |= {
        "monitoring": {"kind": "none"},
        "idle_gpus": {"minutes": 30, "grace_minutes": 10, "jobs": "stop"},
    }
    (problem,) = problems(values)
    assert (problem.path, problem.against) == ("layout.idle_gpus", "layout.monitoring.kind")
    assert problem.value == {"minutes": 30, "grace_minutes": 10, "jobs": "stop"}
    assert "nothing measures" in problem.rule and "in_cluster" in problem.fix
    values["spec"]["layout"]["idle_gpus"] = None
    stackspec.load("dev", values, "f")


def test_teams_that_become_one_namespace_are_refused(values: Values) -> None:
    team = values["spec"]["teams"][0]
    values["spec"]["teams"] = [
        {**team, "name": "Vision Lab", "gpus": {}},
        {**team, "name": "vision_lab", "gpus": {}},
    ]
    (problem,) = problems(values)
    assert problem.path == "teams[1].name"
    assert "'team-vision-lab'" in problem.rule


def test_every_form_of_a_text_is_said_in_words() -> None:
    """A form without words would end in a traceback for who gets it wrong."""

    def patterns(schema: object) -> set[str]:
        if isinstance(schema, dict):
            here = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set()
            return here.union(*map(patterns, schema.values()))
        return set().union(*map(patterns, schema)) if isinstance(schema, list) else set()

    found = patterns(StackSpec.model_json_schema())
    assert found and found <= FORMS.keys()
