"""The project of a stack, and the answers of checks whose requests fail."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import requests

from infra.clouds.gcp import api as google_api
from infra.clouds.gcp import login
from infra.clouds.gcp.api import DISABLED, HALF, USER_PROJECT, ApiRequestError
from infra.clouds.gcp.login import logged_in
from infra.naming import gcp_labels, lasting_tags
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpPoolSpec, GcpSpec
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.deployment import manager_elsewhere
from trainstack.preflight.gcp.methods import METHODS
from trainstack.preflight.machine import LocalMachine

Row = Mapping[str, Any]
_ABSENT, _DENIED = "NOT_FOUND", "PERMISSION_DENIED"
# The label of machines and disks of a cluster (GKE documentation, "Creating and managing labels").
_CLUSTER_LABEL = "goog-k8s-cluster-name"


@dataclass(frozen=True)
class Project:
    """A stack on Google Cloud, and its project."""

    spec: StackSpec
    layout: ClusterLayout | SmallLayout | SlurmLayout
    on: GcpSpec
    session: requests.Session
    identity: Callable[[], str | None] = lambda: None
    """The IAM member of the credentials; None where they do not contain it."""
    machine: LocalMachine = field(default_factory=LocalMachine)
    beside: tuple[StackSpec, ...] = ()
    """Specs of other stacks that are deployed with this one, and share the project's quotas."""
    deployer: Callable[[], str | None] | None = None
    """The IAM member of the environment, where requests are sent as a service account."""

    @classmethod
    def logged_in(
        cls,
        spec: StackSpec,
        layout: ClusterLayout | SmallLayout | SlurmLayout,
        on: GcpSpec,
        attempts: int,
        beside: tuple[StackSpec, ...] = (),
    ) -> "Project":
        """The project with the credentials of the environment. Raises LoggedOutError."""
        # Requests are billed to the stack's project where they have none of their own, as by its provider.
        session, _ = login.session(attempts, on.project, on.impersonate)
        known = partial(login.who, getattr(session, "credentials", None))
        if on.impersonate is None:
            return cls(spec, layout, on, session, known, beside=beside)
        source, _ = login.session(attempts)
        deployer = partial(login.who, getattr(source, "credentials", None))
        return cls(spec, layout, on, session, known, beside=beside, deployer=deployer)

    @cached_property
    def who(self) -> str | None:
        """The IAM member that sends the requests. Raises LoggedOutError."""
        return self.identity()

    @property
    def cluster(self) -> ClusterLayout:
        """The layout; only for stacks with a cluster."""
        assert isinstance(self.layout, ClusterLayout)
        return self.layout

    @property
    def machines(self) -> ClusterLayout | SlurmLayout:
        """The layout; only for stacks with pools."""
        assert not isinstance(self.layout, SmallLayout)
        return self.layout

    @property
    def path(self) -> str:
        """The resource name of the project."""
        return f"projects/{self.on.project}"

    @property
    def location(self) -> str:
        """The region of the stack in the project, where its cluster is."""
        return f"{self.path}/locations/{self.spec.region}"

    @cached_property
    def about(self) -> Row:
        """The project in Resource Manager."""
        return self.asked("cloudresourcemanager.projects.get", name=self.path)

    @cached_property
    def server_config(self) -> Row:
        """The versions and channels of GKE in the region."""
        return self.asked("container.projects.locations.getServerConfig", name=self.location)

    @property
    def number(self) -> str:
        """The number of the project, which some services use in names."""
        return str(self.about["name"]).rpartition("/")[2]

    def pool(self, name: str) -> GcpPoolSpec:
        """The settings of a pool that only GKE has."""
        return self.on.pools.get(name, GcpPoolSpec())

    def asked(self, method: str, **given: Any) -> dict[str, Any]:
        """The response of a method. Raises as `google_api.answer` does."""
        with _noted(method):
            return google_api.answer(self.session, METHODS[method], given)

    def found(self, method: str, **given: Any) -> dict[str, Any] | None:
        """The response of a method; None where the resource does not exist."""
        try:
            return self.asked(method, **given)
        except ApiRequestError as error:
            if error.code == _ABSENT:
                return None
            raise

    def items(self, method: str, key: str, **given: Any) -> Iterator[Row]:
        """Every item of a list, from all its pages."""
        with _noted(method):
            for page in google_api.pages(self.session, METHODS[method], given):
                yield from page.get(key) or ()

    def everywhere(self, method: str, key: str, **given: Any) -> Iterator[tuple[str, Row]]:
        """Every item of an aggregated list of Compute Engine, with the name of its zone or region.

        Raises ApiRequestError where a location did not respond: its items would be missing.
        """
        with _noted(method):
            asked = {"project": self.on.project, **given}
            for page in google_api.pages(self.session, METHODS[method], asked):
                for scope, rows in (page.get("items") or {}).items():
                    warning = (rows.get("warning") or {}).get("code")
                    if warning not in (None, "NO_RESULTS_ON_PAGE"):
                        raise ApiRequestError(HALF, f"{scope}: {warning}")
                    yield from ((scope.rpartition("/")[2], row) for row in rows.get(key) or ())

    @property
    def federated(self) -> bool:
        """Return whether the manager of the stack, which is deployed with it, is on another cloud."""
        return any(one.cloud != self.spec.cloud for one in self.beside)

    @property
    def manager(self) -> StackSpec | None:
        """The large stack of a cluster, where it is in another project or on another cloud."""
        return manager_elsewhere(self.spec, self.beside)

    @property
    def names(self) -> tuple[str, ...]:
        """The stack, and those that are deployed with it."""
        return (self.spec.name, *(spec.name for spec in self.beside))

    def owns(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether a resource with these labels is of the stack."""
        return _of(self.spec.name, labels or {})

    def shares(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether it is of the stack, or of one that is deployed with it."""
        return any(_of(name, labels or {}) for name in self.names)


def _of(stack: str, labels: Mapping[str, str]) -> bool:
    mine = gcp_labels(lasting_tags(stack))
    key = next(iter(mine))
    return labels.get(key) == mine[key] or labels.get(_CLUSTER_LABEL) == stack


def answered(name: str, check: Callable[[Project], Iterator[Answer]], project: Project) -> Iterator[Answer]:
    """The answers of a check, or the reason why it could not be made. Raises LoggedOutError."""
    try:
        with logged_in():
            yield from check(project)
    except ApiRequestError as error:
        yield unanswered(name, error, project)
    except requests.RequestException as error:
        yield Answer(name, State.UNKNOWN, str(error), "Check the connection to Google Cloud, and retry.")
    except (KeyError, ValueError) as error:
        text = f"a response does not have the form of its API: {type(error).__name__}: {error}"
        yield Answer(name, State.UNKNOWN, text, "Retry; if it fails again, it is a defect of this check.")


def unanswered(name: str, error: ApiRequestError, project: Project) -> Answer:
    """The answer of a check whose request was denied or failed."""
    method = error.method
    text = f"{method} was refused: {error.code}: {error.message}"
    fix = "Retry; if it fails again, check the status of the service."
    if error.code == DISABLED:
        service = error.service or f"{method.partition('.')[0]}.googleapis.com"
        fix = enable([service], project)
    elif error.code == USER_PROJECT:
        fix = (
            "Grant roles/serviceusage.serviceUsageConsumer on the project to the caller: requests count "
            "against its quotas."
        )
    elif error.code == _DENIED:
        right = METHODS[method].right if method in METHODS else ""
        fix = f"Allow {right or 'the request'}; docs/reference/preflight.md has roles with all of them."
    return Answer(name, State.UNKNOWN, text, fix)


def enable(services: list[str], project: Project) -> str:
    """The command that enables services."""
    return f"gcloud services enable {' '.join(services)} --project={project.on.project}"


@contextmanager
def _noted(method: str) -> Iterator[None]:
    """Add the method to an ApiRequestError that the block raises."""
    try:
        yield
    except ApiRequestError as error:
        error.method = method
        raise
