"""A deployed Slurm system as fields of `trainstack status`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from infra.catalog.aws.pcs import GROUP_TAG

if TYPE_CHECKING:
    from infra.outputs.slurm import PartitionOutputs, SlurmOutputs


def fields(system: "SlurmOutputs", *, rehearsed: bool) -> Iterator[tuple[str, str]]:
    """(name, text): controller, partitions, accounts, data, and the command that opens the login node."""
    yield "stack", f"{system.stack} ({system.cloud}, {system.region}, profile {system.profile})"
    yield "controller", f"{system.cluster_id}, Slurm {system.slurm_version or 'of unknown version'}"
    for one in system.partitions:
        yield "partition", _partition(one)
    yield "accounts", ", ".join(system.accounts)
    yield "budget", system.budget
    if not _is_a_pod(system):
        yield "prices", "without the fees of the service (controller, nodes, accounting), which are not known"
    for place in (system.checkpoint_uri, system.dataset_uri, system.artifact_uri):
        yield "data", place
    if system.tracking_uri:
        yield "MLflow", f"{system.tracking_uri}; jobs have MLFLOW_TRACKING_URI"
        yield "", _mlflow_pages(system)
    if system.dashboard:
        yield "dashboard", f"{system.dashboard} in CloudWatch, {system.region}"
    for run in system.smoke:
        yield "results", run.result_uri
    yield "login node", f"{system.login_group_id}, reached by {_way(system)} alone"
    if rehearsed:
        yield "", "a rehearsal has no machine to open; its commands run where the emulated service runs"
    else:
        yield "open it", login_command(system)


def _mlflow_pages(system: "SlurmOutputs") -> str:
    return (
        f"aws sagemaker create-presigned-mlflow-app-url --region {system.region} --arn {system.tracking_uri}"
    )


def login_command(system: "SlurmOutputs") -> str:
    """A shell command that opens a session on the login node, for a caller with rights to do so."""
    if _is_a_pod(system):
        _, namespace, name = system.login_group_id.split("/")
        return (
            f"aws eks update-kubeconfig --region {system.region} --name {system.cluster_id} && "
            f"kubectl -n {namespace} exec -it deployment/{name} -c login -- bash"
        )
    return _by_iap(system) if _is_an_instance(system) else _by_session_manager(system)


def _way(system: "SlurmOutputs") -> str:
    if _is_a_pod(system):
        return "kubectl"
    return "Identity-Aware Proxy" if _is_an_instance(system) else "Session Manager"


def _is_a_pod(system: "SlurmOutputs") -> bool:
    """The login node is a pod of a cluster, by its namespace and Deployment."""
    return system.login_group_id.startswith("kubernetes/")


def _is_an_instance(system: "SlurmOutputs") -> bool:
    """The login node is one known machine of a project, not a group of machines."""
    return system.login_group_id.startswith("projects/")


def _by_session_manager(system: "SlurmOutputs") -> str:
    which = f"Name=tag:{GROUP_TAG},Values={system.login_group_id}"
    running = "Name=instance-state-name,Values=running"
    found = (
        f"aws ec2 describe-instances --region {system.region} --filters {which} {running} "
        "--query 'Reservations[].Instances[].InstanceId' --output text"
    )
    return f'aws ssm start-session --region {system.region} --target "$({found})"'


def _by_iap(system: "SlurmOutputs") -> str:
    _, project, _, zone, _, name = system.login_group_id.split("/")
    return f"gcloud compute ssh {name} --project {project} --zone {zone} --tunnel-through-iap"


def _partition(one: "PartitionOutputs") -> str:
    price = "price unknown" if one.usd_per_hour is None else f"{one.usd_per_hour:.2f} USD an hour each"
    return f"{one.name}: up to {one.max_nodes} {one.machine}, {one.purchase}, {price}"
