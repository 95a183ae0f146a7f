"""Tokens for API servers of workers."""

import base64
import datetime
import json
import urllib.parse
from unittest import mock

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from google.auth import aws as google

from agents.clusters.logins import assumed, assuming, eks_token, identity_request

AT = datetime.datetime(2026, 11, 29, 7, 0, 0, tzinfo=datetime.UTC)
KEYS = {"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "secret/key+", "Token": "session/+=token"}


def test_the_token_of_eks_is_signed_as_botocore_signs_it() -> None:
    request = AWSRequest(
        "GET",
        "https://sts.eu-west-1.amazonaws.com/",
        params={"Action": "GetCallerIdentity", "Version": "2011-06-15"},
        headers={"x-k8s-aws-id": "large-east"},
    )
    keys = Credentials(KEYS["AccessKeyId"], KEYS["SecretAccessKey"], KEYS["Token"])
    with mock.patch("botocore.auth.get_current_datetime", return_value=AT.replace(tzinfo=None)):
        SigV4QueryAuth(keys, "sts", "eu-west-1", expires=60).add_auth(request)
    token = eks_token(KEYS, "large-east", "eu-west-1", AT)
    text = token.removeprefix("k8s-aws-v1.")
    address = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    assert sorted(address.split("?")[1].split("&")) == sorted(request.prepare().url.split("?")[1].split("&"))


def test_the_request_to_assume_a_role_is_signed_as_botocore_signs_it() -> None:
    role = "arn:aws:iam::123456789012:role/large-aws-usw2-manager"
    params = {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": role,
        "RoleSessionName": "trainstack-dispatcher",
        "DurationSeconds": "900",
    }
    request = AWSRequest("GET", "https://sts.us-west-2.amazonaws.com/", params=params)
    keys = Credentials(KEYS["AccessKeyId"], KEYS["SecretAccessKey"], KEYS["Token"])
    with mock.patch("botocore.auth.get_current_datetime", return_value=AT.replace(tzinfo=None)):
        SigV4QueryAuth(keys, "sts", "us-west-2", expires=60).add_auth(request)
    address = assuming(KEYS, role, "us-west-2", AT)
    assert sorted(address.split("?")[1].split("&")) == sorted(request.prepare().url.split("?")[1].split("&"))


def test_keys_of_an_assumed_role_are_read_from_the_response_of_sts() -> None:
    response = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
      <AssumedRoleUser><Arn>arn</Arn></AssumedRoleUser>
      <Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s/+</SecretAccessKey>
      <SessionToken>t=</SessionToken><Expiration>2026-11-29T07:15:00Z</Expiration></Credentials>
    </AssumeRoleResult></AssumeRoleResponse>"""
    assert assumed(response) == {"AccessKeyId": "ASIA", "SecretAccessKey": "s/+", "Token": "t="}


@pytest.mark.parametrize("response", ["", "{}", "<a/>", "<a><Credentials/></a>"])
def test_a_response_without_keys_is_an_error_that_is_retried(response: str) -> None:
    with pytest.raises(ValueError, match="STS"):
        assumed(response)


PROVIDER = "//iam.googleapis.com/projects/12/locations/global/workloadIdentityPools/manager-1/providers/aws"


def test_the_request_for_googles_sts_is_signed_as_botocore_signs_it() -> None:
    made = identity_request(KEYS, PROVIDER, "eu-west-1", AT)
    rows: list[dict[str, str]] = made["headers"]  # type: ignore[assignment]
    headers = {row["key"]: row["value"] for row in rows}
    request = AWSRequest(
        "POST",
        "https://sts.eu-west-1.amazonaws.com/",
        params={"Action": "GetCallerIdentity", "Version": "2011-06-15"},
        headers={"x-goog-cloud-target-resource": PROVIDER},
    )
    keys = Credentials(KEYS["AccessKeyId"], KEYS["SecretAccessKey"], KEYS["Token"])
    with mock.patch("botocore.auth.get_current_datetime", return_value=AT.replace(tzinfo=None)):
        SigV4Auth(keys, "sts", "eu-west-1").add_auth(request)
    assert headers["Authorization"] == request.headers["Authorization"]
    assert headers["x-amz-date"] == request.headers["X-Amz-Date"]


def test_the_request_for_googles_sts_has_the_form_of_googles_own_library() -> None:
    """Except that the signature covers the provider, as its documentation recommends."""
    supplied = google.AwsSecurityCredentials(KEYS["AccessKeyId"], KEYS["SecretAccessKey"], KEYS["Token"])
    supplier = mock.Mock(spec=google.AwsSecurityCredentialsSupplier)
    supplier.get_aws_region.return_value = "eu-west-1"
    supplier.get_aws_security_credentials.return_value = supplied
    library = google.Credentials(
        audience=PROVIDER,
        subject_token_type="urn:ietf:params:aws:token-type:aws4_request",
        aws_security_credentials_supplier=supplier,
    )
    wanted = json.loads(urllib.parse.unquote(library.retrieve_subject_token(mock.Mock())))
    made = identity_request(KEYS, PROVIDER, "eu-west-1", AT)
    assert (made["url"], made["method"], made.keys()) == (wanted["url"], wanted["method"], wanted.keys())
    rows: list[dict[str, str]] = made["headers"]  # type: ignore[assignment]
    assert {row["key"] for row in rows} == {row["key"] for row in wanted["headers"]}
    assert all(row.keys() == {"key", "value"} for row in rows)
