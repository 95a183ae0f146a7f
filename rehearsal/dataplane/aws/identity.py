"""Roles of pods and jobs, their credentials, and callers by access key."""

import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rehearsal.accounts import ACCOUNT
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws.iam_policies import AccessCheck, allowed, role_record, trusts, trusts_role
from rehearsal.isolation import OPERATOR_KEY, OPERATOR_SECRET

_ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
_ADDON = "aws:eks/addon:Addon"
_AGENT = "eks-pod-identity-agent"
_SERVICE = "pods.eks.amazonaws.com"
# Credentials of EKS Pod Identity: EKS API reference, AssumeRoleForPodIdentity (at most 6 hours).
_LASTS_S = 6 * 3600
_NEEDED = frozenset({"sts:AssumeRole", "sts:TagSession"})
_ASSUMES = frozenset({"sts:AssumeRole"})
TOKEN_VARIABLE = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"  # noqa: S105 - a variable's name


@dataclass(frozen=True)
class Caller:
    """Caller of a request."""

    role_arn: str
    session: str
    tagged: bool = False
    """True for a session with transitive tags, as those of EKS Pod Identity are."""

    @property
    def account(self) -> str:
        """The account of the role."""
        return self.role_arn.split(":")[4]

    @property
    def arn(self) -> str:
        """The ARN of the assumed role's session."""
        name = self.role_arn.rpartition("/")[2]
        return f"arn:aws:sts::{self.account}:assumed-role/{name}/{self.session}"


# Caller with the key that `isolation` gives to programs of the user: may do everything, in every account.
OPERATOR = Caller(f"arn:aws:iam::{ACCOUNT}:role/rehearsal", "session")


@dataclass(frozen=True)
class _Assumption:
    """A session of a role, which the trust policy must allow to a service; identified by a token."""

    role_arn: str
    session: str
    service: str
    needed: frozenset[str]


class Denied(Exception):  # noqa: N818 - the service's word
    """Credentials are denied; the message is the reason."""


class Identities:
    """Tokens of pods and their credentials, kept in memory only."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._tokens: dict[str, _Assumption] = {}
        self._keys: dict[str, tuple[str, Caller, datetime]] = {}
        self._secrets = {OPERATOR_KEY: OPERATOR_SECRET}
        self._lock = threading.Lock()

    def association(
        self, cluster: str, namespace: str, account: str, *, scope: str | None = None
    ) -> Record | None:
        """The association of a service account, where the cluster runs the agent.

        `scope`: account and region of the cluster; None where its name is the only one.
        """
        agent = any(
            record.inputs.get("addonName") == _AGENT and record.inputs.get("clusterName") == cluster
            for record in self._state.find(type=_ADDON, scope=scope)
        )
        wanted = {"clusterName": cluster, "namespace": namespace, "serviceAccount": account}
        for record in self._state.find(type=_ASSOCIATION, scope=scope) if agent else ():
            if wanted.items() <= record.inputs.items():
                return record
        return None

    def token(self, association: Record, session: str, folder: Path) -> Path:
        """A file with a new token for a pod's service account."""
        arn = str(association.inputs["roleArn"])
        return self._token(_Assumption(arn, session, _SERVICE, _NEEDED), folder / "eks-pod-identity-token")

    def role_token(self, role_arn: str, session: str, service: str, folder: Path) -> Path:
        """A file with a new token for workloads of a service such as `sagemaker.amazonaws.com`."""
        return self._token(_Assumption(role_arn, session, service, _ASSUMES), folder / "token")

    def _token(self, assumption: _Assumption, file: Path) -> Path:
        token = secrets.token_urlsafe(48)
        with self._lock:
            self._tokens[token] = assumption
        file.touch(mode=0o600)
        file.write_text(token)
        return file

    def credentials(self, token: str) -> Mapping[str, Any]:
        """New credentials for a token, in the form of the container credentials endpoint. Raises Denied."""
        with self._lock:
            known = self._tokens.get(token)
        if known is None:
            raise Denied("the service account token is not valid")
        arn = known.role_arn
        role = role_record(self._state, arn)
        if role is None:
            raise Denied(f"role {arn} does not exist")
        if not trusts(role, known.service, known.needed):
            actions = " and ".join(sorted(known.needed))
            raise Denied(f"the trust policy of {arn} does not let {known.service} do {actions}")
        return self._issued(Caller(arn, known.session, tagged=known.needed == _NEEDED))

    def assumed(self, caller: Caller, arn: str, session: str, seconds: int) -> Mapping[str, Any]:
        """New credentials of a role, valid for some seconds, for a caller that assumes it. Raises Denied.

        The identity policies of the caller must allow it, and the trust policy of the role. Transitive tags
        of the caller's session are passed on, which needs `sts:TagSession`: IAM User Guide, "Pass session
        tags in AWS STS", "Chaining roles with session tags".
        """
        needed = _NEEDED if caller.tagged else _ASSUMES
        role, own = role_record(self._state, arn), role_record(self._state, caller.role_arn)
        refused = Denied(
            f"User: {caller.arn} is not authorized to perform: sts:AssumeRole on resource: {arn}"
        )
        if role is None or not trusts_role(role, caller.role_arn, session, needed):
            raise refused
        if caller != OPERATOR:
            checks = (AccessCheck(action, arn) for action in needed)
            if own is None or not all(allowed(self._state, own, check) for check in checks):
                raise refused
        return self._issued(Caller(arn, session, tagged=caller.tagged), seconds)

    def _issued(self, caller: Caller, seconds: int = _LASTS_S) -> Mapping[str, Any]:
        arn, ends = caller.role_arn, datetime.now(UTC) + timedelta(seconds=seconds)
        key, session_token = f"ASIA{secrets.token_hex(8).upper()}", secrets.token_urlsafe(64)
        with self._lock:
            self._keys[key] = (session_token, caller, ends)
            secret = self._secrets[key] = secrets.token_urlsafe(30)
        return {
            "AccessKeyId": key,
            "SecretAccessKey": secret,
            "Token": session_token,
            "AccountId": arn.split(":")[4],
            "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def secret(self, access_key: str) -> str:
        """The secret of an access key that was issued here; a random one for others."""
        with self._lock:
            return self._secrets.get(access_key) or secrets.token_urlsafe(30)

    def caller(self, access_key: str, session_token: str) -> Caller | None:
        """The caller with these credentials, or None."""
        if access_key == OPERATOR_KEY:
            return OPERATOR
        with self._lock:
            known = self._keys.get(access_key)
        if known is None or known[2] < datetime.now(UTC):
            return None
        return known[1] if secrets.compare_digest(known[0], session_token) else None
