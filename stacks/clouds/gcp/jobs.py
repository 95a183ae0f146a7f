"""Google Cloud without a cluster: Vertex AI's jobs and notebooks, buckets, MLflow, and enforced budgets."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pulumi
import pulumi_gcp as gcp

from components.gcp.apis import GcpApis
from components.gcp.jobs.folders import CODE, GcpJobFolders
from components.gcp.jobs.person import GcpPerson
from components.gcp.jobs.roles import GcpJobRoles
from components.gcp.jobs.tracking import GcpJobTracking, GcpTrackingVisitors, OAuthClientArgs
from components.gcp.jobs.users import GcpKeyUsers
from components.gcp.money.scopes import ScopeArgs
from components.gcp.money.stopper import GcpBudgetStop
from components.gcp.network.vpc import GcpNetwork
from components.gcp.storage.tiers import GcpStorage
from components.gcp.studio.notebook import GcpNotebook
from components.gcp.teams.team_data import GcpTeamData
from components.ordering import after
from infra.catalog.gcp.deploying import apis_of_jobs
from infra.cost.gcp.jobs import job_hour_usd
from infra.naming import TAG_PREFIX, gcp_labels, lasting_tags
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec, OAuthClientSpec
from infra.stackspec.layouts import JobMachineSpec, PersonSpec, SmallLayout
from infra.stackspec.model import demanded
from stacks.clouds.budgets import budget_scopes
from stacks.clouds.gcp.currency import budget_currency
from stacks.clouds.gcp.job_validation import job_validation_on_gcp
from stacks.clouds.gcp.storage import storage_args, uri
from stacks.clouds.tags import owners_tags
from stacks.parts import JobBudget, JobPerson, JobPlace, JobValidation, Store
from stacks.providers import gcp_provider

# There are no pods; a range for them makes the network usable for a cluster, so a growing stack keeps it.
_PODS_PER_NODE = 32


@dataclass(frozen=True)
class GcpJobPlace(JobPlace):
    """The network and the stores of jobs on Google Cloud."""

    network: GcpNetwork
    tiers: GcpStorage
    folders: GcpJobFolders
    teams: Mapping[str, GcpTeamData]
    """Data of each team, by folder."""
    key: pulumi.Output[str]
    """The key of the buckets, with permissions for disks and jobs."""


class GcpJobs:
    """`stacks.parts.JobCloud` on Google Cloud."""

    service: Literal["vertex"] = "vertex"

    def __init__(self, spec: StackSpec, layout: SmallLayout, on: GcpSpec) -> None:
        self._spec, self._layout, self._on = spec, layout, on
        self._labels = gcp_labels({**owners_tags(spec), **lasting_tags(spec.name)})
        self._provider = gcp_provider(
            f"{spec.name}-gcp",
            project=on.project,
            region=spec.region,
            labels=self._labels,
            impersonate=on.impersonate,
        )
        provided = pulumi.ResourceOptions(providers=[self._provider])
        apis = apis_of_jobs(scheduled=spec.smoke.schedule is not None)
        switched_on = GcpApis(f"{spec.name}-apis", {"names": apis}, provided)
        self._on_gcp = pulumi.ResourceOptions(providers=[self._provider], depends_on=[switched_on])
        self._number = gcp.organizations.get_project_output(
            project_id=on.project, opts=pulumi.InvokeOutputOptions(provider=self._provider)
        ).number
        self._folders = {team.name: team.data_folder for team in spec.teams}
        self._made: dict[str, GcpPerson] = {}

    def place(self) -> GcpJobPlace:
        """A VPC with one NAT gateway, three buckets, and folders with access for people."""
        spec = self._spec
        network = GcpNetwork(
            f"{spec.name}-network",
            {
                "project": self._on.project,
                "region": spec.region,
                "cidr": self._layout.network_cidr,
                "pods_per_node": _PODS_PER_NODE,
                "flow_log_retention_days": spec.data.log_retention_days,
                "cloud_run": True,
            },
            self._on_gcp,
        )
        # What bills is gone before a deletion ends at a subnetwork (see `GcpNetwork`).
        last = pulumi.ResourceOptions(depends_on=network.deleted_last)
        self._on_gcp = pulumi.ResourceOptions.merge(self._on_gcp, last)
        tiers = GcpStorage(
            f"{spec.name}-storage", storage_args(spec, self._on, self._number, network), self._on_gcp
        )
        users = GcpKeyUsers(
            f"{spec.name}-key-users",
            {
                "key_id": tiers.key_id,
                "project": self._on.project,
                "project_number": self._number,
                "services": ["aiplatform.googleapis.com"],
            },
            self._on_gcp,
        )
        folders = GcpJobFolders(
            f"{spec.name}-folders", {"artifact_bucket": tiers.artifact_bucket}, self._on_gcp
        )
        return GcpJobPlace(
            store=Store(
                checkpoint_uri=uri(tiers.checkpoint_bucket),
                dataset_uri=uri(tiers.dataset_bucket),
                artifact_uri=uri(tiers.artifact_bucket),
                checkpoints=None,
                ready=tiers,
            ),
            # Jobs run in a network of Google.
            subnets=[],
            security_groups=[],
            kms_key=users.key_id,
            code_uri=after(uri(tiers.artifact_bucket, f"/{CODE}"), [folders]),
            network=network,
            tiers=tiers,
            folders=folders,
            teams={
                folder: self._team(folder, tiers)
                for folder in sorted({self._folders[one.team] for one in self._layout.people})
            },
            key=users.key_id,
        )

    def _team(self, folder: str, tiers: GcpStorage) -> GcpTeamData:
        """Same names as in a cluster: a growing stack keeps the folders."""
        return GcpTeamData(
            f"{self._spec.name}-team-{folder}",
            {
                "project": self._on.project,
                "project_number": self._number,
                "folder": folder,
                "checkpoint_bucket": tiers.checkpoint_bucket,
                "dataset_bucket": tiers.dataset_bucket,
                "shared_folder": tiers.shared_folder,
            },
            self._on_gcp,
        )

    @functools.cached_property
    def _roles(self) -> GcpJobRoles:
        return GcpJobRoles(f"{self._spec.name}-roles", {"stack": self._spec.name}, self._on_gcp)

    def notebooks(self, place: GcpJobPlace) -> pulumi.Resource:
        """A notebook per person, with the person's service account; returns the last one."""
        return [self._notebook(place, one) for one in self._layout.people][-1]

    def _notebook(self, place: GcpJobPlace, one: PersonSpec) -> GcpNotebook:
        spec, layout = self._spec, self._layout
        self._made[one.name] = self._person(place, one)
        return GcpNotebook(
            f"{spec.name}-notebook-{one.name}",
            {
                "zone": layout.zones[0],
                "person": one.name,
                "email": one.email,
                "account": self._made[one.name].email,
                "network": place.network.network_id,
                "subnetwork": place.network.subnetwork_id,
                "key_id": place.key,
                "machine": layout.notebooks.machines[0],
                "disk_gib": layout.notebooks.disk_gib,
                "idle_minutes": layout.idle_minutes,
                "labels": self._labels_of(one),
                "role": self._roles.notebook,
                "protect": spec.data.protect,
            },
            self._on_gcp,
        )

    def _person(self, place: GcpJobPlace, one: PersonSpec) -> GcpPerson:
        team, tiers, folders = place.teams[self._folders[one.team]], place.tiers, place.folders
        return GcpPerson(
            f"{self._spec.name}-person-{one.name}",
            {
                "project": self._on.project,
                "stack": self._spec.name,
                "person": one.name,
                "email": one.email,
                "folders": {
                    "dataset_bucket": tiers.dataset_bucket,
                    "shared": tiers.shared_folder,
                    "datasets": team.datasets,
                    "checkpoint_bucket": tiers.checkpoint_bucket,
                    "checkpoints": team.checkpoints,
                    "artifact_bucket": tiers.artifact_bucket,
                    "runs": folders.runs,
                },
                "jobs_role": self._roles.jobs,
                "signs_role": self._roles.signs,
            },
            self._on_gcp,
        )

    def _labels_of(self, one: PersonSpec) -> Mapping[str, str]:
        return gcp_labels({f"{TAG_PREFIX}:person": one.name, f"{TAG_PREFIX}:team": one.team})

    def tracking(self, place: GcpJobPlace) -> pulumi.Output[str]:
        """MLflow on Cloud Run, with Cloud SQL; returns its URL."""
        spec, database, login = self._spec, demanded(self._on.database), self._on.login
        wanted = demanded(spec.tracking)
        self._server = GcpJobTracking(
            f"{spec.name}-tracking",
            {
                "project": self._on.project,
                "region": spec.region,
                "network": place.network.network_id,
                "subnetwork": demanded(place.network.cloud_run_subnetwork_id),
                "services_network": place.network.services_network,
                "artifact_bucket": place.tiers.artifact_bucket,
                "key_id": place.key,
                "image": wanted.image,
                "replicas": wanted.replicas,
                "workers": wanted.workers,
                "tier": database.tier,
                "availability": database.availability,
                "disk_gib": database.disk_gib,
                "deletion_protection": spec.data.protect,
                "last_backup": spec.data.on_destroy == "keep",
                "project_number": self._number,
                "login": None if login is None else _client(login),
            },
            self._on_gcp,
        )
        return self._server.url

    def people(self, _: GcpJobPlace, __: pulumi.Output[str]) -> list[JobPerson]:
        """The service account of each person, with access of both to the tracking server."""
        members: dict[str, pulumi.Input[str]] = {}
        for one in self._layout.people:
            members[f"{one.name}-account"] = self._made[one.name].member
            members[f"{one.name}-user"] = f"user:{one.email}"
        visitors = GcpTrackingVisitors(
            f"{self._spec.name}-visitors",
            {"region": self._spec.region, "service": self._server.service, "members": members},
            self._on_gcp,
        )
        return [
            JobPerson(one.name, after(self._made[one.name].email, visitors.ready))
            for one in self._layout.people
        ]

    def validation(self, place: GcpJobPlace, _: pulumi.Output[str], machine: JobMachineSpec) -> JobValidation:
        """A custom job of Vertex AI, with its own service account; with a schedule, also a topic."""
        return job_validation_on_gcp(
            self._spec,
            self._on,
            machine,
            tiers=place.tiers,
            folders=place.folders,
            key=place.key,
            tracking=self._server.service,
            signs_role=self._roles.signs,
            usd_per_hour=self.price(machine),
            opts=self._on_gcp,
        )

    def budgets(self, place: GcpJobPlace) -> list[JobBudget]:
        """Budgets of Cloud Billing for stack, teams and people, with a function behind them."""
        spec, found = self._spec, budget_scopes(self._spec, self._layout)
        # Labels are lower case.
        label = {one.value: gcp_labels({"value": one.value})["value"] for one in found}
        scopes: list[ScopeArgs] = [
            {
                "scope": one.scope,
                "value": label[one.value],
                "monthly_usd": one.monthly_usd,
                "over_budget": one.over_budget,
                "emails": list(one.emails),
            }
            for one in found
        ]
        stop = GcpBudgetStop(
            f"{spec.name}-budgets",
            {
                "project": self._on.project,
                "project_number": self._number,
                "billing_account": self._on.billing_account,
                "currency": budget_currency(self._on),
                "region": spec.region,
                "stack": self._labels[f"{TAG_PREFIX}-stack"],
                "scopes": scopes,
                "artifact_bucket": place.tiers.artifact_bucket,
                "emails": spec.budget.alert_emails,
            },
            self._on_gcp,
        )
        return [
            JobBudget(stop.budget_names[f"{scope}-{label[value]}"], scope, value, usd, over_budget)
            for scope, value, usd, over_budget, _ in found
        ]

    def price(self, machine: JobMachineSpec) -> float | None:
        """Price of an hour of one machine for a job."""
        return job_hour_usd(machine, self._spec.region)


def _client(login: OAuthClientSpec) -> OAuthClientArgs:
    return {"client_id": login.client_id, "client_secret": login.client_secret}
