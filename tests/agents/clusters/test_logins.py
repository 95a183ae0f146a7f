"""Tokens for API servers of workers."""

import base64
import datetime
from unittest import mock

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from agents.clusters.logins import eks_token

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
