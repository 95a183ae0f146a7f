"""Operations and limits of requests that the types of the SDK get, by names and by what they take."""

from typing import Any

import pulumi_aws  # noqa: F401 (registers the modules that `describe` reads)
import pytest

from rehearsal.aws import provider
from rehearsal.aws.rules import BOOK
from rehearsal.core.model import Properties
from rehearsal.core.rules.facts import of_values
from rehearsal.core.sdk_types import describe
from tests.rehearsal.gcp.rules.test_provider import nested
from tools.aws_limits import documented, operations, requests


def operation(token: str) -> str:
    described = describe(f"aws:{token}")
    assert described is not None
    found = operations.creating(token, described["inputs"])
    return f"{found.service} {found.name}" if found else ""


@pytest.mark.more
@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("kinesis/firehoseDeliveryStream:FirehoseDeliveryStream", "firehose CreateDeliveryStream"),
        ("sagemaker/pipeline:Pipeline", "sagemaker CreatePipeline"),
        ("codepipeline/pipeline:Pipeline", "codepipeline CreatePipeline"),
        ("glue/catalogDatabase:CatalogDatabase", "glue CreateDatabase"),
        ("athena/workgroup:Workgroup", "athena CreateWorkGroup"),
        ("kinesis/stream:Stream", "kinesis CreateStream"),
        ("backup/plan:Plan", "backup CreateBackupPlan"),
        ("dynamodb/tableItem:TableItem", ""),
        ("iam/rolePolicyAttachment:RolePolicyAttachment", ""),
        ("ec2/tag:Tag", ""),
        ("rds/instance:Instance", "rds CreateDBInstance"),
    ],
)
def test_a_type_has_the_operation_that_creates_it(token: str, expected: str) -> None:
    assert operation(token) == expected


def test_an_operation_that_takes_something_else_is_no_match() -> None:
    assert operations.creating("sagemaker/pipeline:Pipeline", {"color": {}, "size": {}}) is None


def test_the_name_of_a_resource_is_that_of_the_member_with_the_resource() -> None:
    names = {"name": "name", "rolearn": "roleArn", "subnetids": "subnetIds"}
    of = [
        operations.property_of(one, "stream", names) for one in ("StreamName", "RoleARN", "SubnetId", "Arn")
    ]
    assert of == ["name", "roleArn", "subnetIds", None]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("[a-z_.-]+", "^(?:[a-z_.-]+)$"),
        ("[a-z](-*[a-z]){0,62}", "^(?:[a-z](-*[a-z]){0,62})$"),
        ("^[a-z]+$", "^[a-z]+$"),
        ("arn:aws:iam::\\d{12}:role/.*", "arn:aws:iam::\\d{12}:role/.*"),
        (".*", None),
        ("[\\p{L}]+", None),
        ("([a-z]+)+", None),
        ("[\\u0020-\\uD7FF\\uD800\\uDC00-\\uDBFF]*", None),
    ],
)
def test_a_pattern_is_whole_only_where_it_makes_no_sense_else(pattern: str, found: str | None) -> None:
    assert requests.whole(pattern) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<p>The type.</p> <p>Valid Values: <code>a | b</code> </p>", {"a", "b"}),
        ("The valid values are <code>a</code>, <code>b</code>, and <code>c</code>.</p>", {"a", "b", "c"}),
        (
            "Valid Values:</p> <ul> <li> <p>One - <code>a | b</code> </p> </li>"
            " <li> <p> <code>c</code> (new)</p> </li> </ul>",
            {"a", "b", "c"},
        ),
        ("<p>For spread, valid values are <code>a</code> and <code>b</code>.</p>", set()),
        ("<p>Valid values: <code>a</code>.</p> <p>Valid values: <code>b</code>.</p>", set()),
        ("<p>A comma-separated list. The valid values are <code>a</code> and <code>b</code>.</p>", set()),
        ("<p>Valid values: <code>m1.small</code> and <code>m1.large</code>.</p>", set()),
        ("<p>Valid values depend on the type: <code>a</code>.</p>", set()),
    ],
)
def test_a_list_in_a_documentation_is_of_all_values(text: str, found: set[str]) -> None:
    assert documented.listed("type", text) == found
    assert documented.listed("engine", text) == set()


def of_request(token: str, inputs: Properties) -> list[str]:
    check = BOOK.rules[f"AWS-REQUEST-{token.partition(':')[0]}"].alone
    assert check is not None
    return [one.path for one in check(inputs)]


@pytest.mark.parametrize(
    ("token", "refused", "accepted"),
    [
        ("kinesis/stream:Stream", {"name": "my stream"}, {"name": "my.stream"}),
        ("codepipeline/pipeline:Pipeline", {"name": "my pipe"}, {"name": "my@pipe"}),
        ("sagemaker/space:Space", {"spaceName": "my space"}, {"spaceName": "my-space"}),
        ("iam/user:User", {"path": "team"}, {"path": "/team/"}),
        ("rds/instance:Instance", {"storageType": "gp4"}, {"storageType": "gp3"}),
        ("autoscaling/schedule:Schedule", {"timeZone": "Mars/Base"}, {"timeZone": "Europe/Berlin"}),
        (
            "cognito/userPoolClient:UserPoolClient",
            {"userPoolId": "pool"},
            {"userPoolId": "us-east-1_AbCdEf123"},
        ),
        (
            "lambda/functionEventInvokeConfig:FunctionEventInvokeConfig",
            {"maximumRetryAttempts": 3},
            {"maximumRetryAttempts": 0},
        ),
    ],
)
def test_a_value_that_the_service_refuses_is_refused(
    token: str, refused: Properties, accepted: Properties
) -> None:
    assert of_request(token, refused) == [*refused]
    assert of_request(token, accepted) == []


def test_a_domain_of_users_may_be_ones_own() -> None:
    assert of_request("cognito/userPoolDomain:UserPoolDomain", {"domain": "auth.example.com"}) == []


def test_every_list_and_range_accepts_its_values() -> None:
    tokens = provider.lines(provider.REQUESTS)
    assert len(tokens) > 600
    for token in tokens:
        of_type = provider.facts(token, provider.REQUESTS)
        values: list[tuple[str, str, Any]] = [
            (fact, path, word)
            for fact in ("words", "words_any_case")
            for path, words in of_type.get(fact, {}).items()
            for word in words
        ]
        values += [
            ("ranges", path, end)
            for path, spans in of_type.get("ranges", {}).items()
            for span in spans
            for end in span
            if end is not None
        ]
        for fact, path, value in values:
            assert [*of_values({fact: {path: of_type[fact][path]}}, nested(path, value))] == [], (token, path)
