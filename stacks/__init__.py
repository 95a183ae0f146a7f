"""Composes the layout of a stack with its cloud. `infra.stackspec.supported` lists the same pairs."""

from typing import Any

from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.aws.slinky import SlinkySpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, LargeLayout, SmallLayout
from infra.stackspec.several.derived import ClusterMember
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.supported import pairs


def compose(  # noqa: PLR0911 - one for each pair
    spec: StackSpec, member: ClusterMember | None = None
) -> dict[str, Any]:
    """Declare every resource of a stack; the result is the input of `export` of its outputs.

    Outputs are `infra.outputs.jobs` of a `SmallLayout`, `infra.outputs.slurm` of a `SlurmLayout`,
    `infra.outputs.manager` of a `LargeLayout`, and `infra.outputs.cluster` of others. `member`: the place of
    a cluster in its large stack. Raises UserError for a pair of profile and cloud that does not exist. A
    program imports only the SDKs of its own stack: importing those of both clouds and Kubernetes took half of
    its processor time.
    """
    match spec.layout, spec.on:
        case SmallLayout() as small, AwsSpec() as on:
            from stacks.clouds.aws.jobs import AwsJobs
            from stacks.layouts.jobs import managed_jobs

            return managed_jobs(AwsJobs(spec, small, on), spec, small)
        case SmallLayout() as small, GcpSpec() as on:
            from stacks.clouds.gcp.jobs import GcpJobs
            from stacks.layouts.jobs import managed_jobs

            return managed_jobs(GcpJobs(spec, small, on), spec, small)
        case LargeLayout() as large, AwsSpec() as on:
            from stacks.clouds.aws.clusters import manager_on_aws

            return manager_on_aws(spec, large, on)
        case LargeLayout() as large, GcpSpec() as on:
            from stacks.clouds.gcp.clusters import manager_on_gcp

            return manager_on_gcp(spec, large, on)
        case ClusterLayout() as layout, AwsSpec() as on:
            from stacks.clouds.aws.clusters import cluster_on_aws

            return cluster_on_aws(spec, layout, on, member)
        case ClusterLayout() as layout, GcpSpec() as on:
            from stacks.clouds.gcp.clusters import cluster_on_gcp

            return cluster_on_gcp(spec, layout, on, member)
        case SlurmLayout() as system, AwsSpec(slinky=SlinkySpec()) as on:
            from stacks.clouds.aws.slinky import AwsSlinky

            return AwsSlinky(spec, system, on).compose()
        case SlurmLayout() as system, AwsSpec() as on:
            from stacks.clouds.aws.slurm import AwsSlurm

            return AwsSlurm(spec, system, on).compose()
        case SlurmLayout() as system, GcpSpec() as on:
            from stacks.clouds.gcp.slurm import GcpSlurm

            return GcpSlurm(spec, system, on).compose()
    rule = "this profile is not supported on this cloud"
    fix = f"Supported: {pairs()}."
    raise UserError(
        [Problem("profile", f"{spec.profile} on {spec.cloud}", rule, fix, code="profile-not-on-cloud")]
    )
