"""Google Cloud permissions of the pods of one Kubernetes service account."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

import pulumi

from components.base import Component, Options
from components.gcp import iam
from components.kubernetes.tracking.pod import GrantsArgs
from components.ordering import after

# Addresses of the metadata server for pods. Which one a network policy sees depends on its enforcer:
# Dataplane V2 that of the metadata server, others the one that GKE replaces it with. Source: GKE
# documentation, "Network policy and Workload Identity Federation for GKE".
METADATA_SERVER = (("169.254.169.254/32", 80), ("169.254.169.252/32", 988))


class RightArgs(TypedDict):
    """A role on one resource."""

    resource: pulumi.Input[str]
    """Name of the bucket, id of the secret, or id of the topic."""
    role: str
    """The role, such as `roles/storage.objectUser`."""


class FolderRightArgs(RightArgs):
    """A role on a folder of a bucket: on its objects, and on listing it."""

    folder: pulumi.Input[str]
    """Name of the managed folder, with a slash at its end."""


class GcpPodAccountArgs(TypedDict):
    """The pods, and their roles. Keys are names of your own, which become those of resources."""

    project: str
    """The project of the cluster."""
    project_number: pulumi.Input[str]
    """Number of that project."""
    namespace: str
    """Its namespace."""
    service_account: str
    """The Kubernetes service account; it need not exist yet."""
    buckets: NotRequired[Mapping[str, RightArgs]]
    """Roles on whole buckets."""
    folders: NotRequired[Mapping[str, FolderRightArgs]]
    """Roles on managed folders of buckets."""
    secrets: NotRequired[Mapping[str, RightArgs]]
    """Roles on secrets of Secret Manager."""
    topics: NotRequired[Mapping[str, RightArgs]]
    """Roles on topics of Pub/Sub."""


class GcpPodAccount(Component):
    """Roles for exactly one Kubernetes service account, by Workload Identity Federation for GKE.

    The account is itself the principal: there is no Google Cloud account that it impersonates, no key and
    no annotation. Buckets, secrets and topics accept such principals; Cloud SQL does not.

    A workload pool belongs to the project, not to a cluster: pods of the same namespace and account in
    another cluster of the project have the same permissions (GKE documentation, "Identity sameness"). A stack
    therefore needs a project of its own, or namespaces that no other cluster there has.
    *Untested in a real project.*
    """

    principal: pulumi.Output[str]
    """The pods, as an IAM member; dependents come after the permissions."""

    def __init__(self, name: str, args: GcpPodAccountArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        member = pulumi.Output.from_input(args["project_number"]).apply(
            lambda number: pod_principal(args["project"], number, args["namespace"], args["service_account"])
        )
        self.principal = after(member, self._granted(name, args, member))
        self.register_declared()

    def _granted(
        self, name: str, args: GcpPodAccountArgs, member: pulumi.Output[str]
    ) -> list[pulumi.Resource]:
        made: list[pulumi.Resource] = [
            iam.on_folder(self, f"{name}-{key}", right["resource"], right["folder"], right["role"], member)
            for key, right in args.get("folders", {}).items()
        ]
        for grant, rights in (
            (iam.on_bucket, args.get("buckets", {})),
            (iam.on_secret, args.get("secrets", {})),
            (iam.on_topic, args.get("topics", {})),
        ):
            for key, right in rights.items():
                made.append(grant(self, f"{name}-{key}", right["resource"], right["role"], member))
        return made


def pod_principal(project: str, number: str, namespace: str, account: str) -> str:
    """The IAM member for the pods of one Kubernetes service account.

    Source: GKE documentation, "About Workload Identity Federation for GKE", principal identifiers.
    """
    pool = f"projects/{number}/locations/global/workloadIdentityPools/{project}.svc.id.goog"
    return f"principal://iam.googleapis.com/{pool}/subject/ns/{namespace}/sa/{account}"


def metadata_grants() -> GrantsArgs:
    """Access of pods to credentials on GKE: Google's libraries use the metadata server."""
    return {"environment": {}, "agents": [{"cidr": cidr, "port": port} for cidr, port in METADATA_SERVER]}
