"""The people of a stack without a cluster: a role each, as which their notebooks and jobs run."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import Account, current_account
from components.aws.jobs.person_rights import Place, Who, rights
from components.aws.jobs.running_rights import running_rights
from components.base import Component
from components.ordering import after


class PersonArgs(TypedDict):
    """One person."""

    name: str
    team: str
    """Name of the team, for tags."""
    folder: str
    """The team's folder in the buckets."""


class AwsPeopleArgs(TypedDict):
    """Whose roles are made, and where these people work."""

    region: str
    stack: str
    people: Sequence[PersonArgs]


class AwsPeopleRightsArgs(TypedDict):
    """Where people work, and on which machines."""

    region: str
    stack: str
    people: Sequence[PersonArgs]
    roles: Mapping[str, aws.iam.Role]
    """Their roles, of `AwsPeople`, by name."""
    checkpoint_bucket_arn: pulumi.Input[str]
    dataset_bucket_arn: pulumi.Input[str]
    artifact_bucket_arn: pulumi.Input[str]
    kms_key_arn: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[str]]
    security_group_id: pulumi.Input[str]
    """The group of jobs."""
    domain_id: pulumi.Input[str]
    mlflow_arn: pulumi.Input[str]
    job_machines: Sequence[str]
    notebook_machines: Sequence[str]
    image: str
    """The image of jobs, by digest."""


class AwsPeople(Component):
    """A role for each person, which SageMaker may take for this account, and for nobody else.

    Roles come before the domain, which names them; `AwsPeopleRights` gives them their rights after it.
    """

    roles: dict[str, aws.iam.Role]
    """By name of the person."""

    def __init__(self, name: str, args: AwsPeopleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        trusted = current_account(self).apply(lambda owner: sagemaker_trust(owner, args["region"]))
        self.roles = {
            one["name"]: iam.role(
                self,
                f"{args['stack']}-person-{one['name']}",
                trusted,
                description=f"Jobs and notebooks of {one['name']}",
            )
            for one in args["people"]
        }
        self.register_outputs({"role_arns": {who: role.arn for who, role in self.roles.items()}})


class AwsPeopleRights(Component):
    """What each person's role may do (`person_rights.py`)."""

    role_arns: dict[str, pulumi.Output[str]]
    """By name of the person; what uses one comes after its rights."""

    def __init__(
        self, name: str, args: AwsPeopleRightsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        place = pulumi.Output.all(
            account=current_account(self),
            checkpoints=args["checkpoint_bucket_arn"],
            datasets=args["dataset_bucket_arn"],
            artifacts=args["artifact_bucket_arn"],
            key=args["kms_key_arn"],
            subnets=args["subnet_ids"],
            group=args["security_group_id"],
            domain=args["domain_id"],
            mlflow=args["mlflow_arn"],
        ).apply(lambda known: _place(args, known))
        self.role_arns = {one["name"]: self._given(name, args, one, place) for one in args["people"]}
        self.register_outputs({"role_arns": self.role_arns})

    def _given(
        self, name: str, args: AwsPeopleRightsArgs, one: PersonArgs, place: pulumi.Output[Place]
    ) -> pulumi.Output[str]:
        role = args["roles"][one["name"]]
        known: pulumi.Output[dict[str, Any]] = pulumi.Output.all(place=place, role=role.arn)
        documents = known.apply(lambda found: _documents(args, one, **found))
        policies = [
            aws.iam.RolePolicy(
                f"{name}-{one['name']}-{what}",
                role=role.id,
                policy=documents[index],
                opts=self.child(),
            )
            for index, what in enumerate(("data", "work", "running"))
        ]
        return after(role.arn, policies)


def _documents(args: AwsPeopleRightsArgs, one: PersonArgs, place: Place, role: str) -> list[str]:
    running = running_rights(
        region=place.region,
        account=place.account,
        partition=place.partition,
        key=place.key,
        image=args["image"],
    )
    return [*rights(place, _who(args, one, role)), running]


def sagemaker_trust(owner: Account, region: str) -> str:
    """Trust for SageMaker, when it acts for something of this account in this region."""
    source = f"arn:{owner.partition}:sagemaker:{region}:{owner.id}:*"
    return iam.trust("sagemaker.amazonaws.com", conditions=iam.from_account(owner.id, source))


def _place(args: AwsPeopleRightsArgs, known: Mapping[str, object]) -> Place:
    account, subnets = known["account"], known["subnets"]
    assert isinstance(account, Account)
    assert isinstance(subnets, Sequence)
    names = ("checkpoints", "datasets", "artifacts", "key", "domain", "mlflow")
    texts = {name: str(known[name]) for name in names}
    return Place(
        region=args["region"],
        account=account.id,
        partition=account.partition,
        stack=args["stack"],
        subnets=sorted(subnets),
        groups=[str(known["group"])],
        **texts,
    )


def _who(args: AwsPeopleRightsArgs, one: PersonArgs, role: str) -> Who:
    return Who(
        name=one["name"],
        folder=one["folder"],
        job_machines=sorted(set(args["job_machines"])),
        notebook_machines=list(args["notebook_machines"]),
        role=role,
    )
