"""Faults that a rehearsal injects on demand: model, command-line forms, scenario files and `faults.json`."""

import difflib
import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from infra.errors import Problem, UserError

Operation = Literal["create", "update", "delete"]
Kind = Literal[
    "throttling",
    "transient",
    "slow",
    "capacity",
    "quota",
    "eventual",
    "expired",
    "crash-before",
    "crash-after",
]
OrgPolicy = Literal[
    "compute.requireShieldedVm",
    "compute.vmCanIpForward",
    "compute.vmExternalIpAccess",
    "compute.restrictVpcPeering",
    "sql.restrictPublicIp",
    "ainotebooks.restrictPublicIp",
    "ainotebooks.disableFileDownloads",
    "ainotebooks.disableRootAccess",
    "ainotebooks.disableTerminal",
    "ainotebooks.requireAutoUpgradeSchedule",
    "iam.disableServiceAccountCreation",
    "run.allowedIngress",
    # The security baseline of new organizations, by its managed and its legacy names.
    "compute.managed.restrictProtocolForwardingCreationForTypes",
    "compute.restrictProtocolForwardingCreationForTypes",
    "compute.setNewProjectDefaultToZonalDNSOnly",
    "essentialcontacts.allowedContactDomains",
    "essentialcontacts.managed.allowedContactDomains",
    "iam.allowedPolicyMemberDomains",
    "iam.automaticIamGrantsForDefaultServiceAccounts",
    "iam.disableServiceAccountKeyCreation",
    "iam.disableServiceAccountKeyUpload",
    "iam.managed.allowedPolicyMembers",
    "iam.managed.disableServiceAccountKeyCreation",
    "iam.managed.disableServiceAccountKeyUpload",
    "iam.managed.preventPrivilegedBasicRolesForDefaultServiceAccounts",
    "storage.uniformBucketLevelAccess",
]
Victim = Literal["daemon", "engine", "program", "provider"]
FORMS = (
    "smoke:slow-rank=RANK",
    "jobs:interrupted=SECONDS[@NAME]",
    "TYPE:throttling[=TIMES]",
    "TYPE:transient[=TIMES]",
    "TYPE:slow[=SECONDS]",
    "TYPE:capacity",
    "TYPE:quota",
    "TYPE:eventual[=SECONDS]",
    "TYPE:expired",
    "TYPE:crash-before[=VICTIM]",
    "TYPE:crash-after[=VICTIM]",
)
_OF_KIND = {re.split(r"[:=[]", form)[1]: form for form in FORMS}
_ONLY_CREATES = ("capacity", "quota", "eventual")
_SECONDS = {"slow": 10.0, "eventual": 2.0}
_TEXT = re.compile(
    r"(?P<on>(?:aws|gcp|kubernetes)(?::[^@=\s]+)?|\*):(?:(?P<operation>[a-z]+)\.)?(?P<kind>[a-z-]+)"
    r"(?:=(?P<value>[^@]+))?(?:@(?P<which>.+))?"
)
_INTERRUPTED = re.compile(r"jobs:interrupted=(?P<seconds>\d+(?:\.\d+)?)(?:@(?P<name>.+))?")
_CLOSED = ConfigDict(frozen=True, extra="forbid")


class SmokeFault(BaseModel):
    """A training rank that is stopped for a share of every period."""

    model_config = _CLOSED

    slow_rank: int = Field(ge=0)
    duty: float = Field(default=0.5, gt=0, lt=1)
    """Share of the time in which the rank may run."""


class Interruption(BaseModel):
    """A training job on spot capacity loses its machines `seconds` after it began to train, once."""

    model_config = _CLOSED

    seconds: float = Field(gt=0)
    name: str | None = None
    """Name of the job; None: the next one that trains."""


class CloudFault(BaseModel):
    """Fault of operations on a type: the `nth` one, those on a resource called `name`, or a random share.

    By default it hits the first one. `probability` draws for each resource by its URN and the scenario's
    seed, so that the order in which an engine works in parallel does not matter.
    """

    model_config = _CLOSED

    on: str = Field(min_length=1)
    kind: Kind
    operation: Operation = "create"
    nth: int | None = Field(default=None, ge=1)
    name: str | None = None
    probability: float | None = Field(default=None, gt=0, le=1)
    times: int = Field(default=1, ge=1)
    seconds: float | None = Field(default=None, gt=0)
    victim: Victim = "daemon"

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if sum(choice is not None for choice in (self.nth, self.name, self.probability)) > 1:
            raise ValueError("give one of nth, name and probability")
        if self.kind in _ONLY_CREATES and self.operation != "create":
            raise ValueError(f"{self.kind} faults hit only creates")
        return self

    @property
    def duration_s(self) -> float:
        """Delay of a slow operation, or time for which a new resource is hidden."""
        return self.seconds if self.seconds is not None else _SECONDS.get(self.kind, 0.0)

    def matches(self, operation: str, token: str) -> bool:
        """Return whether the fault may hit an operation on a type such as `aws:eks/nodeGroup:NodeGroup`."""
        if operation != self.operation:
            return False
        return token.startswith(f"{self.on}:") or fnmatch.fnmatchcase(token, self.on)


class ScarceMachines(BaseModel):
    """Machines of a type that a zone has left for a market; without a row there are always enough."""

    model_config = _CLOSED

    instance_type: str
    zone: str = "*"
    market: Literal["on_demand", "spot", "capacity_block", "flex_start", "*"] = "*"
    instances: int = Field(ge=0)


class Organization(BaseModel):
    """The organization of a Google Cloud project: its members, and who else may have roles."""

    model_config = _CLOSED

    domains: tuple[str, ...] = ()
    """Domains of its directory."""
    projects: tuple[str, ...] = ()
    """Further projects in it, whose service accounts belong to it."""
    allowed_members: tuple[str, ...] = ()
    """`allowedMemberSubjects` of iam.managed.allowedPolicyMembers, such as `user:ada@example.org`; the legacy
    constraint has no such list."""


class Faults(BaseModel):
    """The faults of one run."""

    model_config = _CLOSED

    seed: int = 0
    smoke: SmokeFault | None = None
    faults: tuple[CloudFault, ...] = ()
    interruptions: tuple[Interruption, ...] = ()
    capacity: tuple[ScarceMachines, ...] = ()
    quotas: Mapping[str, float] = Field(default_factory=dict)
    """Quota key of the catalog, or name of a quota of SageMaker such as `ml.g6.xlarge for training job usage`
    -> limit of the account instead of the default."""
    apis: tuple[str, ...] | None = None
    """APIs that are enabled in a Google Cloud project at the start, such as `storage.googleapis.com`; None:
    all."""
    unusable_apis: tuple[str, ...] = ()
    """APIs that are enabled, and still refuse requests: the change takes minutes to propagate."""
    billing_currency: str = "USD"
    """Currency of the billing account of a Google Cloud project."""
    org_policies: tuple[OrgPolicy, ...] = ()
    """Constraints that an organization of Google Cloud enforces."""
    organization: Organization = Organization()
    """The organization that enforces them."""

    def machines_left(self, instance_type: str, zone: str, market: str) -> float:
        """Machines of a type that a zone has left for a market; infinite without a row about them."""
        rows = (row for row in self.capacity if row.instance_type == instance_type)
        fitting = (row for row in rows if row.zone in ("*", zone) and row.market in ("*", market))
        return min((row.instances for row in fitting), default=float("inf"))


def read(path: Path) -> Faults:
    """Read `faults.json`, which `Rehearsal.set_faults` writes; without the file there are no faults."""
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        return Faults()
    return Faults.model_validate({key: value for key, value in content.items() if key != "run"})


def parse(texts: Sequence[str], scenario: Path | None = None) -> Faults:
    """Read faults such as `smoke:slow-rank=1` and a scenario. Raises UserError with every bad one."""
    problems: list[Problem] = []
    base = _scenario(scenario, problems) if scenario else Faults()
    smoke, found, interruptions = base.smoke, list(base.faults), list(base.interruptions)
    for text in texts:
        rank = re.fullmatch(r"smoke:slow-rank=(\d+)", text)
        if rank:
            smoke = SmokeFault(slow_rank=int(rank.group(1)))
            continue
        interrupted = _INTERRUPTED.fullmatch(text)
        try:
            if interrupted:
                interruptions.append(Interruption.model_validate(interrupted.groupdict()))
            else:
                found.append(_cloud_fault(text))
        except ValueError as error:
            meant = "".join(f"Did you mean `{form}`? " for form in _near(text)[:1])
            fix = f"{meant}See docs/reference/faults.md."
            problems.append(Problem("--fault", text, _why(error), fix, code="unknown-fault"))
    if problems:
        raise UserError(problems)
    given = {"smoke": smoke, "faults": tuple(found), "interruptions": tuple(interruptions)}
    return base.model_copy(update=given)


def _near(text: str) -> list[str]:
    kind = re.split("[=@]", text.rpartition(":")[2])[0]
    near = [_OF_KIND[one] for one in difflib.get_close_matches(kind, _OF_KIND, n=1)]
    return near + [form for form in FORMS if form.partition(":")[0] == text.partition(":")[0]]


def _cloud_fault(text: str) -> CloudFault:
    match = _TEXT.fullmatch(text)
    if match is None or match["kind"] not in get_args(Kind):
        raise ValueError("unknown fault")
    which, value, kind = match["which"], match["value"], match["kind"]
    fields: dict[str, Any] = {"on": match["on"], "kind": kind}
    if match["operation"]:
        fields["operation"] = match["operation"]
    if which is not None:
        fields["nth" if which.isdigit() else "name"] = which
    if value is not None:
        if kind in ("capacity", "quota", "expired"):
            raise ValueError(f"{kind} takes no value")
        victim, lasting = kind.startswith("crash"), kind in _SECONDS
        fields["victim" if victim else "seconds" if lasting else "times"] = value
    return CloudFault.model_validate(fields)


def _scenario(path: Path, problems: list[Problem]) -> Faults:
    try:
        content = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        rule, fix = f"cannot be read: {error}", "Name a YAML file."
        problems.append(Problem("--faults", str(path), rule, fix, code="fault-file-unreadable"))
        return Faults()
    except YAMLError as error:
        rule, fix = f"is not YAML: {error}", "Correct the file."
        problems.append(Problem("--faults", str(path), rule, fix, code="fault-file-not-yaml"))
        return Faults()
    try:
        return Faults.model_validate(content if content is not None else {})
    except ValidationError as error:
        for one in error.errors():
            place = ".".join(str(part) for part in one["loc"]) or "the file"
            fix = f"A scenario has the keys {', '.join(Faults.model_fields)}."
            value, rule = one.get("input"), one["msg"]
            problems.append(Problem(f"{path.name}: {place}", value, rule, fix, code="fault-scenario-invalid"))
        return Faults()


def _why(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}".lstrip(": ") for one in error.errors())
