"""The dispatcher's own login to a worker, against the emulated STS and the authenticator of EKS."""

import base64
import datetime
import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.clusters import logins
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws.eks_logins import user_of
from rehearsal.dataplane.aws.server import CREDENTIALS_PATH, Dataplane
from rehearsal.kubernetes.clusters import EKS_CLUSTER

ACCOUNT, REGION = "123456789012", "us-west-2"
IAM = f"arn:aws:iam::{ACCOUNT}"
POD, LOGIN = f"{IAM}:role/large-aws-dispatcher", f"{IAM}:role/usw2-manager"
BOTH = ["sts:AssumeRole", "sts:TagSession"]
POD_TRUST = {"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": BOTH}
RIGHTS = {"Effect": "Allow", "Action": BOTH, "Resource": [LOGIN]}


def trust(actions: list[str], principal: str = POD) -> dict[str, Any]:
    condition = {"ArnEquals": {"aws:PrincipalArn": principal}}
    return {
        "Effect": "Allow", "Principal": {"AWS": f"{IAM}:root"}, "Action": actions, "Condition": condition,
    }  # fmt: skip


class Account:
    """A manager's pod and a worker with an access entry."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.add("eks/addon:Addon", "a", {"addonName": "eks-pod-identity-agent", "clusterName": "large-aws"})
        about = {"clusterName": "large-aws", "namespace": "trainstack-dispatch", "serviceAccount": "d"}
        self.association = self.add(
            "eks/podIdentityAssociation:PodIdentityAssociation", "i", {**about, "roleArn": POD}
        )
        self.worker = self.add(EKS_CLUSTER.removeprefix("aws:"), "usw2", {}, name="usw2")
        self.other = self.add(EKS_CLUSTER.removeprefix("aws:"), "use1", {}, name="use1")
        entry = {"clusterName": "usw2", "principalArn": LOGIN, "kubernetesGroups": ["trainstack:manager"]}
        self.add("eks/accessEntry:AccessEntry", "e", entry)

    def add(self, token: str, id: str, inputs: dict[str, Any], **outputs: Any) -> Record:
        return self.state.insert(
            package="aws", type=f"aws:{token}", scope=f"{ACCOUNT}/{REGION}", id=id, urn=id, name=id,
            inputs=inputs, outputs=outputs,
        )  # fmt: skip

    def role(self, arn: str, trusts: dict[str, Any], *rights: dict[str, Any]) -> None:
        name = arn.rpartition("/")[2]
        policy = json.dumps({"Version": "2012-10-17", "Statement": [trusts]})
        self.add("iam/role:Role", name, {"assumeRolePolicy": policy}, arn=arn, name=name)
        if rights:
            document = json.dumps({"Version": "2012-10-17", "Statement": list(rights)})
            self.add("iam/rolePolicy:RolePolicy", f"{name}-rights", {"role": name, "policy": document})


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    state = State(tmp_path / "state.sqlite", daemon=True)
    yield Account(state)
    state.close()


@pytest.fixture
def plane(account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dataplane]:
    """The services, with the variables of the dispatcher's pod."""
    made = Dataplane(account.state)
    token = made.identities.token(account.association, "dispatcher-1", tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.url)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", made.url + CREDENTIALS_PATH)
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
    yield made
    made.stop()


def test_the_dispatcher_is_its_group_on_the_worker_alone(account: Account, plane: Dataplane) -> None:
    account.role(POD, POD_TRUST, RIGHTS)
    account.role(LOGIN, trust(BOTH))
    token = logins.aws_token("usw2", REGION, LOGIN)
    found = user_of(account.state, plane.identities, account.worker, token)
    name = f"arn:aws:sts::{ACCOUNT}:assumed-role/usw2-manager/trainstack-dispatcher"
    assert found == {"username": name, "groups": ["trainstack:manager"]}
    assert user_of(account.state, plane.identities, account.other, token) is None
    # Its own role has no entry there.
    own = logins.aws_token("usw2", REGION)
    assert user_of(account.state, plane.identities, account.worker, own) is None


@pytest.mark.parametrize(
    ("trusted", "rights"),
    [
        (trust(["sts:AssumeRole"]), RIGHTS),  # the tags of EKS Pod Identity are transitive
        (trust(BOTH, f"{IAM}:role/another"), RIGHTS),
        (trust(BOTH), {**RIGHTS, "Action": ["sts:AssumeRole"]}),
        (trust(BOTH), {**RIGHTS, "Resource": [f"{IAM}:role/another"]}),
    ],
)
def test_a_role_that_does_not_trust_the_dispatcher_gives_no_token(
    account: Account, plane: Dataplane, trusted: dict[str, Any], rights: dict[str, Any]
) -> None:
    assert plane.url
    account.role(POD, POD_TRUST, rights)
    account.role(LOGIN, trusted)
    with pytest.raises(OSError, match="403"):
        logins.aws_token("usw2", REGION, LOGIN)


def test_a_forged_or_old_token_is_nobodys(account: Account, plane: Dataplane) -> None:
    account.role(POD, POD_TRUST, RIGHTS)
    account.role(LOGIN, trust(BOTH))
    keys = plane.identities.credentials(
        Path(os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).read_text()
    )
    now = datetime.datetime.now(datetime.UTC)
    request = logins.assuming(keys, LOGIN, REGION, now)
    with urllib.request.urlopen(request) as response:
        assumed = logins.assumed(response.read().decode())
    tokens = {
        "of another secret": logins.eks_token({**assumed, "SecretAccessKey": "x"}, "usw2", REGION, now),
        "of another session": logins.eks_token({**assumed, "Token": "x"}, "usw2", REGION, now),
        "old": logins.eks_token(assumed, "usw2", REGION, now - datetime.timedelta(minutes=16)),
        "no request": "k8s-aws-v1.eA",
        "padded": f"{logins.eks_token(assumed, 'usw2', REGION, now)}==",
        "of another region's host": _moved(logins.eks_token(assumed, "usw2", REGION, now)),
        "of Google Cloud": "ya29.x",
    }
    good = logins.eks_token(assumed, "usw2", REGION, now)
    assert user_of(account.state, plane.identities, account.worker, good) is not None
    for what, token in tokens.items():
        assert user_of(account.state, plane.identities, account.worker, token) is None, what
    with pytest.raises(OSError, match="403"):
        urllib.request.urlopen(request.replace(LOGIN.split("/")[1], "large-aws-dispatcher"))


def _moved(token: str) -> str:
    """The token with the host of another region."""
    text = token.removeprefix("k8s-aws-v1.")
    address = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().replace(REGION, "eu-west-1", 1)
    return "k8s-aws-v1." + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")


def test_an_explicit_deny_wins_over_trust(account: Account, plane: Dataplane) -> None:
    assert plane.url
    account.role(POD, POD_TRUST, RIGHTS)
    deny = {**trust(["sts:AssumeRole"]), "Effect": "Deny"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [trust(BOTH), deny]})
    account.add("iam/role:Role", "usw2-manager", {"assumeRolePolicy": policy}, arn=LOGIN, name="usw2-manager")
    with pytest.raises(OSError, match="403"):
        logins.aws_token("usw2", REGION, LOGIN)
