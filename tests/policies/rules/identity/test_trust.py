"""Unlimited trust, and accepted trust close to it."""

from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.identity.test_identity import ROLE, document, made, of_google
from tests.policies.rules.kubernetes.test_pods import results

ISSUER = "token.actions.githubusercontent.com"
FEDERATED = {"Federated": f"arn:aws:iam::123456789012:oidc-provider/{ISSUER}"}
AUDIENCE = {f"{ISSUER}:aud": "sts.amazonaws.com"}


def by_token(**condition: Any) -> dict[str, Any]:
    return {"Action": "sts:AssumeRoleWithWebIdentity", "Principal": FEDERATED, "Condition": condition}


def by(principal: Any, **condition: Any) -> dict[str, Any]:
    return {"Action": ["sts:AssumeRole", "sts:TagSession"], "Principal": principal, "Condition": condition}


SUBJECT = {f"{ISSUER}:sub": "repo:example/training:*"}
ANYBODY = (
    *(
        "repo:acme*",
        "repo:*/*",
        "repo:?*",
        "repo:acme?/x",
        "*:acme/x",
        "?*",
        "r*:acme/x",
        "repo:*:ref:refs/*",
    ),
    *("environment:prod", "ref:refs/heads/main", "repository_owner:acme*"),
)
COGNITO = {"Federated": "cognito-identity.amazonaws.com"}
ACME = (
    *("repo:acme/*", "repo:acme/x*", "repo:acme@1/x@2:*", "repository_owner:acme:*"),
    *("repository_id:12:ref:*", "job_workflow_ref:acme/w/.github/*"),
)
OF_ACCOUNT = {"aws:SourceAccount": "123456789012"}
CLUSTER = "oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF"


def of_issuer(issuer: str, subject: str) -> dict[str, Any]:
    """Trust in a pattern of subjects of an issuer."""
    condition = {"StringEquals": {f"{issuer}:aud": "a"}, "StringLike": {f"{issuer}:sub": subject}}
    federated = {"Federated": f"arn:aws:iam::123456789012:oidc-provider/{issuer}"}
    return {
        "Action": "sts:AssumeRoleWithWebIdentity", "Principal": federated, "Condition": condition
    }  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (by_token(StringEquals=AUDIENCE, StringLike=SUBJECT), "pass"),
        (by_token(StringEquals={**AUDIENCE, **SUBJECT}), "pass"),
        (by_token(StringEquals=AUDIENCE), "fail"),
        (by_token(StringLike=SUBJECT), "fail"),
        (by_token(StringEquals=AUDIENCE, StringLike={f"{ISSUER}:sub": "*"}), "fail"),
        (by_token(StringEquals=AUDIENCE, StringLike={f"{ISSUER}:sub": "repo:*"}), "fail"),
        (by_token(StringEquals=AUDIENCE, StringLike={f"{ISSUER}:sub": "system:serviceaccount:*:*"}), "fail"),
        (by_token(StringEquals=AUDIENCE, StringEqualsIfExists=SUBJECT), "fail"),
        (by_token(**{"StringEquals": AUDIENCE, "ForAllValues:StringLike": SUBJECT}), "fail"),
        (by_token(**{"StringEquals": AUDIENCE, "ForAnyValue:StringLike": SUBJECT}), "pass"),
        # Accounts of GitHub that strangers register, and other claims that they choose (CKV_AWS_358).
        *((by_token(StringEquals=AUDIENCE, StringLike={f"{ISSUER}:sub": one}), "fail") for one in ANYBODY),
        *((by_token(StringEquals=AUDIENCE, StringLike={f"{ISSUER}:sub": one}), "pass") for one in ACME),
        (
            by_token(StringEquals=AUDIENCE, StringLike={f"{ISSUER}:sub": ["repo:acme/x:*", "repo:acme*"]}),
            "fail",
        ),
        (by_token(StringEquals={**AUDIENCE, f"{ISSUER}:sub": "environment:prod"}), "fail"),
        (of_issuer("gitlab.com", "project_path:acme/*"), "pass"),
        (of_issuer("gitlab.com", "project_path:acme*"), "fail"),
        (of_issuer("app.terraform.io", "organization:acme:project:*"), "pass"),
        (of_issuer("app.terraform.io", "organization:*:project:p:*"), "fail"),
        (of_issuer(CLUSTER, "system:serviceaccount:train:*"), "pass"),
        (of_issuer(CLUSTER, "system:serviceaccount:*:trainer"), "fail"),
        (of_issuer(CLUSTER, "system:serviceaccount:t*:trainer"), "pass"),
        (of_issuer(CLUSTER, "system:*"), "fail"),
        (of_issuer("login.example.com", "team-*"), "pass"),
        # Servers of one's own have the subjects of gitlab.com and github.com.
        (of_issuer("gitlab.example.com", "project_path:*"), "fail"),
        (of_issuer("gitlab.example.com", "project_path:acme*"), "fail"),
        (of_issuer("gitlab.example.com", "project_path:*:ref_type:branch:ref:main"), "fail"),
        (of_issuer("gitlab.example.com", "project_path:acme/*"), "pass"),
        (of_issuer("git.example.com/_services/token", "repo:*"), "fail"),
        (of_issuer("git.example.com/_services/token", "repo:acme/*"), "pass"),
        (of_issuer("git.example.com/_services/token", "repository_owner:acme:*"), "pass"),
        (of_issuer("login.example.com", "*-team"), "fail"),
        # Roles of any account have any name.
        (by("*", ArnLike={"aws:PrincipalArn": "arn:aws:iam::*:role/*"}), "fail"),
        (by("*", StringLike={"aws:PrincipalArn": "arn:aws:iam::*:role/deployer"}), "fail"),
        (by("*", StringLike={"aws:PrincipalArn": "arn:aws:iam::1234*"}), "fail"),
        (by("*", StringLike={"aws:PrincipalArn": "*:123456789012:role/x"}), "fail"),
        (by("*", ArnEquals={"aws:PrincipalArn": "arn:aws:iam::*:role/x"}), "fail"),
        (by("*", ArnLike={"aws:PrincipalArn": "arn:aws:iam::123456789012:role/*"}), "pass"),
        (by("*", StringLike={"aws:PrincipalArn": "arn:aws*:iam::123456789012:role/x*"}), "pass"),
        (by("*", StringLike={"aws:PrincipalAccount": "1234????????"}), "fail"),
        (by("*", StringLike={"aws:PrincipalAccount": "123456789012"}), "pass"),
        (by("*", StringLike={"aws:PrincipalOrgID": "o-*"}), "fail"),
        (by("*", StringLike={"aws:PrincipalOrgID": "o-a*"}), "fail"),
        (by("*", StringEquals={"aws:PrincipalAccount": "${aws:PrincipalAccount}"}), "fail"),
        (by("*", **{"ForAnyValue:StringLike": {"aws:PrincipalOrgPaths": "o-1/r-1/*"}}), "pass"),
        (by("*", **{"ForAnyValue:StringLike": {"aws:PrincipalOrgPaths": "o-*/r-1/*"}}), "fail"),
        (
            by({"Service": "eks.amazonaws.com"}, ArnLike={"aws:SourceArn": "arn:aws:eks:*:*:cluster/x"}),
            "fail",
        ),
        (
            by({"Service": "eks.amazonaws.com"}, ArnLike={"aws:SourceArn": "arn:aws:eks:*:123456789012:*"}),
            "pass",
        ),
        (by({"Service": "EKS.amazonaws.com"}), "fail"),
        (by(COGNITO), "fail"),
        (by(COGNITO, StringEquals={"cognito-identity.amazonaws.com:aud": "us-east-1:pool"}), "pass"),
        (by({"Service": "ec2.amazonaws.com"}), "pass"),
        (by({"Service": "pods.eks.amazonaws.com"}), "pass"),
        (by({"Service": ["ec2.amazonaws.com", "vpc-flow-logs.amazonaws.com"]}), "fail"),
        (by({"Service": "vpc-flow-logs.amazonaws.com"}, StringEquals=OF_ACCOUNT), "pass"),
        (by("*"), "fail"),
        (by({"AWS": "*"}, StringEquals={"aws:PrincipalOrgID": "o-1"}), "pass"),
        (by({"AWS": "arn:aws:iam::210987654321:root"}), "pass"),
        ({**by("*"), "Effect": "Deny"}, "pass"),
        ({"Action": "sts:AssumeRole", "NotPrincipal": {"AWS": "arn:aws:iam::1:root"}}, "fail"),
        ({"NotAction": "s3:*", "Principal": "*"}, "fail"),
        ({"NotAction": "sts:*", "Principal": "*"}, "pass"),
    ],
)
def test_trust(statement: Any, expected: str) -> None:
    assert results("MLS-IAM-04", made(ROLE, assumeRolePolicy=document(**statement))) == {expected}


@pytest.mark.parametrize(
    ("trusting", "expected"),
    [
        (made("gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider", oidc={"a": 1}), "fail"),
        (made("gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider", aws={}), "not-applicable"),
        (made("gcp:serviceaccount/iAMBinding:IAMBinding", members=["allUsers"]), "fail"),
        (made("gcp:serviceaccount/iAMMember:IAMMember", member="allAuthenticatedUsers"), "fail"),
        (made("gcp:serviceaccount/iAMPolicy:IAMPolicy", policyData=of_google(members=["allUsers"])), "fail"),
        (made("gcp:serviceaccount/iAMPolicy:IAMPolicy", policyData=of_google()), "pass"),
        (made("gcp:serviceaccount/iAMMember:IAMMember", member="principalSet://goog/public:all"), "fail"),
        (
            made(
                "gcp:serviceaccount/iAMMember:IAMMember",
                member="principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/*",
            ),
            "fail",
        ),
        (made("gcp:serviceaccount/iAMMember:IAMMember", member="serviceAccount:p.svc.id.goog[a/b]"), "pass"),
    ],
)
def test_trust_of_google(trusting: Resource, expected: str) -> None:
    assert results("MLS-IAM-04", trusting) == {expected}
