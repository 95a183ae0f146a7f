"""Examples of the rules IAM."""

import json
from typing import Any

from tests.policies.recording.bases import CLUSTER, NODE_GROUP, NODE_ROLE, with_changes
from tests.policies.recording.example import Example, Made


def _document(**statement: object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})


def _policy(action: str, resource: str) -> dict[str, Made]:
    document = _document(Action=action, Resource=resource)
    return {"rights": Made("aws:iam/policy:Policy", {"policy": document})}


def _member(role: str) -> dict[str, Made]:
    props = {"project": "example", "role": role, "member": "group:training@example.com"}
    return {"rights": Made("gcp:projects/iAMMember:IAMMember", props)}


def _nodes(policy: str) -> dict[str, Made]:
    attached = {"role": "$nodes.name", "policyArn": f"arn:aws:iam::aws:policy/{policy}"}
    return {
        **CLUSTER,
        **NODE_ROLE,
        "attached": Made("aws:iam/rolePolicyAttachment:RolePolicyAttachment", attached),
        "pool": NODE_GROUP.but(instanceTypes=["m7i.large"]),
    }


def _gke(**props: object) -> dict[str, Made]:
    made = {"name": "train", "location": "us-central1", "initialNodeCount": 1, **props}
    return {"cluster": Made("gcp:container/cluster:Cluster", made)}


def _trust(**equal: str) -> dict[str, Made]:
    issuer = "oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
    condition: dict[str, Any] = {f"{issuer}:{key}": value for key, value in equal.items()}
    trust = _document(
        Action="sts:AssumeRoleWithWebIdentity",
        Principal={"Federated": f"arn:aws:iam::123456789012:oidc-provider/{issuer}"},
        Condition={"StringEquals": condition},
    )
    return {"role": Made("aws:iam/role:Role", {"assumeRolePolicy": trust})}


def _pod_of(member: str) -> dict[str, Made]:
    return {
        **_gke(workloadIdentityConfig={"workloadPool": "example.svc.id.goog"}),
        "account": Made("gcp:serviceaccount/account:Account", {"accountId": "training"}),
        "user": Made(
            "gcp:serviceaccount/iAMMember:IAMMember",
            {"serviceAccountId": "$account.name", "role": "roles/iam.workloadIdentityUser", "member": member},
            after=["cluster"],
        ),
    }


def _metadata(hops: int) -> dict[str, Made]:
    options = {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": hops}
    return {"nodes": Made("aws:ec2/launchTemplate:LaunchTemplate", {"metadataOptions": options})}


def _queue(condition: dict[str, Any]) -> dict[str, Made]:
    sends = _document(
        Action="sqs:SendMessage",
        Principal="*",
        Resource="arn:aws:sqs:us-east-1:123456789012:jobs",
        **({"Condition": condition} if condition else {}),
    )
    return {"queue": Made("aws:sqs/queue:Queue", {"name": "jobs", "policy": sends})}


def _secret(member: str) -> dict[str, Made]:
    props = {"secretId": "token", "role": "roles/secretmanager.secretAccessor", "member": member}
    return {
        "secret": Made("gcp:secretmanager/secret:Secret", {"secretId": "token", "replication": {"auto": {}}}),
        "reader": Made("gcp:secretmanager/secretIamMember:SecretIamMember", props, after=["secret"]),
    }


_KEY = Made("aws:kms/key:Key", {"enableKeyRotation": True})
_ENCRYPTED = {"encryptionConfig": {"provider": {"keyArn": "$key.arn"}, "resources": ["secrets"]}}
_ACCOUNT = {"account": Made("gcp:serviceaccount/account:Account", {"accountId": "training"})}
_POD = "serviceAccount:example.svc.id.goog[train/trainer]"
_RING = Made("gcp:kms/keyRing:KeyRing", {"name": "ring", "location": "us-central1"})
_GOOGLE_KEY = {"name": "data", "keyRing": "$ring"}

EXAMPLES = {
    "MLS-IAM-01": Example(
        _policy("s3:GetObject", "arn:aws:s3:::datasets/*"),
        _policy("*", "*"),
        at="rights",
        path="policy.Statement[0]",
    ),
    "MLS-IAM-01.gcp": Example(
        _member("roles/storage.objectViewer"), _member("roles/editor"), at="rights", path="role"
    ),
    "MLS-IAM-02": Example(
        _nodes("AmazonEKSWorkerNodePolicy"), _nodes("AmazonS3ReadOnlyAccess"), at="attached", path="policyArn"
    ),
    "MLS-IAM-02.gke": Example(
        _gke(workloadIdentityConfig={"workloadPool": "example.svc.id.goog"}),
        _gke(),
        at="cluster",
        path="workloadIdentityConfig.workloadPool",
    ),
    "MLS-IAM-03": Example(
        {"user": Made("aws:iam/user:User", {"name": "pipeline"})},
        {
            "user": Made("aws:iam/user:User", {"name": "pipeline"}),
            "key": Made("aws:iam/accessKey:AccessKey", {"user": "$user.name"}),
        },
        at="key",
    ),
    "MLS-IAM-03.gcp": Example(
        _ACCOUNT,
        {**_ACCOUNT, "key": Made("gcp:serviceaccount/key:Key", {"serviceAccountId": "$account.name"})},
        at="key",
    ),
    "MLS-IAM-04": Example(
        _trust(sub="system:serviceaccount:train:trainer", aud="sts.amazonaws.com"),
        _trust(aud="sts.amazonaws.com"),
        at="role",
        path="assumeRolePolicy.Statement[0]",
    ),
    "MLS-IAM-04.gcp": Example(_pod_of(_POD), _pod_of("allAuthenticatedUsers"), at="user", path="member"),
    "MLS-IAM-05": Example(
        _metadata(1), _metadata(2), at="nodes", path="metadataOptions.httpPutResponseHopLimit"
    ),
    "MLS-IAM-06": Example(
        with_changes(CLUSTER, "cluster", accessConfig={"authenticationMode": "API"}),
        with_changes(CLUSTER, "cluster", accessConfig={"authenticationMode": "API_AND_CONFIG_MAP"}),
        at="cluster",
        path="accessConfig.authenticationMode",
    ),
    "MLS-IAM-09": Example(
        _queue({"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:123456789012:jobs"}}),
        _queue({}),
        at="queue",
        path="policy.Statement[0]",
    ),
    "MLS-IAM-09.gcp": Example(
        _secret("group:training@example.com"), _secret("allAuthenticatedUsers"), at="reader", path="member"
    ),
    "MLS-IAM-07": Example(
        {"key": _KEY, **with_changes(CLUSTER, "cluster", **_ENCRYPTED)},
        {"key": _KEY, **CLUSTER},
        at="cluster",
        path="encryptionConfig",
    ),
    "MLS-IAM-07.gcp": Example(
        {
            "ring": _RING,
            "key": Made("gcp:kms/cryptoKey:CryptoKey", {**_GOOGLE_KEY, "rotationPeriod": "7776000s"}),
        },
        {"ring": _RING, "key": Made("gcp:kms/cryptoKey:CryptoKey", _GOOGLE_KEY)},
        at="key",
        path="rotationPeriod",
    ),
}
