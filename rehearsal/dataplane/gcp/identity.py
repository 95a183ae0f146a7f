"""Workload Identity Federation for GKE: identities of pods, and callers by access token.

Source: Google Kubernetes Engine documentation, "About Workload Identity Federation for GKE" (principal
identifiers, the annotation `iam.gke.io/gcp-service-account`); messages of refusals from public logs.
"""

import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.accounts import project_number
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.gcp.iam_bindings import EVERYTHING, allowed
from rehearsal.dataplane.gcp.signing import SigningKeys
from rehearsal.isolation import OPERATOR_KEY

ANNOTATION = "iam.gke.io/gcp-service-account"
LIFETIME_S = 3600
_ACCOUNT = "gcp:serviceaccount/account:Account"
_POOL = "gcp:container/nodePool:NodePool"
ANYBODY = ("allUsers", "allAuthenticatedUsers")
_IMPERSONATE = "iam.serviceAccounts.getAccessToken"
_SIGN = "iam.serviceAccounts.signJwt"


@dataclass(frozen=True)
class Caller:
    """Caller of a request: its name, and all its members in bindings."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class PodIdentity:
    """The Kubernetes service account of a pod, in its cluster; `annotated`: its Google account.

    `pool` is the cluster's workload pool, empty where it has none: then pods have their node's account.
    """

    project: str
    pool: str
    cluster: str
    location: str
    namespace: str
    account: str
    annotated: str = ""
    node_account: str = ""

    @property
    def email(self) -> str:
        """Account of the pod at the metadata server."""
        return self.annotated or self.pool or self.node_account

    @property
    def subject(self) -> str:
        """The principal of the Kubernetes service account."""
        return f"principal://{self._pool_path}/subject/ns/{self.namespace}/sa/{self.account}"

    @property
    def members(self) -> tuple[str, ...]:
        """Every form in which bindings may name the Kubernetes service account."""
        if not self.pool:
            return (f"serviceAccount:{self.node_account}", *ANYBODY)
        link = (
            f"https://container.googleapis.com/v1/projects/{self.project}/locations/{self.location}"
            f"/clusters/{self.cluster}"
        )
        return (
            self.subject,
            f"principalSet://{self._pool_path}/namespace/{self.namespace}",
            f"principalSet://{self._pool_path}/kubernetes.cluster/{link}",
            f"serviceAccount:{self.pool}[{self.namespace}/{self.account}]",
            *ANYBODY,
        )

    @property
    def _pool_path(self) -> str:
        number = project_number(self.project)
        return f"iam.googleapis.com/projects/{number}/locations/global/workloadIdentityPools/{self.pool}"


# Caller with the login that `service_ports` gives to programs of the user: may do everything.
OPERATOR = Caller("user:rehearsal", (EVERYTHING,))


class Denied(Exception):  # noqa: N818 - the service's word
    """A token is denied; the message is the reason."""


class GoogleIdentities:
    """Access tokens and their callers, kept in memory only."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.keys = SigningKeys()
        self._tokens: dict[str, Caller] = {}
        self._lock = threading.Lock()

    def token(self, identity: PodIdentity) -> str:
        """A token of the metadata server for a pod. Raises Denied."""
        caller = Caller(identity.subject if identity.pool else identity.node_account, identity.members)
        if identity.pool and identity.annotated:
            return self.impersonate(caller, identity.annotated)
        return self._issue(caller)

    def impersonate(self, caller: Caller, email: str) -> str:
        """A token of a Google service account for a caller that may impersonate it. Raises Denied."""
        self._check(caller, _IMPERSONATE, email)
        return self.account(email)

    def sign(self, caller: Caller, email: str, payload: str) -> tuple[str, str]:
        """Key id and a token signed by a service account, for a caller with that permission.

        Raises Denied, and `signing.UnsignableError`.
        """
        self._check(caller, _SIGN, email)
        return self.keys.signed(email, payload)

    def account(self, email: str) -> str:
        """A token of a Google service account for workloads that a service of Google runs as it."""
        return self._issue(account_caller(email))

    def federated(self, caller: Caller) -> str:
        """A token of an identity of a workload identity pool."""
        return self._issue(caller)

    def operator(self, refresh_token: str) -> str | None:
        """A token of the user of the rehearsal for the login of `service_ports`; None for another one."""
        return self._issue(OPERATOR) if refresh_token == OPERATOR_KEY else None

    def caller(self, authorization: str) -> Caller | None:
        """The caller of the token in a header; None for an unknown token."""
        with self._lock:
            return self._tokens.get(authorization.removeprefix("Bearer "))

    def _check(self, caller: Caller, permission: str, email: str) -> None:
        """Raise Denied unless a caller has a permission on a service account."""
        account = account_record(self._state, email)
        if account is None or not allowed(self._state, caller.members, permission, account, account.id):
            raise Denied(f"Permission '{permission}' denied on resource (or it may not exist).")

    def _issue(self, caller: Caller) -> str:
        token = f"ya29.{secrets.token_urlsafe(48)}"
        with self._lock:
            self._tokens[token] = caller
        return token


def machine_identity(email: str, project: str, location: str) -> PodIdentity:
    """Identity of programs on a machine with a service account, outside of any cluster."""
    return PodIdentity(
        project=project, pool="", cluster="", location=location, namespace="", account="", node_account=email
    )


def account_caller(email: str) -> Caller:
    """A Google service account as caller."""
    return Caller(email, (f"serviceAccount:{email}", *ANYBODY))


def identity_of(
    state: State, cluster: Record, namespace: str, account: str, annotations: Mapping[str, Any]
) -> PodIdentity:
    """Identity of the pods of a service account with these annotations."""
    outputs = cluster.outputs
    project = str(outputs.get("project") or cluster.scope)
    pool = str((outputs.get("workloadIdentityConfig") or {}).get("workloadPool") or "")
    return PodIdentity(
        project=project,
        pool=pool,
        cluster=str(outputs.get("name") or cluster.name),
        location=str(outputs.get("location") or ""),
        namespace=namespace,
        account=account,
        annotated=str(annotations.get(ANNOTATION) or "") if pool else "",
        node_account=_node_account(state, cluster, project),
    )


def account_record(state: State, email: str) -> Record | None:
    """The Google service account with an email address."""
    return next((one for one in state.issued(email) if one.type == _ACCOUNT), None)


def _node_account(state: State, cluster: Record, project: str) -> str:
    """The account of the cluster's nodes: by default that of the project."""
    configs = [
        pool.inputs.get("nodeConfig") or {}
        for pool in state.find(type=_POOL)
        if pool.inputs.get("cluster") in (cluster.name, cluster.id)
    ]
    for config in (*configs, cluster.inputs.get("nodeConfig") or {}):
        if config.get("serviceAccount"):
            return str(config["serviceAccount"])
    return f"{project_number(project)}-compute@developer.gserviceaccount.com"
