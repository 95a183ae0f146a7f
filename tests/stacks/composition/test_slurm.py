"""A Slurm system on AWS: policies on its nodes, and a customer's key for their disks."""

import base64
import functools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.slurm import metrics
from policies.resource import Resource
from tests.stacks.composition import judged
from tests.stacks.composition.composed import composed, stack_spec
from trainstack.preflight.aws import permissions

PAIR = ("large-slurm", "aws")
STACK = "large-slurm-aws"
KEY = "arn:aws:kms:us-east-1:123456789012:key/22222222-3333-4444-5555-666666666666"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


@functools.cache
def resources() -> list[Resource]:
    return judged.resources(composed(PAIR), "us-east-1")


def test_every_policy_holds() -> None:
    outcomes = judged.verdicts(resources(), STACK)
    assert judged.reported(outcomes, "fail") == judged.reported(outcomes, "undetermined") == []


def test_the_key_of_disks_is_that_of_the_stack_file() -> None:
    def keys(graph: Any) -> set[str | None]:
        templates = graph.all("ec2/launchTemplate:LaunchTemplate").values()
        return {disk["ebs"].get("kmsKeyId") for one in templates for disk in one["blockDeviceMappings"]}

    assert keys(composed(PAIR)) == {None}
    assert keys(composed(PAIR, lambda spec: spec["on"].update(disk_key_arn=KEY))) == {KEY}


Worse = Callable[[dict[str, Any]], object]


def _without_budget(found: list[Resource]) -> list[Resource]:
    return [one for one in found if one.kind != "aws:budgets/budget:Budget"]


def test_a_system_without_a_budget_is_a_violation() -> None:
    """Machine types are named in groups of the service alone."""
    failed = judged.reported(judged.verdicts(_without_budget(resources()), STACK), "fail")
    assert {"MLS-COST-01", "MLS-COST-04"} <= {line.split()[0] for line in failed}


@pytest.mark.parametrize(
    ("rule", "kind", "worse"),
    [
        ("MLS-IAM-05", TEMPLATE, lambda props: props["metadataOptions"].update(httpTokens="optional")),
        (
            "MLS-STO-09",
            TEMPLATE,
            lambda props: props["blockDeviceMappings"][0]["ebs"].update(encrypted="false"),
        ),
        ("MLS-NET-02", TEMPLATE, lambda props: props.get("networkInterfaces", [0]).pop()),
    ],
)
def test_a_careless_launch_template_is_a_violation(rule: str, kind: str, worse: Worse) -> None:
    changed = []
    for one in resources():
        props = json.loads(json.dumps(dict(one.props)))
        if one.kind == kind:
            worse(props)
        changed.append(replace(one, props=props, asked=props))
    failed = judged.reported(judged.verdicts(changed, STACK), "fail")
    assert rule in {line.split()[0] for line in failed}


def test_the_preflight_asks_for_the_types_that_are_made() -> None:
    """With the gate, which has no type of a provider."""
    spec = stack_spec(PAIR)
    made = {one.type for one in composed(PAIR).cloud.asked if one.type.startswith("aws:")}
    assert {*permissions.rows(spec)} == made | {"trainstack:SlurmGate"}


def test_permissions_are_simulated_with_names_that_the_stack_gives() -> None:
    """Automatic names end in what Pulumi draws."""
    given = set[str]()
    for asked in composed(PAIR).cloud.asked:
        texts = (value for value in asked.properties.values() if isinstance(value, str))
        given |= {f"{asked.name}-0000000", *(word for text in texts for word in re.split("[:/]", text))}
    for arn in permissions.simulated(stack_spec(PAIR)):
        words = [word for word in re.split("[:/]", arn) if word.startswith("dev-")]
        own = arn.startswith(("arn:aws:ssm:", "arn:aws:logs:", "arn:aws:pcs:", "arn:aws:iam:"))
        assert not own or set(words) - {"dev-cluster-node-role-0000000"} <= given, arn


def _named(kind: str) -> dict[str, Any]:
    return dict(composed(PAIR).all(kind))


def _statements(name: str) -> list[dict[str, Any]]:
    (found,) = (one for key, one in _named("iam/rolePolicy:RolePolicy").items() if key.endswith(name))
    statements: list[dict[str, Any]] = json.loads(found["policy"])["Statement"]
    return statements


def test_nodes_call_mlflow_and_write_files_of_runs_alone() -> None:
    found = _statements("-runs")
    assert {action for one in found for action in one["Action"]} == {
        "sagemaker:CallMlflowAppApi", "s3:GetObject", "s3:PutObject", "s3:ListBucket",
    }  # fmt: skip
    objects = [arn for one in found if "s3:PutObject" in one["Action"] for arn in one["Resource"]]
    assert all(arn.endswith("/mlflow/*") for arn in objects)
    (app,) = _named("sagemaker/mlflowApp:MlflowApp").values()
    assert app["accountDefaultStatus"] == "DISABLED"


def test_nodes_publish_figures_of_this_stack_alone() -> None:
    (found,) = _statements("-figures")
    assert found["Action"] == ["cloudwatch:PutMetricData"]
    assert found["Condition"] == {"StringEquals": {"cloudwatch:namespace": "trainstack/slurm/dev"}}


def test_alarms_are_on_metrics_that_the_login_node_publishes() -> None:
    program = Path(metrics.__file__).read_text()
    alarms = [
        one for one in _named("cloudwatch/metricAlarm:MetricAlarm").values() if "slurm" in one["namespace"]
    ]
    assert {one["namespace"] for one in alarms} == {"trainstack/slurm/dev"}
    names = {one["metricName"] for one in alarms}
    assert names >= {"ControllerUp", "NodesDown", "LongestWaitMinutes", "GpusIdle", "BudgetUsedPercent"}
    assert [one for one in names if f'"{one}"' not in program] == []
    (board,) = _named("cloudwatch/dashboard:Dashboard").values()
    shown = [
        row[1]
        for one in json.loads(board["dashboardBody"])["widgets"]
        for row in one["properties"]["metrics"]
    ]
    assert [one for one in shown if f'"{one}"' not in program] == []


def test_the_login_node_alone_publishes() -> None:
    texts = {key: base64.b64decode(one["userData"]).decode() for key, one in _named(TEMPLATE[4:]).items()}
    assert [key for key, text in texts.items() if "metrics.py" in text] == ["dev-login-nodes"]
    assert all("trainstack-mlflow.service" in text for text in texts.values())


def test_every_node_closes_the_metadata_service_at_each_boot() -> None:
    for one in _named(TEMPLATE[4:]).values():
        text = base64.b64decode(one["userData"]).decode()
        config = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
        written = {file["path"]: file["content"] for file in config["write_files"]}
        ((_, _, command),) = config["bootcmd"]
        assert "cat > /opt/trainstack/slurm/metadata.sh" in command
        unit = written["/etc/systemd/system/trainstack-metadata.service"]
        assert "RequiredBy=slurmd.service" in unit and "ExecStart=/opt/trainstack/slurm/metadata.sh" in unit
        assert any("enable" in line and "trainstack-metadata" in line for line in config["runcmd"])
        assert "/opt/trainstack/slurm/metadata.sh check" in written["/opt/trainstack/slurm/prolog.sh"]
