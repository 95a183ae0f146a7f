"""Service accounts with roles that IAM would not give to their pods."""

import json
from typing import Any

import pytest

from tests.rehearsal.kubernetes.harness import ACCOUNT, ACCOUNT_KIND, RELEASE, Rehearsed

ISSUER = "oidc.eks.eu-central-1.amazonaws.com/id/ABCDEF0123"
OTHER = "oidc.eks.eu-central-1.amazonaws.com/id/0123456789"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/reader"
SUBJECT = "system:serviceaccount:lab:reader"


def _trust(issuer: str, **conditions: Any) -> str:
    federated = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{issuer}"
    statement = {
        "Effect": "Allow",
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Principal": {"Federated": federated},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [{**statement, "Condition": conditions}]})


def _equals(issuer: str = ISSUER, sub: str = SUBJECT, aud: str = "sts.amazonaws.com") -> dict[str, Any]:
    return {"StringEquals": {f"{issuer}:sub": sub, f"{issuer}:aud": aud}}


@pytest.fixture(autouse=True)
def _issuer(rehearsed: Rehearsed) -> None:
    (cluster,) = rehearsed.state.find(type="aws:eks/cluster:Cluster")
    known = {"identities": [{"oidcs": [{"issuer": f"https://{ISSUER}"}]}]}
    rehearsed.state.replace(cluster, inputs=cluster.inputs, outputs={**cluster.outputs, **known})
    rehearsed.namespace()


def _warnings(rehearsed: Rehearsed, trust: str, **annotations: str) -> list[str]:
    rehearsed.aws("aws:iam/role:Role", "reader", {"assumeRolePolicy": trust}, {"arn": ROLE, "name": "reader"})
    metadata = {"annotations": {"eks.amazonaws.com/role-arn": ROLE, **annotations}, "namespace": "lab"}
    rehearsed.create(ACCOUNT_KIND, {"metadata": {"name": "reader", **metadata}}, "reader")
    return [text for severity, text in rehearsed.log if severity == "warning"]


@pytest.mark.parametrize(
    ("trust", "why"),
    [
        (_trust(OTHER, **_equals(OTHER)), f"it trusts {OTHER}, and the cluster's issuer is {ISSUER}"),
        (_trust(ISSUER, **_equals(sub="system:serviceaccount:lab:writer")), f"and the token has {SUBJECT}"),
        (_trust(ISSUER, **_equals(aud="sts.example.com")), "lab:reader and sts.amazonaws.com"),
        (_trust(ISSUER, **_equals(OTHER)), f"{OTHER}:sub"),
        (_trust(ISSUER, StringLike={f"{ISSUER}:sub": "system:serviceaccount:team-*:*"}), "team-"),
        (json.dumps({"Statement": []}), f"no token of {ISSUER}"),
    ],
)
def test_a_token_that_the_role_does_not_trust_is_reported(rehearsed: Rehearsed, trust: str, why: str) -> None:
    (said,) = _warnings(rehearsed, trust)
    assert "lab/reader" in said and "AccessDenied" in said and why in said
    assert "Not authorized to perform sts:AssumeRoleWithWebIdentity" in said


@pytest.mark.parametrize(
    "trust",
    [
        _trust(ISSUER, **_equals()),
        _trust(ISSUER),
        _trust(ISSUER, StringLike={f"{ISSUER}:sub": "system:serviceaccount:lab:*"}),
        _trust(ISSUER, **_equals(), Bool={"aws:SecureTransport": "true"}),
    ],
)
def test_a_trusted_token_is_not_reported(rehearsed: Rehearsed, trust: str) -> None:
    assert _warnings(rehearsed, trust) == []


def test_the_audience_may_be_another_one(rehearsed: Rehearsed) -> None:
    trust = _trust(ISSUER, **_equals(aud="sts.example.com"))
    assert _warnings(rehearsed, trust, **{"eks.amazonaws.com/audience": "sts.example.com"}) == []


def test_accounts_of_a_chart_are_checked(rehearsed: Rehearsed) -> None:
    trust = _trust(ISSUER, **_equals())
    rehearsed.aws("aws:iam/role:Role", "reader", {"assumeRolePolicy": trust}, {"arn": ROLE, "name": "reader"})
    for name, warned in (("reader", False), ("writer", True)):
        account = {"create": True, "name": name, "annotations": {"eks.amazonaws.com/role-arn": ROLE}}
        chart = {"chart": "metrics-server", "name": name, "namespace": "lab"}
        repository = {"repo": "https://kubernetes-sigs.github.io/metrics-server"}
        values = {"controller": [{"serviceAccount": account}]}
        rehearsed.log.clear()
        rehearsed.create(RELEASE, {**chart, "repositoryOpts": repository, "values": values}, name)
        assert any(f"lab/{name}" in text and "AccessDenied" in text for _, text in rehearsed.log) == warned
