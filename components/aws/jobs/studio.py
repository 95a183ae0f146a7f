"""SageMaker Studio: a closed domain, a profile for each person, notebooks that stop when idle."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import current_account
from components.aws.jobs.people import PersonArgs, sagemaker_trust
from components.base import Component, Options
from infra.naming import TAG_PREFIX

# The service's minimum idle time. Source: botocore 1.44.5 sagemaker/2017-07-24 IdleTimeoutInMinutes.
LEAST_IDLE_MINUTES = 60
# The minimum size of a notebook's disk. Source: the same, SpaceEbsVolumeSizeInGb.
LEAST_DISK_GIB = 5


class AwsStudioArgs(TypedDict):
    """People of the domain, its network, and settings of notebooks."""

    region: str
    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[str]]
    security_group_id: pulumi.Input[str]
    """Security group of notebooks: open to itself."""
    kms_key_arn: pulumi.Input[str]
    """Key of disks and of the home file system."""
    people: Sequence[PersonArgs]
    roles: Mapping[str, aws.iam.Role]
    """The role of each person, by name."""
    machines: Sequence[str]
    """Machine types of notebooks, the default first."""
    disk_gib: int
    """Largest disk of a notebook."""
    idle_minutes: int
    """Idle time after which a notebook is stopped, at the latest."""
    retain_homes: bool
    """Whether the home file system outlives the domain; it then holds the subnets, too."""
    protect: bool
    """Whether Pulumi refuses to delete the domain."""


class AwsStudio(Component):
    """A domain without a network path around the VPC, and a profile for each person.

    Notebooks are spaces with disks of their own (JupyterLab, Code Editor). Both apps stop after
    `idle_minutes`, which users may shorten, down to an hour. Tags of domain and profile are propagated to
    apps for the bill; without `tag_propagation` they have none.
    """

    domain_id: pulumi.Output[str]
    domain_arn: pulumi.Output[str]
    profiles: list[aws.sagemaker.UserProfile]

    def __init__(self, name: str, args: AwsStudioArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        trusted = current_account(self).apply(lambda owner: sagemaker_trust(owner, args["region"]))
        # The domain must have a role of its own; it has no permissions, and every profile has another one.
        unused = iam.role(self, f"{name}-nobody", trusted, description="Of the domain, without any right")
        domain = aws.sagemaker.Domain(
            f"{name}-domain",
            domain_name=name,
            auth_mode="IAM",
            app_network_access_type="VpcOnly",
            vpc_id=args["vpc_id"],
            subnet_ids=args["subnet_ids"],
            kms_key_id=args["kms_key_arn"],
            tag_propagation="ENABLED",
            default_user_settings=_settings(args, unused),
            retention_policy={"home_efs_file_system": "Retain" if args["retain_homes"] else "Delete"},
            opts=self.child(pulumi.ResourceOptions(protect=args["protect"])),
        )
        self.profiles = [self._profile(name, domain, args, one) for one in args["people"]]
        self.domain_id, self.domain_arn = domain.id, domain.arn
        self.register_outputs({"domain_id": self.domain_id, "domain_arn": self.domain_arn})

    def _profile(
        self, name: str, domain: aws.sagemaker.Domain, args: AwsStudioArgs, one: PersonArgs
    ) -> aws.sagemaker.UserProfile:
        return aws.sagemaker.UserProfile(
            f"{name}-{one['name']}",
            domain_id=domain.id,
            user_profile_name=one["name"],
            user_settings=_settings(args, args["roles"][one["name"]]),
            tags={f"{TAG_PREFIX}:person": one["name"], f"{TAG_PREFIX}:team": one["team"]},
            opts=self.child(),
        )


def _settings(args: AwsStudioArgs, role: aws.iam.Role) -> Any:
    """Settings of notebooks, of domain and profiles alike: those of a profile replace the domain's.

    Any, because the SDK has one form of them under two names.
    """
    app = {
        "default_resource_spec": {"instance_type": args["machines"][0]},
        "app_lifecycle_management": {
            "idle_settings": {
                "lifecycle_management": "ENABLED",
                "idle_timeout_in_minutes": args["idle_minutes"],
                "min_idle_timeout_in_minutes": LEAST_IDLE_MINUTES,
                "max_idle_timeout_in_minutes": args["idle_minutes"],
            }
        },
    }
    return {
        "execution_role": role.arn,
        "security_groups": [args["security_group_id"]],
        "jupyter_lab_app_settings": app,
        "code_editor_app_settings": app,
        "space_storage_settings": {
            "default_ebs_storage_settings": {
                "default_ebs_volume_size_in_gb": LEAST_DISK_GIB,
                "maximum_ebs_volume_size_in_gb": args["disk_gib"],
            }
        },
        "studio_web_portal": "ENABLED",
        "default_landing_uri": "studio::",
    }
