"""The alert about idle GPUs: its query and its addresses."""

from typing import Any, cast

import pulumi
import pytest

from components.gcp.money.idle import GcpIdleAlert, GcpIdleAlertArgs
from infra.errors import UserError
from rehearsal.gcp.rules import BOOK
from tests.components.graph import Graph, deploy_graph
from tests.policies.rules.judging import made as resource
from tests.policies.rules.judging import results

POLICY, CHANNEL = (
    "gcp:monitoring/alertPolicy:AlertPolicy",
    "gcp:monitoring/notificationChannel:NotificationChannel",
)
POOL = "gcp:container/nodePool:NodePool"
DEFAULTS = {"cluster_name": "prod-gcp", "emails": ["ml@example.com", "money@example.com"]}


def made(**changes: Any) -> Graph:
    def program() -> dict[str, pulumi.Output[Any]]:
        return {"policy": GcpIdleAlert("prod-gcp-idle", cast(GcpIdleAlertArgs, DEFAULTS | changes)).policy}

    return deploy_graph(program, {CHANNEL: lambda args: {"name": f"channels/{args.name}"}})


def policy() -> dict[str, Any]:
    return dict(made().cloud.one(POLICY).properties)


def test_it_is_about_the_gpus_of_this_cluster_alone() -> None:
    (condition,) = policy()["conditions"]
    asked = condition["conditionPrometheusQueryLanguage"]
    assert asked["query"] == 'avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{cluster="prod-gcp"}[12h])) < 10'
    assert asked["disableMetricValidation"] is True, "before the first node there is no such metric"


def test_all_named_addresses_get_mail() -> None:
    assert policy()["notificationChannels"] == [
        "channels/prod-gcp-idle-mail-0",
        "channels/prod-gcp-idle-mail-1",
    ]


def test_the_services_rules_and_the_policy_pack_have_no_objection() -> None:
    assert [*BOOK.broken_alone(POLICY, policy())] == []
    nodes = {
        "machineType": "a3-megagpu-8g",
        "guestAccelerators": [{"type": "nvidia-h100-mega-80gb", "count": 8}],
    }
    pool = resource(
        POOL, "pool", autoscaling={"totalMinNodeCount": 2, "totalMaxNodeCount": 8}, nodeConfig=nodes
    )
    assert results("MLS-GPU-05", pool) == ["fail"]
    assert results("MLS-GPU-05", pool, resource(POLICY, "alert", **policy())) == ["pass"]


@pytest.mark.parametrize(
    ("emails", "code"), [([], "alarm-without-address"), (["a@example.com"] * 2, "address-named-twice")]
)
def test_addresses_that_make_no_sense_are_refused(emails: list[str], code: str) -> None:
    with pytest.raises(UserError, match=code):
        made(emails=emails)
