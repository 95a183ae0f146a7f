"""AWS without a cluster: SageMaker's jobs and notebooks, buckets, the MLflow App, and enforced budgets."""

import functools
from dataclasses import dataclass
from typing import Literal

import pulumi

from components.aws.functions.function import log_group_name
from components.aws.jobs.cleaning import AwsCleaning
from components.aws.jobs.job_rights import RIGHTS
from components.aws.jobs.mlflow import AwsMlflow
from components.aws.jobs.people import AwsPeople, AwsPeopleRights, PersonArgs
from components.aws.jobs.person_rights import CODE
from components.aws.jobs.records import AwsRecords, deployed_logs
from components.aws.jobs.studio import AwsStudio
from components.aws.money.scopes import ScopeArgs
from components.aws.money.stopper import AwsBudgetStop
from components.aws.network.vpc import AwsNetwork
from components.aws.storage.tiers import AwsStorage, AwsStorageArgs
from components.aws.validation.alert_topic import AwsAlertTopic, AwsAlertTopicArgs
from infra.cost.aws.jobs import job_hour_usd
from infra.naming import lasting_tags
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from stacks.clouds.aws.job_validation import job_validation_on_aws
from stacks.clouds.aws.options import on_aws
from stacks.clouds.aws.storage import storage_args, uri
from stacks.clouds.budgets import budget_scopes
from stacks.clouds.tags import owners_tags
from stacks.parts import JobBudget, JobPerson, JobPlace, JobValidation, Store
from stacks.providers import aws_provider


@dataclass(frozen=True)
class AwsJobPlace(JobPlace):
    """The network and the stores of jobs on AWS, and the key of the stack's logs."""

    network: AwsNetwork
    tiers: AwsStorage
    records: AwsRecords


class AwsJobs:
    """`stacks.parts.JobCloud` on AWS."""

    service: Literal["sagemaker"] = "sagemaker"

    def __init__(self, spec: StackSpec, layout: SmallLayout, on: AwsSpec) -> None:
        self._spec, self._layout, self._on = spec, layout, on
        tags = owners_tags(spec)
        self._provider = aws_provider(
            f"{spec.name}-aws",
            on,
            region=spec.region,
            tags={**tags, **lasting_tags(spec.name)},
        )
        self._on_aws = on_aws(on, self._provider)
        folders = {team.name: team.data_folder for team in spec.teams}
        self._people: list[PersonArgs] = [
            {"name": one.name, "team": one.team, "folder": folders[one.team]} for one in layout.people
        ]

    def place(self) -> AwsJobPlace:
        """A VPC with one NAT gateway, three buckets, and the key of the stack's logs."""
        spec, layout = self._spec, self._layout
        network = AwsNetwork(
            f"{spec.name}-network",
            {
                "region": spec.region,
                "cidr": layout.network_cidr,
                "zones": layout.zones,
                "nat_per_zone": self._on.nat == "per_zone",
                "flow_log_retention_days": spec.data.log_retention_days,
                "interface_endpoints": self._on.endpoints,
            },
            self._on_aws,
        )
        subnets = [network.private_subnet_id_by_zone[zone] for zone in layout.zones]
        kept: AwsStorageArgs = {
            **storage_args(spec, network, subnets),
            # SageMaker writes checkpoints, and its CheckpointConfig has no key (botocore 1.44.5
            # sagemaker/2017-07-24). Its guide does not say which header it sends: without one, the bucket's
            # key is used; with `aws:kms` alone, as documented of OutputDataConfig without a key, that of the
            # account for S3. It writes as the role of the job.
            "unnamed_key_of_checkpoints": [f"{spec.name}-{kind}-" for kind in (*RIGHTS, "smoke-role")],
        }
        tiers = AwsStorage(f"{spec.name}-storage", kept, self._on_aws)
        recorded = f"{spec.name}-records"
        records = AwsRecords(
            recorded,
            {
                "region": spec.region,
                "log_groups": [
                    log_group_name(f"{spec.name}-{part}-function") for part in ("budgets", "cleaning")
                ],
                "earlier": deployed_logs(recorded, pulumi.InvokeOptions(provider=self._provider)),
            },
            self._on_aws,
        )
        return AwsJobPlace(
            store=Store(
                checkpoint_uri=uri(tiers.checkpoint_bucket),
                dataset_uri=uri(tiers.dataset_bucket),
                artifact_uri=uri(tiers.artifact_bucket),
                checkpoints=None,
                ready=tiers,
            ),
            subnets=subnets,
            # Open to itself and, by HTTPS, to the internet, as machines of a job need, with or without EFA.
            security_groups=[network.efa_security_group_id],
            kms_key=tiers.kms_key_arn,
            code_uri=uri(tiers.artifact_bucket, f"/{CODE}"),
            network=network,
            tiers=tiers,
            records=records,
        )

    @functools.cached_property
    def _roles(self) -> AwsPeople:
        spec = self._spec
        return AwsPeople(
            f"{spec.name}-people",
            {"region": spec.region, "stack": spec.name, "people": self._people},
            self._on_aws,
        )

    def notebooks(self, place: AwsJobPlace) -> AwsStudio:
        """A closed domain of SageMaker Studio, and removal of people's spaces on deletion."""
        self._studio = self._domain(place)
        return self._studio

    def _domain(self, place: AwsJobPlace) -> AwsStudio:
        spec, layout = self._spec, self._layout
        cleaning = AwsCleaning(
            f"{spec.name}-cleaning",
            {
                "region": spec.region,
                "stack": spec.name,
                "vpc_id": place.network.vpc_id,
                "log_retention_days": spec.data.log_retention_days,
                "kms_key_arn": place.records.kms_key_arn,
            },
            self._on_aws,
        )
        studio = AwsStudio(
            f"{spec.name}-studio",
            {
                "region": spec.region,
                "vpc_id": place.network.vpc_id,
                "subnet_ids": pulumi.Output.all(*place.subnets),
                "security_group_id": place.network.efa_security_group_id,
                "kms_key_arn": place.tiers.kms_key_arn,
                "people": self._people,
                "roles": self._roles.roles,
                "machines": layout.notebooks.machines,
                "disk_gib": layout.notebooks.disk_gib,
                "idle_minutes": layout.idle_minutes,
                "retain_homes": spec.data.on_destroy == "keep",
                "protect": spec.data.protect,
            },
            pulumi.ResourceOptions.merge(self._on_aws, pulumi.ResourceOptions(depends_on=[cleaning.groups])),
        )
        cleaning.empty(studio.domain_id, studio.profiles)
        return studio

    def tracking(self, place: AwsJobPlace) -> pulumi.Output[str]:
        """An MLflow App; its ARN is the tracking URI."""
        app = AwsMlflow(
            f"{self._spec.name}-mlflow",
            {
                "region": self._spec.region,
                "artifact_bucket": place.tiers.artifact_bucket,
                "artifact_bucket_arn": place.tiers.artifact_bucket_arn,
                "kms_key_arn": place.tiers.kms_key_arn,
                "domain_id": self._studio.domain_id,
            },
            self._on_aws,
        )
        return app.arn

    def people(self, place: AwsJobPlace, tracking: pulumi.Output[str]) -> list[JobPerson]:
        """Roles for each one's notebooks and classes of jobs, with access to the team's folders."""
        spec, layout = self._spec, self._layout
        given = AwsPeopleRights(
            f"{spec.name}-rights",
            {
                "region": spec.region,
                "stack": spec.name,
                "people": self._people,
                "roles": self._roles.roles,
                "checkpoint_bucket_arn": place.tiers.checkpoint_bucket_arn,
                "dataset_bucket_arn": place.tiers.dataset_bucket_arn,
                "artifact_bucket_arn": place.tiers.artifact_bucket_arn,
                "kms_key_arn": place.tiers.kms_key_arn,
                "subnet_ids": pulumi.Output.all(*place.subnets),
                "security_group_id": place.network.efa_security_group_id,
                "domain_id": self._studio.domain_id,
                "mlflow_arn": tracking,
                "job_machines": [one.machine for one in layout.machines],
                "notebook_machines": layout.notebooks.machines,
                "training_plans": sorted({arn for one in layout.machines if (arn := one.reservation)}),
                "image": spec.smoke.image,
            },
            self._on_aws,
        )
        names = [one["name"] for one in self._people]
        return [JobPerson(who, given.role_arns[who], given.job_role_arns[who]) for who in names]

    def validation(
        self, place: AwsJobPlace, tracking: pulumi.Output[str], machine: JobMachineSpec
    ) -> JobValidation:
        """A job of SageMaker in the stack's network; with a schedule, also a topic."""
        return job_validation_on_aws(
            self._spec,
            self._on,
            machine,
            place=place,
            tiers=place.tiers,
            tracking=tracking,
            topic=self._alert_topic.topic_arn if self._spec.smoke.schedule else None,
            usd_per_hour=self.price(machine),
            opts=self._on_aws,
        )

    @functools.cached_property
    def _alert_topic(self) -> AwsAlertTopic:
        args: AwsAlertTopicArgs = {"emails": self._spec.budget.alert_emails}
        if self._spec.smoke.schedule:
            # An alarm reports failed starts.
            args["alarms_of"] = self._spec.region
        return AwsAlertTopic(f"{self._spec.name}-training-alerts", args, self._on_aws)

    def budgets(self, place: AwsJobPlace) -> list[JobBudget]:
        """AWS Budgets for stack, teams and people, with a function behind them."""
        spec, found = self._spec, budget_scopes(self._spec, self._layout)
        scopes: list[ScopeArgs] = [
            {
                "scope": one.scope,
                "value": one.value,
                "monthly_usd": one.monthly_usd,
                "over_budget": one.over_budget,
                "emails": list(one.emails),
            }
            for one in found
        ]
        stop = AwsBudgetStop(
            f"{spec.name}-budgets",
            {
                "region": spec.region,
                "stack": spec.name,
                "scopes": scopes,
                "people": {one["name"]: one["team"] for one in self._people},
                "artifact_bucket": place.tiers.artifact_bucket,
                "artifact_bucket_arn": place.tiers.artifact_bucket_arn,
                "storage_key_arn": place.tiers.kms_key_arn,
                "kms_key_arn": place.records.kms_key_arn,
                "people_topic_arn": self._alert_topic.topic_arn,
                "log_retention_days": spec.data.log_retention_days,
            },
            self._on_aws,
        )
        return [
            JobBudget(stop.budget_names[f"{scope}-{value}"], scope, value, usd, over_budget)
            for scope, value, usd, over_budget, _ in found
        ]

    def price(self, machine: JobMachineSpec) -> float | None:
        """Price of an hour of one machine for a job."""
        return job_hour_usd(machine, self._spec.region)
