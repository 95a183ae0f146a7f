"""The people of a stack without a cluster: roles for their notebooks and for each class of their jobs."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import AwsAccount, current_account
from components.aws.jobs.job_rights import RIGHTS
from components.aws.jobs.person_rights import PersonResources, Who, rights
from components.aws.jobs.running_rights import RunningPlace, running_rights
from components.base import Component, Options
from components.ordering import after
from infra.job_roles import JobClass

NOTEBOOKS = "notebooks"


class PersonArgs(TypedDict):
    """One person."""

    name: str
    team: str
    """Name of the team, for tags."""
    folder: str
    """The team's folder in the buckets."""


class AwsPeopleArgs(TypedDict):
    """The people, and their place of work."""

    region: str
    stack: str
    people: Sequence[PersonArgs]


class AwsPeopleRightsArgs(TypedDict):
    """The people's place of work and their machines."""

    region: str
    stack: str
    people: Sequence[PersonArgs]
    roles: Mapping[str, aws.iam.Role]
    """Roles of notebooks, of `AwsPeople`, by name."""
    checkpoint_bucket_arn: pulumi.Input[str]
    dataset_bucket_arn: pulumi.Input[str]
    artifact_bucket_arn: pulumi.Input[str]
    kms_key_arn: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[str]]
    security_group_id: pulumi.Input[str]
    """Security group of jobs."""
    domain_id: pulumi.Input[str]
    mlflow_arn: pulumi.Input[str]
    job_machines: Sequence[str]
    notebook_machines: Sequence[str]
    training_plans: Sequence[str]
    """ARNs of the training plans that jobs may use."""
    image: str
    """The image of jobs, by digest."""


class AwsPeople(Component):
    """A role for each person's notebooks, which only SageMaker may assume, for this account.

    They come before the domain, which names them; `AwsPeopleRights` grants their permissions after it.
    """

    roles: dict[str, aws.iam.Role]
    """Roles by name of the person."""

    def __init__(self, name: str, args: AwsPeopleArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        trusted = current_account(self).apply(lambda owner: sagemaker_trust(owner, args["region"]))
        self.roles = {
            one["name"]: iam.role(
                self,
                f"{args['stack']}-person-{one['name']}",
                trusted,
                description=f"Notebooks of {one['name']}",
            )
            for one in args["people"]
        }
        self.register_outputs({"role_arns": {who: role.arn for who, role in self.roles.items()}})


class AwsPeopleRights(Component):
    """Permissions of each person's notebooks (`person_rights.py`), roles of the jobs (`job_rights.py`)."""

    role_arns: dict[str, pulumi.Output[str]]
    """Roles of notebooks by name of the person; dependents come after their permissions."""
    job_role_arns: dict[str, dict[JobClass, pulumi.Output[str]]]
    """Roles of jobs, by name of the person and class; likewise."""

    def __init__(self, name: str, args: AwsPeopleRightsArgs, opts: Options = None) -> None:
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
        trusted = current_account(self).apply(lambda owner: sagemaker_trust(owner, args["region"]))
        self.role_arns, self.job_role_arns = {}, {}
        for one in args["people"]:
            who = one["name"]
            roles: dict[JobClass, aws.iam.Role] = {
                kind: iam.role(
                    self, f"{args['stack']}-{kind}-{who}", trusted, description=f"{kind} jobs of {who}"
                )
                for kind in RIGHTS
            }
            known: pulumi.Output[dict[str, Any]] = pulumi.Output.all(
                place=place, job_roles=pulumi.Output.all(*(role.arn for role in roles.values()))
            )
            documents = known.apply(functools.partial(_documents, args, one))
            self.role_arns[who] = self._given(
                f"{name}-{who}", args["roles"][who], documents["notebook"], managed=[NOTEBOOKS]
            )
            self.job_role_arns[who] = {
                kind: self._given(f"{name}-{kind}-{who}", role, documents[kind])
                for kind, role in roles.items()
            }
        self.register_declared()

    def _given(
        self,
        name: str,
        role: aws.iam.Role,
        documents: pulumi.Output[dict[str, str]],
        managed: Sequence[str] = (),
    ) -> pulumi.Output[str]:
        """The role, after its policies; `managed` ones do not count for its 10,240 inline characters."""
        policies: list[pulumi.Resource] = [
            aws.iam.RolePolicy(f"{name}-{what}", role=role.id, policy=documents[what], opts=self.child())
            for what in ("data", "work", "running")
        ]
        for what in managed:
            policy = aws.iam.Policy(f"{name}-{what}", policy=documents[what], opts=self.child())
            policies.append(
                aws.iam.RolePolicyAttachment(
                    f"{name}-{what}", role=role.name, policy_arn=policy.arn, opts=self.child()
                )
            )
        return after(role.arn, policies)


def _documents(
    args: AwsPeopleRightsArgs, one: PersonArgs, known: Mapping[str, Any]
) -> dict[str, dict[str, str]]:
    """The policies of each role of a person: `notebook`, and the classes of jobs."""
    place, who = known["place"], _who(args, one, known["job_roles"])
    running = functools.partial(
        running_rights,
        RunningPlace(place.region, place.account, place.partition, place.key, place.subnets, place.groups),
        args["image"],
    )
    parts = ("data", "work", NOTEBOOKS)
    notebook = {**dict(zip(parts, rights(place, who), strict=True)), "running": running(domain=place.domain)}
    jobs = {
        str(kind): {**dict(zip(parts, made(place, who), strict=False)), "running": running()}
        for kind, made in RIGHTS.items()
    }
    return {"notebook": notebook, **jobs}


def sagemaker_trust(owner: AwsAccount, region: str) -> str:
    """Trust for SageMaker, when it acts for a resource of this account in this region."""
    source = f"arn:{owner.partition}:sagemaker:{region}:{owner.id}:*"
    return iam.trust("sagemaker.amazonaws.com", conditions=iam.from_account(owner.id, source))


def _place(args: AwsPeopleRightsArgs, known: Mapping[str, object]) -> PersonResources:
    account, subnets = known["account"], known["subnets"]
    assert isinstance(account, AwsAccount)
    assert isinstance(subnets, Sequence)
    names = ("checkpoints", "datasets", "artifacts", "key", "domain", "mlflow")
    texts = {name: str(known[name]) for name in names}
    return PersonResources(
        region=args["region"],
        account=account.id,
        partition=account.partition,
        stack=args["stack"],
        subnets=sorted(subnets),
        groups=[str(known["group"])],
        **texts,
    )


def _who(args: AwsPeopleRightsArgs, one: PersonArgs, job_roles: Sequence[str]) -> Who:
    return Who(
        name=one["name"],
        team=one["team"],
        folder=one["folder"],
        job_machines=sorted(set(args["job_machines"])),
        notebook_machines=list(args["notebook_machines"]),
        job_roles=job_roles,
        training_plans=args["training_plans"],
    )
