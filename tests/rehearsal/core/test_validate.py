"""Inputs are valid exactly when the installed SDK has their properties and types."""

from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.model import UNKNOWN
from rehearsal.core.schema import Schemas
from rehearsal.core.validate import SIGNATURE, validate
from tests.rehearsal.driver import CACHE

CLUSTER = "aws:eks/cluster:Cluster"
GOOD = {"roleArn": "arn:aws:iam::123456789012:role/x", "vpcConfig": {"subnetIds": ["subnet-1"]}}


@pytest.fixture(scope="module")
def aws() -> Any:
    schemas = Schemas("aws", CACHE)
    yield schemas
    schemas.close()


def faults(aws: Schemas, inputs: dict[str, Any], token: str = CLUSTER) -> dict[str, str]:
    schema = aws.resource(token)
    assert schema is not None
    return {failure.property: failure.reason for failure in validate(schema, inputs)}


def test_inputs_of_the_sdk_pass(aws: Schemas) -> None:
    assert faults(aws, GOOD) == {}


def test_an_unknown_name_is_refused_at_any_depth_with_the_nearest_one(aws: Schemas) -> None:
    found = faults(
        aws, {**GOOD, "vpcConfig": {"subnetIds": [], "endpointPrivateAcess": True}, "verison": "1.33"}
    )
    assert "endpointPrivateAccess" in found["vpcConfig.endpointPrivateAcess"]
    assert "endpoint_private_access in Python" in found["vpcConfig.endpointPrivateAcess"]
    assert "mean version" in found["verison"]


def test_snake_case_inside_a_dict_literal_names_the_wire_name(aws: Schemas) -> None:
    found = faults(aws, {**GOOD, "vpcConfig": {"subnetIds": [], "endpoint_private_access": True}})
    assert "endpointPrivateAccess" in found["vpcConfig.endpoint_private_access"]


def test_missing_and_mistyped_values_are_reported_at_once(aws: Schemas) -> None:
    network = {"subnetIds": "subnet-1", "endpointPublicAccess": "perhaps"}
    found = faults(
        aws, {"vpcConfig": network, "encryptionConfig": {"provider": {}, "resources": ["secrets"]}}
    )
    fields = ("roleArn", "vpcConfig.subnetIds", "vpcConfig.endpointPublicAccess")
    assert set(found) == {*fields, "encryptionConfig.provider.keyArn"}
    assert "list" in found["vpcConfig.subnetIds"]
    assert "missing" in found["roleArn"]


def test_an_unknown_value_counts_as_given(aws: Schemas) -> None:
    assert faults(aws, {"roleArn": UNKNOWN, "vpcConfig": UNKNOWN}) == {}


@pytest.mark.parametrize(
    ("value", "fits"), [(3, True), (3.5, False), ("3", True), ("three", False), (True, False), ([3], False)]
)
def test_whole_numbers(aws: Schemas, value: object, fits: bool) -> None:
    found = faults(aws, {"retentionInDays": value}, "aws:cloudwatch/logGroup:LogGroup")
    assert (found == {}) is fits


def test_a_union_takes_either_member(aws: Schemas) -> None:
    role = "aws:iam/role:Role"
    assert faults(aws, {"assumeRolePolicy": "{}"}, role) == {}
    assert "assumeRolePolicy" in "".join(faults(aws, {"assumeRolePolicy": ["x"]}, role))


def test_code_of_a_function_is_an_archive(aws: Schemas) -> None:
    token = "aws:lambda/function:Function"
    archive = {SIGNATURE: "0def7320c3a5731c473e5ecbe6d01bc7", "path": "x.zip"}
    assert faults(aws, {"role": "arn:aws:iam::123456789012:role/x", "code": archive}, token) == {}
    assert "code" in faults(aws, {"role": "arn:aws:iam::123456789012:role/x", "code": {"path": "x"}}, token)


def test_a_type_that_the_sdk_lacks_has_no_schema(aws: Schemas) -> None:
    assert aws.resource("aws:ec2/vcp:Vcp") is None


def test_a_cached_type_is_read_without_the_sdk(tmp_path: Path) -> None:
    first = Schemas("aws", tmp_path)
    schema = first.resource(CLUSTER)
    first.close()
    second = Schemas("aws", tmp_path)
    assert second.resource(CLUSTER) == schema
    assert second._worker is None


def test_a_broken_cache_file_is_read_again(tmp_path: Path) -> None:
    first = Schemas("aws", tmp_path)
    schema = first.resource(CLUSTER)
    for file in tmp_path.rglob("*.json"):
        file.write_text("{")
    again = Schemas("aws", tmp_path)
    try:
        assert again.resource(CLUSTER) == schema
    finally:
        first.close()
        again.close()


def test_kinds_of_kubernetes_are_known() -> None:
    schemas = Schemas("kubernetes", CACHE)
    try:
        schema = schemas.resource("kubernetes:batch/v1:Job")
        assert schema is not None
        pod = {"containers": [{"name": "a", "imagee": "b"}]}
        found = validate(
            schema, {"kind": "Job", "apiVersion": "batch/v1", "spec": {"template": {"spec": pod}}}
        )
        assert [failure.property for failure in found] == ["spec.template.spec.containers[0].imagee"]
    finally:
        schemas.close()
