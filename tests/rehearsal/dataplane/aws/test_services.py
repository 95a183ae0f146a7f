"""The real boto3 against the loopback AWS: identity, authorisation, secrets."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws.iam_policies import AccessCheck, allowed, trusts
from rehearsal.dataplane.aws.secret_store import SecretStore
from rehearsal.dataplane.aws.server import CREDENTIALS_PATH, Dataplane

# Untyped packages: nothing of them is checked.
boto3: Any = importlib.import_module("boto3")
_errors: Any = importlib.import_module("botocore.exceptions")
ClientError: type[Exception] = _errors.ClientError
CredentialRetrievalError: type[Exception] = _errors.CredentialRetrievalError

ACCOUNT, REGION = "123456789012", "eu-central-1"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/mlflow"
SECRET_ARN = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:admin-AbCdEf"
KEY_ARN = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"
TRUST = {
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ]
}
TOKEN = "a-token-of-at-least-thirty-two-chars"


class Account:
    """An account with one cluster, one role and one secret."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.add(
            "aws:eks/addon:Addon", "agent", {"addonName": "eks-pod-identity-agent", "clusterName": "dev"}
        )
        association = {
            "clusterName": "dev", "namespace": "mlflow", "serviceAccount": "mlflow", "roleArn": ROLE_ARN,
        }  # fmt: skip
        self.association = self.add(
            "aws:eks/podIdentityAssociation:PodIdentityAssociation", "a-1", association
        )

    def add(self, type: str, id: str, inputs: dict[str, Any], **outputs: Any) -> Record:
        return self.state.insert(
            package="aws", type=type, scope=f"{ACCOUNT}/{REGION}", id=id, urn=id, name=id, inputs=inputs,
            outputs=outputs,
        )  # fmt: skip

    def role(self, *statements: dict[str, Any], trust: dict[str, Any] | None = None) -> Record:
        role = self.add(
            "aws:iam/role:Role",
            "mlflow",
            {"assumeRolePolicy": json.dumps(trust or TRUST)},
            arn=ROLE_ARN,
            name="mlflow",
        )
        document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
        self.add("aws:iam/rolePolicy:RolePolicy", "inline", {"role": "mlflow", "policy": document})
        return role

    def secret(self, **inputs: Any) -> Record:
        return self.add("aws:secretsmanager/secret:Secret", SECRET_ARN, inputs, arn=SECRET_ARN, name="admin")


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    state = State(tmp_path / "state.sqlite")
    yield Account(state)
    state.close()


@pytest.fixture
def plane(account: Account) -> Iterator[Dataplane]:
    found = Dataplane(account.state)
    yield found
    found.stop()


@pytest.fixture
def pod(account: Account, plane: Dataplane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The boto3 session of a program in the pod."""
    token = plane.identities.token(account.association, "mlflow-0", tmp_path)
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    settings = {
        "AWS_ENDPOINT_URL": plane.url,
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": plane.url + CREDENTIALS_PATH,
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": REGION,
        "HOME": str(tmp_path),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return boto3.session.Session(region_name=REGION)


def allow(*actions: str, resource: str = SECRET_ARN, effect: str = "Allow", **more: Any) -> dict[str, Any]:
    return {"Effect": effect, "Action": list(actions), "Resource": resource, **more}


READ_WRITE = allow(
    "secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue", "secretsmanager:DescribeSecret"
)


def code(error: pytest.ExceptionInfo[Any]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_the_identity_of_a_pod(account: Account, pod: Any) -> None:
    account.role()
    found = pod.client("sts").get_caller_identity()
    assert found["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/mlflow/mlflow-0"
    assert found["Account"] == ACCOUNT


def test_a_secret_is_written_once_by_replicas_that_share_a_token(account: Account, pod: Any) -> None:
    account.role(READ_WRITE)
    account.secret()
    client = pod.client("secretsmanager")
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.get_secret_value(SecretId=SECRET_ARN)
    client.put_secret_value(SecretId=SECRET_ARN, SecretString="one", ClientRequestToken=TOKEN)
    client.put_secret_value(SecretId=SECRET_ARN, SecretString="one", ClientRequestToken=TOKEN)
    with pytest.raises(client.exceptions.ResourceExistsException):
        client.put_secret_value(SecretId=SECRET_ARN, SecretString="two", ClientRequestToken=TOKEN)
    assert client.get_secret_value(SecretId="admin")["SecretString"] == "one"
    client.put_secret_value(SecretId=SECRET_ARN, SecretString="three", ClientRequestToken=TOKEN + "-2")
    assert client.get_secret_value(SecretId=SECRET_ARN)["SecretString"] == "three"
    previous = client.get_secret_value(SecretId=SECRET_ARN, VersionStage="AWSPREVIOUS")
    assert previous["SecretString"] == "one"
    assert len(client.describe_secret(SecretId=SECRET_ARN)["VersionIdsToStages"]) == 2


def test_without_a_grant_access_is_denied(account: Account, pod: Any) -> None:
    account.role(allow("secretsmanager:GetSecretValue", resource=SECRET_ARN + "-other"))
    account.secret()
    client = pod.client("secretsmanager")
    with pytest.raises(
        ClientError, match="is not authorized to perform: secretsmanager:GetSecretValue"
    ) as denied:
        client.get_secret_value(SecretId=SECRET_ARN)
    assert code(denied) == "AccessDeniedException"


def test_the_key_of_a_secret_needs_a_grant_too(account: Account, pod: Any) -> None:
    key = account.add("aws:kms/key:Key", "1", {}, arn=KEY_ARN)
    account.state.issue(key, {"1", KEY_ARN})
    account.secret(kmsKeyId="1")
    through = {"StringEquals": {"kms:ViaService": f"secretsmanager.{REGION}.amazonaws.com"}}
    account.role(READ_WRITE, allow("kms:Decrypt", resource=KEY_ARN, Condition=through))
    client = pod.client("secretsmanager")
    with pytest.raises(ClientError, match="kms:GenerateDataKey"):
        client.put_secret_value(SecretId=SECRET_ARN, SecretString="x")
    SecretStore(account.state).put(SECRET_ARN, "x", TOKEN)
    assert client.get_secret_value(SecretId=SECRET_ARN)["SecretString"] == "x"


def test_secrets_that_a_service_made(account: Account, pod: Any) -> None:
    account.role(allow("secretsmanager:GetSecretValue", resource="*"))
    arn = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:rds!cluster-1-XyZxyZ"
    account.state.put_document("secret", arn, {"username": "admin", "password": "p"})
    found = pod.client("secretsmanager").get_secret_value(SecretId=arn)
    assert json.loads(found["SecretString"]) == {"username": "admin", "password": "p"}


def test_a_role_that_does_not_trust_pods_gives_no_credentials(account: Account, pod: Any) -> None:
    trust = {"Statement": [{**TRUST["Statement"][0], "Action": "sts:AssumeRole"}]}
    account.role(READ_WRITE, trust=trust)
    with pytest.raises(CredentialRetrievalError, match="sts:TagSession"):
        pod.client("sts").get_caller_identity()


def test_stolen_keys_and_other_actions(account: Account, plane: Dataplane, pod: Any) -> None:
    account.role(allow("*", resource="*"))
    forged = boto3.client(
        "secretsmanager", region_name=REGION, endpoint_url=plane.url, aws_access_key_id="ASIA1",
        aws_secret_access_key="x", aws_session_token="y",
    )  # fmt: skip
    with pytest.raises(ClientError) as refused:
        forged.get_secret_value(SecretId=SECRET_ARN)
    assert code(refused) == "UnrecognizedClientException"
    with pytest.raises(ClientError, match="ListSecrets"):
        pod.client("secretsmanager").list_secrets()


def test_an_association_needs_the_agent(account: Account, plane: Dataplane) -> None:
    assert plane.identities.association("dev", "mlflow", "mlflow") is not None
    assert plane.identities.association("dev", "mlflow", "other") is None
    (agent,) = account.state.find(type="aws:eks/addon:Addon")
    account.state.remove(agent)
    assert plane.identities.association("dev", "mlflow", "mlflow") is None


@pytest.mark.parametrize(
    ("statements", "verdict"),
    [
        ([allow("secretsmanager:*")], True),
        ([allow("SecretsManager:getsecretvalue")], True),
        ([allow("*", resource="*"), allow("secretsmanager:Get*", effect="Deny")], False),
        ([allow("*", resource="*", Condition={"StringEquals": {"aws:RequestedRegion": "us-east-1"}})], False),
        ([allow("*", resource="*", Condition={"StringEquals": {"aws:RequestedRegion": [REGION]}})], True),
        ([allow("*", resource="*", Condition={"DateLessThan": {"aws:CurrentTime": "2030"}})], False),
        ([{"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}], True),
        ([], False),
    ],
)
def test_evaluation(account: Account, statements: list[dict[str, Any]], verdict: bool) -> None:
    role = account.role(*statements)
    request = AccessCheck("secretsmanager:GetSecretValue", SECRET_ARN, {"aws:RequestedRegion": REGION})
    assert allowed(account.state, role, request) is verdict


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"StringNotEquals": {"aws:RequestedRegion": "us-east-1"}}, True),
        ({"StringNotLike": {"aws:RequestedRegion": "eu-*"}}, False),
        ({"StringNotEquals": {"aws:Unknown": "x"}}, True),
        ({"StringEquals": {"aws:Unknown": "x"}}, False),
        ({"StringEqualsIfExists": {"aws:Unknown": "x"}}, True),
        ({"StringEqualsIfExists": {"aws:RequestedRegion": "x"}}, False),
        ({"ForAnyValue:StringLike": {"aws:RequestedRegion": ["us-*", "eu-*"]}}, True),
        ({"ForAnyValue:StringLike": {"aws:Unknown": "*"}}, False),
        ({"ForAllValues:StringEquals": {"aws:Unknown": "x"}}, True),
        ({"StringEqualsIgnoreCase": {"aws:RequestedRegion": REGION.upper()}}, True),
        ({"Null": {"aws:Unknown": "true"}}, True),
        ({"Null": {"aws:RequestedRegion": "true"}}, False),
        ({"NumericLessThan": {"aws:RequestedRegion": "1"}}, False),
    ],
)
def test_conditions(account: Account, condition: dict[str, Any], holds: bool) -> None:
    role = account.role(allow("*", resource="*", Condition=condition))
    request = AccessCheck("secretsmanager:GetSecretValue", SECRET_ARN, {"aws:RequestedRegion": REGION})
    assert allowed(account.state, role, request) is holds


def test_attached_policies_count(account: Account) -> None:
    role = account.role()
    arn = f"arn:aws:iam::{ACCOUNT}:policy/p"
    request = AccessCheck("s3:GetObject", "arn:aws:s3:::b/k")
    document = json.dumps({"Statement": allow("s3:*", resource="arn:aws:s3:::b/*")})
    account.add("aws:iam/policy:Policy", "p", {"policy": document}, arn=arn)
    assert not allowed(account.state, role, request)
    account.add(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment", "ra", {"role": "mlflow", "policyArn": arn}
    )
    assert allowed(account.state, role, request)
    assert trusts(role, "pods.eks.amazonaws.com", frozenset({"sts:AssumeRole", "sts:TagSession"}))
    assert not trusts(role, "ec2.amazonaws.com", frozenset({"sts:AssumeRole"}))
