"""The account of a stack, and the answers of checks whose requests fail."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore import exceptions

from infra.clouds.aws.login import DENIED, Clients, code_and_message, logged_in
from infra.naming import TAG_PREFIX
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.machine import LocalMachine

STACK_TAG = f"{TAG_PREFIX}:stack"


@dataclass(frozen=True)
class Account:
    """A stack on AWS, and its account."""

    spec: StackSpec
    layout: ClusterLayout | SmallLayout | SlurmLayout
    on: AwsSpec
    clients: Clients
    machine: LocalMachine = field(default_factory=LocalMachine)
    beside: tuple[StackSpec, ...] = ()
    """Specs of other stacks that are deployed with this one in its region, and share its quotas."""
    deployer: Clients | None = None
    """Clients with the credentials of the environment, where `clients` assume a role."""
    manager: StackSpec | None = None
    """The large stack of a cluster, where it is in another account or on another cloud."""

    @property
    def is_guest(self) -> bool:
        """Return whether the stack is a cluster whose large stack is in another account."""
        return self.manager is not None

    @property
    def cluster(self) -> ClusterLayout:
        """The layout; only for stacks with a cluster."""
        assert isinstance(self.layout, ClusterLayout)
        return self.layout

    @property
    def slurm(self) -> SlurmLayout:
        """The layout; only for stacks with Slurm."""
        assert isinstance(self.layout, SlurmLayout)
        return self.layout

    @property
    def machines(self) -> ClusterLayout | SlurmLayout:
        """The layout; only for stacks with pools."""
        assert not isinstance(self.layout, SmallLayout)
        return self.layout

    def client(self, service: str, region: str = "") -> Any:
        """A client in the region of the stack, or in another one."""
        return self.clients(service, region or self.spec.region)

    def pages(self, service: str, operation: str, key: str, **asked: Any) -> Iterator[Any]:
        """Every item of a list that a service returns in pages."""
        for page in self.client(service).get_paginator(operation).paginate(**asked):
            yield from page[key]

    def found(self, service: str, operation: str, *absent: str, **asked: Any) -> Any:
        """The response to a request; None where its error code is one of `absent`."""
        try:
            return getattr(self.client(service), operation)(**asked)
        except exceptions.ClientError as error:
            if error.response["Error"]["Code"] in absent:
                return None
            raise

    def log_group(self, name: str) -> Any:
        """The log group of this name; None without one."""
        groups = self.pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=name)
        return next((group for group in groups if group["logGroupName"] == name), None)

    def foreign_log_group(self, check: str, name: str, kind: str) -> Answer:
        """The answer about a log group that does not exist, or has the tag of the stack.

        `up` fails with ResourceAlreadyExistsException for any other.
        """
        found = self.log_group(name)
        tags = self._tags(found) if found else {}
        if found is None or tags.get(STACK_TAG) == self.spec.name:
            return Answer(check, State.READY, f"no other log group of {kind} exists")
        text = f"the log group {name} of {kind} exists, so up could not create it"
        if STACK_TAG in tags:
            text += f"; it belongs to the stack {tags[STACK_TAG]}"
        fix = f"aws logs delete-log-group --region {self.spec.region} --log-group-name {name}"
        if STACK_TAG in tags or found.get("kmsKeyId"):
            fix = "Deploy to another account or region: others may use the group."
        return Answer(check, State.SHORT, text, fix)

    def _tags(self, group: dict[str, Any]) -> dict[str, str]:
        arn = group.get("logGroupArn") or group["arn"].removesuffix(":*")
        found: dict[str, str] = self.client("logs").list_tags_for_resource(resourceArn=arn)["tags"]
        return found

    def owns(self, tags: list[dict[str, str]]) -> bool:
        """Return whether a resource with these tags is of the stack, or of one that is deployed with it."""
        names = {self.spec.name, *(spec.name for spec in self.beside)}
        return any(tag["Key"] == STACK_TAG and tag["Value"] in names for tag in tags)


def answered(name: str, check: Callable[[Account], Iterator[Answer]], account: Account) -> Iterator[Answer]:
    """The answers of a check, or the reason why it could not be made. Raises LoggedOutError."""
    try:
        with logged_in():
            yield from check(account)
    except exceptions.ClientError as error:
        yield unanswered(name, error)
    except exceptions.BotoCoreError as error:
        yield Answer(name, State.UNKNOWN, str(error), "Check the connection to AWS, and retry.")


def unanswered(name: str, error: exceptions.ClientError) -> Answer:
    """The answer of a check whose request was denied or failed."""
    code, message = code_and_message(error)
    fix = "Retry; if it fails again, check the status of the service."
    if code in DENIED:
        fix = f"Allow the request {error.operation_name}; docs/reference/preflight.md has the policy."
    return Answer(name, State.UNKNOWN, f"{error.operation_name} was refused: {code}: {message}", fix)
