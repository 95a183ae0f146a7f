"""Components are constructed through the protocol of plugins, as for a program in any language."""

import json
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import alias_pb2, errors_pb2, provider_pb2, status_pb2

from plugin import schema
from plugin.arguments import convert
from plugin.exposed import component
from plugin.shapes import arguments
from tests.plugin.served import FOLDER, ROOT, UNKNOWN, Plugin, output, plugin

BUDGET = {
    "monthlyLimitUsd": 5000, "alertEmails": ["a@example.com"], "stackTagKey": "stack", "stackTagValue": "dev"
}  # fmt: skip
BUCKET = {"kmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/k", "noncurrentDays": 7, "expireDays": 30}
MADE = "aws:budgets/budget:Budget team-budget"
_ENCRYPTION = "ServerSideEncryptionConfiguration"
ENCRYPTION = f"aws:s3/bucket{_ENCRYPTION}:Bucket{_ENCRYPTION} data-encryption"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
PROVIDER = "urn:pulumi:dev::p::pulumi:providers:aws::mine::id"


@pytest.fixture(scope="module")
def served() -> Iterator[Plugin]:
    with plugin(*FOLDER) as found:
        yield found


def refused(served: Plugin, component: str, inputs: dict[str, Any]) -> dict[str, str]:
    """Path -> reason of each problem that the plugin reports."""
    with pytest.raises(grpc.RpcError) as caught:
        served.construct(component, "team", inputs)
    sent: Any = caught.value.trailing_metadata()
    status = status_pb2.Status.FromString(dict(sent)["grpc-status-details-bin"])
    details = errors_pb2.InputPropertiesError()
    status.details[0].Unpack(details)
    assert "Traceback" not in str(caught.value) and ".py" not in str(caught.value)
    return {one.property_path: one.reason for one in details.errors}


def test_it_answers_with_the_schema_and_the_version_of_the_package(served: Plugin) -> None:
    answer = served.stub.GetSchema(provider_pb2.GetSchemaRequest()).schema
    assert answer == schema.FILE.read_text()
    version = served.stub.GetPluginInfo(empty_pb2.Empty()).version
    assert version == json.loads(answer)["version"] == metadata.version("trainstack")


def test_the_installed_command_serves_beside_folders_of_the_same_names(tmp_path: Path) -> None:
    for name in ("plugin", "components", "infra"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(
            "raise SystemExit('a package of the program was imported')"
        )
    start = "from trainstack.component_plugin import main; main()"
    variables = {**os.environ, "PYTHONPATH": f".{os.pathsep}{ROOT}"}
    with plugin(sys.executable, "-c", start, cwd=tmp_path, env=variables) as found:
        assert found.stub.GetPluginInfo(empty_pb2.Empty()).version == metadata.version("trainstack")


def test_a_component_is_constructed_with_its_resources_and_outputs(served: Plugin) -> None:
    made = served.construct("AwsBudget", "team", BUDGET)
    assert made.urn.endswith("trainstack:index:AwsBudget::team")
    assert MessageToDict(made.state) == {"budgetName": "team-monthly"}
    inputs = served.monitor.inputs(MADE)
    assert inputs["limitAmount"] == "5000.00"


def test_whole_numbers_stay_whole() -> None:
    """On the wire every number is a floating-point number, and components format them."""
    found = convert(arguments(component("AwsBucket")), {**BUCKET, "noncurrentDays": 7.0})
    assert repr(found["noncurrent_days"]) == "7"


def test_options_reach_the_component(served: Plugin) -> None:
    served.construct(
        "AwsBudget", "team", BUDGET, protect=True, providers={"aws": PROVIDER},
        aliases=[alias_pb2.Alias(urn="urn:pulumi:dev::p::old:index:Budget::team")],
    )  # fmt: skip
    component = served.monitor.made["trainstack:index:AwsBudget team"]
    assert component.protect
    assert [one.urn for one in component.aliases] == ["urn:pulumi:dev::p::old:index:Budget::team"]
    assert served.monitor.made[MADE].provider == PROVIDER
    assert [one.urn for one in served.monitor.made[MADE].aliases] == []


def test_unknown_values_and_secrets_stay_what_they_are(served: Plugin) -> None:
    made = served.construct("AwsBucket", "data", {**BUCKET, "kmsKeyArn": output()}, preview=True)
    assert UNKNOWN in json.dumps(MessageToDict(made.state))
    assert UNKNOWN in json.dumps(served.monitor.inputs(ENCRYPTION))
    served.construct("AwsBucket", "data", {**BUCKET, "kmsKeyArn": output("arn:k", secret=True)})
    assert SECRET in json.dumps(served.monitor.inputs(ENCRYPTION))


def test_every_bad_argument_is_reported_with_its_path(served: Plugin) -> None:
    wrong = {**BUDGET, "monthlyLimitUsd": "much", "alertEmail": ["x"], "alertEmails": [3]}
    del wrong["stackTagKey"]
    found = refused(served, "AwsBudget", wrong)
    codes = {path: reason.rpartition("[")[2].rstrip("]") for path, reason in found.items()}
    assert codes == {
        "monthlyLimitUsd": "argument-type",
        "alertEmail": "argument-unknown",
        "alertEmails[0]": "argument-type",
        "stackTagKey": "argument-missing",
    }


def test_an_output_is_refused_where_a_plain_value_is_needed(served: Plugin) -> None:
    found = refused(served, "AwsBudget", {**BUDGET, "stackTagValue": output("hidden", secret=True)})
    assert list(found) == ["stackTagValue"] and "hidden" not in found["stackTagValue"]


def test_problems_that_a_component_finds_name_the_argument_of_the_program(served: Plugin) -> None:
    found = refused(
        served, "AwsNetwork",
        {
            "region": "us-east-1", "cidr": "10.0.0.0/28", "zones": ["us-east-1a", "us-east-1b"],
            "natPerZone": False, "flowLogRetentionDays": 31, "interfaceEndpoints": [],
        },
    )  # fmt: skip
    assert "cidr" in found or "flowLogRetentionDays" in found
