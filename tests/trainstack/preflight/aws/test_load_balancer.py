"""Checks of a load balancer: an issued certificate for its host, a secret with a value."""

import datetime
from typing import Any

import pytest

from tests.stacks.stack_files import LOAD_BALANCER
from tests.trainstack.preflight.aws.asking import Cloud, account, asked
from trainstack.preflight.answers import State
from trainstack.preflight.aws import load_balancer

CERTIFICATE = LOAD_BALANCER["certificate_arn"]
SECRET = LOAD_BALANCER["oidc"]["client_secret_arn"]
ISSUED: dict[str, Any] = {
    "CertificateArn": CERTIFICATE,
    "DomainName": "mlflow.example.com",
    "Status": "ISSUED",
    "NotAfter": datetime.datetime(2027, 3, 1, tzinfo=datetime.UTC),
}


def certificate(**changes: Any) -> Any:
    answer = {"Certificate": {**ISSUED, **changes}}
    cloud = Cloud().answers("acm", "describe_certificate", answer, CertificateArn=CERTIFICATE)
    return asked(load_balancer.certificate, account(cloud, on__load_balancer=LOAD_BALANCER))


def secret(**found: Any) -> Any:
    cloud = Cloud().answers("secretsmanager", "describe_secret", {"Name": "mlflow", **found}, SecretId=SECRET)
    return asked(load_balancer.client_secret, account(cloud, on__load_balancer=LOAD_BALANCER))


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"DomainName": "*.example.com"},
        {"DomainName": "a.b", "SubjectAlternativeNames": ["a.b", "*.example.com"]},
    ],
)
def test_a_certificate_for_the_host_says_until_when(names: dict[str, Any]) -> None:
    (answer,) = certificate(**names)
    assert answer.state is State.READY
    assert "mlflow.example.com" in answer.text and "2027-03-01" in answer.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"Status": "PENDING_VALIDATION"}, "is PENDING_VALIDATION"),
        ({"Status": "EXPIRED"}, "is EXPIRED"),
        ({"DomainName": "example.com"}, "is for example.com,"),
        ({"DomainName": "*.com"}, "is for *.com,"),
    ],
)
def test_an_unsuitable_certificate_is_reported(changes: dict[str, Any], words: str) -> None:
    (answer,) = certificate(**changes)
    assert answer.state is State.SHORT and words in answer.text and answer.fix


def test_a_secret_with_a_value_is_not_read() -> None:
    (answer,) = secret(VersionIdsToStages={"1" * 32: ["AWSCURRENT"]})
    assert answer.state is State.READY


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, "no value"),
        ({"VersionIdsToStages": {"1" * 32: ["AWSPENDING"]}}, "no value"),
        ({"DeletedDate": datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)}, "is being deleted"),
    ],
)
def test_a_secret_without_a_value_is_reported(found: dict[str, Any], words: str) -> None:
    (answer,) = secret(**found)
    assert answer.state is State.SHORT and words in answer.text


def test_a_missing_resource_is_short_and_a_denied_request_unknown() -> None:
    cloud = Cloud().refuses("acm", "describe_certificate", "ResourceNotFoundException")
    cloud.refuses("secretsmanager", "describe_secret", "AccessDeniedException")
    of = account(cloud, on__load_balancer=LOAD_BALANCER)
    (answer,) = asked(load_balancer.certificate, of)
    assert answer.state is State.SHORT and "not exist" in answer.text
    (answer,) = asked(load_balancer.client_secret, of)
    assert answer.state is State.UNKNOWN and "docs/reference/preflight.md" in answer.fix


def test_without_a_load_balancer_nothing_is_asked() -> None:
    assert asked(load_balancer.certificate, account(Cloud())) == []
    assert asked(load_balancer.client_secret, account(Cloud())) == []
