"""Policy documents in every form, unlimited trust, and accepted alternatives."""

import json
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.kubernetes.test_pods import judge, one, results

ROLE, POLICY = "aws:iam/role:Role", "aws:iam/policy:Policy"
NODES, EKS, GKE = ("aws:eks/nodeGroup:NodeGroup", "aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster")
ADMIN = "arn:aws-us-gov:iam::aws:policy/AdministratorAccess"


def made(kind: str, name: str = "it", /, **props: Any) -> Resource:
    arn = f"arn:aws:x:us-east-1:123456789012:{name}"
    return Resource(kind, name, name, id=name, region="us-east-1", props={"arn": arn, **props}, asked=props)


def document(**statement: Any) -> str:
    return json.dumps({"Statement": {"Effect": "Allow", **statement}})


EVERYTHING = document(Action="*", Resource="*")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EVERYTHING, "fail"),
        (document(Action=["s3:GetObject", "*:*"], Resource=["arn:aws:s3:::a", "*"]), "fail"),
        (document(Action="*", Resource="arn:aws:*:*:*:*"), "fail"),
        (document(NotAction="iam:*", Resource="*"), "fail"),
        # The document of PowerUserAccess; then lists that leave out everything.
        (document(NotAction=["iam:*", "organizations:*", "account:*"], Resource="*"), "fail"),
        (document(NotAction=["*"], Resource="*"), "pass"),
        (document(Action="*", NotResource="arn:aws:s3:::a"), "fail"),
        (document(Action="*", NotResource=["arn:aws:s3:::a", "arn:aws:s3:::a/*"]), "fail"),
        (document(Action="*", NotResource="*"), "pass"),
        (document(Action="s3:*", NotResource="arn:aws:s3:::a"), "pass"),
        (document(NotAction="iam:*", NotResource="arn:aws:s3:::a"), "fail"),
        (document(NotAction="iam:*", Resource="arn:aws:s3:::a"), "pass"),
        (document(Effect="Deny", NotAction="s3:*", NotResource="arn:aws:s3:::a"), "pass"),
        (document(Action="?*", Resource="arn:*"), "fail"),
        (document(Action="**:*", Resource="arn:aws:*"), "fail"),
        (document(Action=[f"{letter}*" for letter in ascii_lowercase], Resource="*"), "fail"),
        (document(Action=[f"{letter}*:*" for letter in ascii_uppercase], Resource="*"), "fail"),
        (document(Action=[f"{letter}*" for letter in ascii_lowercase[1:]], Resource="*"), "pass"),
        # CKV_AWS_63 also refuses every action on one bucket: of other resources it allows none.
        (document(Action="*", Resource="arn:aws:s3:::a/*"), "pass"),
        (document(Action="ec2:*", Resource="*"), "pass"),
        (document(Effect="Deny", Action="*", Resource="*"), "pass"),
        (json.dumps({"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}), "pass"),
        ("no document", "undetermined"),
    ],
)
def test_everything_in_all_its_writings(text: str, expected: str) -> None:
    assert results("MLS-IAM-01", made(POLICY, policy=text)) == {expected}
    assert results("MLS-IAM-01", made(ROLE, inlinePolicies=[{"policy": text}])) == {expected}


def test_administrators_by_attachment() -> None:
    assert results("MLS-IAM-01", made("aws:iam/policyAttachment:PolicyAttachment", policyArn=ADMIN)) == {
        "fail"
    }
    assert results("MLS-IAM-01", made(ROLE, managedPolicyArns=[ADMIN])) == {"fail"}
    for name, expected in {"PowerUserAccess": "fail", "ReadOnlyAccess": "pass"}.items():
        arn = f"arn:aws:iam::aws:policy/{name}"
        assert results("MLS-IAM-01", made(ROLE, managedPolicyArns=[arn])) == {expected}


USER_LIST = "aws:iam/userPolicyAttachmentsExclusive:UserPolicyAttachmentsExclusive"
SET_ATTACHMENT = "aws:ssoadmin/managedPolicyAttachment:ManagedPolicyAttachment"
SET_POLICY = "aws:ssoadmin/permissionSetInlinePolicy:PermissionSetInlinePolicy"


def of_google(**binding: Any) -> str:
    return json.dumps({"bindings": [{"members": ["user:a@example.com"], **binding}]})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (made(USER_LIST, policyArns=[ADMIN]), "fail"),
        (made(SET_ATTACHMENT, managedPolicyArn=ADMIN), "fail"),
        (made(SET_POLICY, inlinePolicy=EVERYTHING), "fail"),
        (made("gcp:projects/iAMPolicy:IAMPolicy", policyData=of_google(role="roles/owner")), "fail"),
        (made("gcp:projects/iAMPolicy:IAMPolicy", policyData=of_google(role="roles/viewer")), "pass"),
        (made("gcp:projects/iAMPolicy:IAMPolicy", policyData="no policy"), "undetermined"),
    ],
)  # fmt: skip
def test_everything_by_other_types(source: Resource, expected: str) -> None:
    assert results("MLS-IAM-01", source) == {expected}


def test_a_permissions_boundary_grants_nothing_until_it_is_attached() -> None:
    bound, role = made(POLICY, policy=EVERYTHING), made(ROLE, "r", permissionsBoundary="it")
    assert results("MLS-IAM-01", bound, role) == {"not-applicable", "pass"}
    attached = made("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "a", role="r", policyArn="it")
    assert "fail" in results("MLS-IAM-01", bound, role, attached)


def test_the_agent_of_google_has_its_role() -> None:
    def member(who: str) -> Resource:
        return made("gcp:projects/iAMBinding:IAMBinding", role="roles/editor", members=[who])

    assert results("MLS-IAM-01", member("serviceAccount:1@cloudservices.gserviceaccount.com")) == {"pass"}
    assert results("MLS-IAM-01", member("user:a@example.com")) == {"fail"}


READS = document(Action=["ecr:*", "S3:GetObject"], Resource="*")
OF_NODES = made(NODES, "pool", nodeRoleArn="it")
ENTRY = "aws:eks/accessEntry:AccessEntry"


def attached(policy: str) -> Resource:
    arn = policy if ":" in policy else f"arn:aws:iam::aws:policy/{policy}"
    return made("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "a", role="it", policyArn=arn)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([OF_NODES], "pass"),
        ([OF_NODES, made("aws:iam/rolePolicy:RolePolicy", "p", role="it", policy=READS)], "fail"),
        ([made("aws:iam/rolePolicy:RolePolicy", "p", role="it", policy=READS)], "not-applicable"),
        ([made(EKS, "c", computeConfig={"nodeRoleArn": "it"}), attached("AmazonS3FullAccess")], "fail"),
        ([made(ENTRY, "e", principalArn="it", type="EC2_LINUX"), attached("ReadOnlyAccess")], "fail"),
        ([made(ENTRY, "e", principalArn="it"), attached("ReadOnlyAccess")], "not-applicable"),
        ([OF_NODES, attached("AmazonSSMManagedInstanceCore")], "pass"),
        ([OF_NODES, attached("AmazonBraketFullAccess")], "undetermined"),
        ([OF_NODES, attached("arn:aws:iam::123456789012:policy/elsewhere")], "undetermined"),
    ],
)
def test_nodes_reach_no_data(others: list[Resource], expected: str) -> None:
    found = judge("MLS-IAM-02", made(ROLE), *others)
    assert {one.result for one in found if one.resource and one.resource.kind != NODES} == {expected}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (document(Action="s?:Get*", Resource="*"), "fail"),
        (document(Action="*:Get*", Resource="*"), "fail"),
        (document(NotAction="iam:*", Resource="*"), "fail"),
        (document(NotAction=["s3:Put*", "secretsmanager:*"], NotResource="arn:aws:s3:::a"), "fail"),
        (document(NotAction=["S3*:*", "secretsmanager:*", "dynamodb:*", "rds-*:*"], Resource="*"), "pass"),
        (document(Action="ec2:*", Resource="*"), "pass"),
    ],
)
def test_statements_that_reach_data(statement: str, expected: str) -> None:
    own = made("aws:iam/rolePolicy:RolePolicy", "p", role="it", policy=statement)
    assert results("MLS-IAM-02", made(ROLE), OF_NODES, own) == {expected, "not-applicable"}


POOL = "gcp:container/nodePool:NodePool"
WITH_IDENTITIES = made(GKE, "c", workloadIdentityConfig={"workloadPool": "p.svc.id.goog"})


@pytest.mark.parametrize(
    ("pool", "others", "expected"),
    [
        (made(POOL, cluster="elsewhere"), [], "undetermined"),
        (made(POOL, cluster="elsewhere", nodeConfig={"machineType": "e2-medium"}), [], "undetermined"),
        (made(POOL, cluster="c"), [WITH_IDENTITIES], "pass"),
        (
            made(POOL, cluster="elsewhere", nodeConfig={"workloadMetadataConfig": {"mode": "GKE_METADATA"}}),
            [],
            "pass",
        ),
        (
            made(POOL, cluster="elsewhere", nodeConfig={"workloadMetadataConfig": {"mode": "GCE_METADATA"}}),
            [],
            "fail",
        ),
        (made(NODES, nodeRoleArn="arn:aws:iam::123456789012:role/elsewhere"), [], "undetermined"),
        (made(NODES, nodeRoleArn="r"), [made(ROLE, "r")], "not-applicable"),
    ],
)
def test_pools_whose_parent_is_elsewhere(pool: Resource, others: list[Resource], expected: str) -> None:
    found = judge("MLS-IAM-02", pool, *others)
    assert {one.result for one in found if one.resource is pool} == {expected}


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (made(GKE, enableAutopilot=True), "pass"),
        (made(GKE), "fail"),
        (
            made(
                GKE,
                workloadIdentityConfig={"workloadPool": "p.svc.id.goog"},
                nodePools=[{"nodeConfig": {"workloadMetadataConfig": {"mode": "GCE_METADATA"}}}],
            ),
            "fail",
        ),
    ],
)
def test_pods_of_gke_have_identities(cluster: Resource, expected: str) -> None:
    assert results("MLS-IAM-02", cluster) == {expected}


def test_a_key_that_is_switched_off_is_none() -> None:
    kind = "aws:iam/accessKey:AccessKey"
    assert results("MLS-IAM-03", made(kind, status="Inactive")) == {"pass"}
    assert results("MLS-IAM-03", made(kind, status="Active")) == {"fail"}


SYSTEM = {"namespace": "kube-system"}
MASTERS = [{"kind": "Group", "name": "system:masters"}]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (made(EKS, accessConfig={"authenticationMode": "API"}), "pass"),
        (made(EKS), "fail"),
        (one("rbac.authorization.k8s.io/v1:ClusterRoleBinding", subjects=MASTERS), "fail"),
        (
            one(
                "core/v1:ConfigMap",
                "aws-auth",
                metadata=SYSTEM,
                data={"mapRoles": "- groups: [system:masters]"},
            ),
            "fail",
        ),
        (
            one(
                "core/v1:ConfigMap",
                "aws-auth",
                metadata=SYSTEM,
                data={"mapRoles": "- groups: [system:nodes]"},
            ),
            "pass",
        ),
        (one("core/v1:ConfigMap", "settings", data={"mapRoles": "system:masters"}), "not-applicable"),
    ],
)
def test_access(source: Resource, expected: str) -> None:
    assert results("MLS-IAM-06", source) == {expected}


KEY, GOOGLE_KEY = "aws:kms/key:Key", "gcp:kms/cryptoKey:CryptoKey"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (made(KEY), "fail"),
        (made(KEY, customerMasterKeySpec="RSA_4096"), "not-applicable"),
        (made(KEY, customKeyStoreId="cks-1"), "not-applicable"),
        (made(GOOGLE_KEY, purpose="ASYMMETRIC_SIGN"), "not-applicable"),
        (made(GOOGLE_KEY, versionTemplate={"protectionLevel": "EXTERNAL"}), "not-applicable"),
        (made(GKE), "fail"),
        (made(GKE, databaseEncryption={"state": "ENCRYPTED", "keyName": "k"}), "pass"),
        (made(EKS, encryptionConfig={"provider": {"keyArn": "k"}, "resources": ["secrets"]}), "pass"),
    ],
)
def test_keys(source: Resource, expected: str) -> None:
    assert results("MLS-IAM-07", source) == {expected}


CAPABILITY, ATTACHED = "aws:eks/capability:Capability", "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
LISTED = "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive"


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], "pass"),
        ([made(ATTACHED, "a", role="acker", policyArn=ADMIN)], "fail"),
        ([made(LISTED, "a", roleName="acker", policyArns=[ADMIN])], "fail"),
        ([made("aws:iam/policyAttachment:PolicyAttachment", "a", roles=["acker"], policyArn=ADMIN)], "fail"),
        ([made("aws:iam/rolePolicy:RolePolicy", "a", role="acker", policy=EVERYTHING)], "fail"),
        (
            [made(ATTACHED, "a", role="acker", policyArn="own"), made(POLICY, "own", policy=EVERYTHING)],
            "fail",
        ),
        ([made(ATTACHED, "a", role="acker", policyArn="own"), made(POLICY, "own", policy="{}")], "pass"),
        ([made(ATTACHED, "a", role="acker", policyArn="arn:aws:iam::1:policy/foreign")], "undetermined"),
    ],
)
def test_what_the_role_of_a_capability_may_do(others: list[Resource], expected: str) -> None:
    capability = made(CAPABILITY, "ack", roleArn="acker")
    assert results("MLS-IAM-08", capability, made(ROLE, "acker"), *others) == {expected}


def test_the_role_of_a_capability_has_policies_of_its_own() -> None:
    def role(**props: Any) -> set[str]:
        return results("MLS-IAM-08", made(CAPABILITY, "ack", roleArn="acker"), made(ROLE, "acker", **props))

    assert role(managedPolicyArns=[ADMIN]) == {"fail"}
    assert role(inlinePolicies=[{"policy": document(Action="iam:*", Resource="*")}]) == {"fail"}
    assert role(inlinePolicies=[{"policy": document(NotAction="s3:*", Resource="*")}]) == {"fail"}
    assert role(inlinePolicies=[{"policy": document(Action="s3:*", Resource="*")}]) == {"pass"}
    assert role(inlinePolicies=[{"policy": document(Action="IAM:*", Resource="*")}]) == {"fail"}
    assert role(inlinePolicies=[{"policy": document(Action="i?m:*", Resource="*")}]) == {"fail"}
    assert role(inlinePolicies=[{"policy": document(Action="iam:Get*", Resource="*")}]) == {"pass"}
    assert results("MLS-IAM-08", made(CAPABILITY, "ack", roleArn="acker")) == {"undetermined"}
