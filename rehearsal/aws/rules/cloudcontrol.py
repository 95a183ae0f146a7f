"""Cloud Control: what AWS PCS refuses in a desired state."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import botocore.session
from botocore.model import ListShape, MapShape, Shape, StructureShape

from infra.catalog.aws.pcs import ROLE_PREFIX, Level, pcs
from rehearsal.aws.desired_states import CLUSTER, GROUP, QUEUE, RESOURCE, state_of
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.core.model import Properties, Record
from rehearsal.core.rules.model import Violation

_TYPE: Final = f"aws:{RESOURCE}"
_PATH: Final = "desiredState"
_OPERATIONS: Final = {CLUSTER: "CreateCluster", GROUP: "CreateComputeNodeGroup", QUEUE: "CreateQueue"}
_LEVELS: Final[Mapping[str, Level]] = {CLUSTER: "cluster", GROUP: "group", QUEUE: "queue"}
# Names of CloudFormation that differ from those of the API.
_RENAMED: Final = {
    CLUSTER: {"Name": "clusterName"},
    GROUP: {"Name": "computeNodeGroupName", "ClusterId": "clusterIdentifier", "TemplateId": "id"},
    QUEUE: {"Name": "queueName", "ClusterId": "clusterIdentifier"},
}
_READ_ONLY: Final = ("Arn", "Id", "Status", "Endpoints", "ErrorInfo")
# CloudFormation makes a name where there is none.
_OPTIONAL: Final = frozenset({"clusterName", "computeNodeGroupName", "queueName"})
_SOURCE: Final = "botocore 1.44.5 pcs/2023-02-10; AWS CloudFormation Template Reference, AWS::PCS::*"


@BOOK.rule("AWS-PCS-001", _TYPE, source=_SOURCE)
def state_matches_the_schema(inputs: Properties) -> Iterator[Violation]:
    """A desired state has the properties of its type, with valid values, and no read-only ones."""
    kind, state = str(inputs.get("typeName")), state_of(inputs)
    if kind not in _OPERATIONS or state is None:
        return
    for name in _READ_ONLY:
        if name in state:
            yield _invalid(f"#: extraneous key [{name}] is not permitted", f"Remove {name}: it is read-only.")
    plain = {key: value for key, value in state.items() if key not in (*_READ_ONLY, "Tags")}
    yield from _structure(_input(kind), plain, kind, "#")


@BOOK.rule(
    "AWS-PCS-002",
    _TYPE,
    source="AWS PCS User Guide, slurm-custom-settings-cluster, -cng, -queue",
)
def settings_can_be_set(inputs: Properties) -> Iterator[Violation]:
    """Settings of Slurm are those that the service lets a user change at this level."""
    kind, state = str(inputs.get("typeName")), state_of(inputs)
    if kind not in _LEVELS or state is None:
        return
    allowed = pcs.settings[_LEVELS[kind]].names
    for one in (state.get("SlurmConfiguration") or {}).get("SlurmCustomSettings") or ():
        name = one.get("ParameterName")
        if name not in allowed:
            text = f"{name} is not a supported Slurm setting of {kind}"
            yield _invalid(text, f"Supported are {', '.join(allowed)}.")


@BOOK.rule(
    "AWS-PCS-003", _TYPE, source="AWS PCS API Reference, API_Cluster (size), API_SchedulerRequest (version)"
)
def version_is_offered(inputs: Properties) -> Iterator[Violation]:
    """The version of Slurm is one that the service knows; accounting needs 24.11 or newer."""
    state = state_of(inputs)
    if inputs.get("typeName") != CLUSTER or state is None:
        return
    version = (state.get("Scheduler") or {}).get("Version")
    if version is not None and version not in pcs.versions:
        yield _invalid(f"{version} is not a supported version", f"Use one of {', '.join(pcs.versions)}.")


@BOOK.rule_around(
    "AWS-PCS-004", _TYPE, source="AWS PCS API Reference, API_Cluster (size: compute nodes and jobs)"
)
def groups_fit_the_controller(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """All groups of a cluster together have at most the nodes of its size."""
    state = state_of(inputs)
    if inputs.get("typeName") != GROUP or state is None:
        return
    cluster = _cluster(site, state)
    size = pcs.sizes.get(str(((cluster and state_of(cluster.inputs)) or {}).get("Size")))
    if size is None:
        return
    others = (
        state_of(one.inputs) or {} for one in site.others(RESOURCE) if one.inputs.get("typeName") == GROUP
    )
    mine = [one for one in others if one.get("ClusterId") == state.get("ClusterId")]
    nodes = sum(_most(one) for one in (*mine, state))
    if nodes > size.nodes:
        text = f"the groups have {nodes} compute nodes, a {size.name} cluster at most {size.nodes}"
        yield _invalid(text, "Use a larger size, which replaces the cluster, or fewer nodes.")


@BOOK.rule_around(
    "AWS-PCS-005",
    _TYPE,
    source="AWS CloudFormation Template Reference, AWS::PCS::ComputeNodeGroup (ClusterId, "
    "CustomLaunchTemplate, IamInstanceProfileArn); AWS PCS User Guide, security-instance-profiles_create",
)
def parts_exist(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Cluster, groups and launch template exist, and the role of the profile has a name or path for PCS."""
    kind, state = inputs.get("typeName"), state_of(inputs)
    if kind not in (GROUP, QUEUE) or state is None:
        return
    if _cluster(site, state) is None:
        yield _invalid(f"cluster {state.get('ClusterId')} does not exist", "Name the Id of a cluster.")
    for one in state.get("ComputeNodeGroupConfigurations") or ():
        group = one.get("ComputeNodeGroupId")
        if _resource(site, group, GROUP) is None:
            yield _invalid(f"compute node group {group} does not exist", "Name the Id of a group.")
    if kind == GROUP:
        yield from _launch(site, state)


@BOOK.rule_around(
    "AWS-PCS-006",
    _TYPE,
    source="AWS PCS User Guide, slurm-custom-settings-queue (AllowQos, DenyQos, QOS)",
    advice=True,
)
def accounts_before_qos(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """QOS of a queue exist in the accounting data base, which an association loads here."""
    state = state_of(inputs)
    if inputs.get("typeName") != QUEUE or state is None:
        return
    named = (state.get("SlurmConfiguration") or {}).get("SlurmCustomSettings") or ()
    qos = [one for one in named if one.get("ParameterName") in ("AllowQos", "DenyQos", "QOS")]
    strange = [one for one in qos if one.get("ParameterValue") != "normal"]
    if strange and not any(site.all("ssm/association:Association")):
        text = "QOS that the accounting data base does not have; Slurm might fail to apply the settings"
        yield _invalid(text, "Load accounts and QOS from a login node first.")


def _launch(site: AwsContext, state: Mapping[str, Any]) -> Iterator[Violation]:
    template = (state.get("CustomLaunchTemplate") or {}).get("TemplateId")
    if template and site.find(template, "ec2/launchTemplate:LaunchTemplate") is None:
        yield _invalid(f"launch template {template} does not exist", "Name the id of a launch template.")
    profile = site.find(state.get("IamInstanceProfileArn"), "iam/instanceProfile:InstanceProfile")
    if profile is None:
        yield _invalid("the instance profile does not exist", "Name the ARN of an instance profile.")
        return
    role = site.find(profile.outputs.get("role"), "iam/role:Role")
    if role is None:
        return
    name, path = str(role.outputs.get("name")), str(role.inputs.get("path") or "/")
    if not name.startswith(ROLE_PREFIX) and "/aws-pcs/" not in path:
        text = f"role {name} must have a name that starts with {ROLE_PREFIX} or the path /aws-pcs/"
        yield _invalid(text, "Give the role the path /aws-pcs/.")


def _cluster(site: AwsContext, state: Mapping[str, Any]) -> Record | None:
    return _resource(site, state.get("ClusterId"), CLUSTER)


def _resource(site: AwsContext, known: object, kind: str) -> Record | None:
    found = site.find(known, RESOURCE)
    return found if found is not None and found.inputs.get("typeName") == kind else None


def _most(group: Mapping[str, Any]) -> int:
    return int((group.get("ScalingConfiguration") or {}).get("MaxInstanceCount") or 0)


def _structure(shape: Shape, value: Any, kind: str, path: str) -> Iterator[Violation]:
    if isinstance(shape, StructureShape):
        if not isinstance(value, dict):
            yield _invalid(f"{path}: expected type: JSONObject", "Write an object.")
            return
        names = {_api_name(kind, key): key for key in value}
        for name in shape.required_members:
            if name not in names and name not in _OPTIONAL:
                yield _invalid(f"{path}: required key [{_cfn_name(kind, name)}] not found", "Add it.")
        for name, key in names.items():
            if name not in shape.members:
                yield _invalid(f"{path}: extraneous key [{key}] is not permitted", "Remove it.")
            else:
                yield from _structure(shape.members[name], value[key], kind, f"{path}/{key}")
    elif isinstance(shape, ListShape):
        for index, one in enumerate(value if isinstance(value, list) else ()):
            yield from _structure(shape.member, one, kind, f"{path}/{index}")
    elif not isinstance(shape, MapShape):
        yield from _scalar(shape, value, path)


def _scalar(shape: Shape, value: Any, path: str) -> Iterator[Violation]:
    enum, pattern = getattr(shape, "enum", None), shape.metadata.get("pattern")
    if enum and value not in enum:
        yield _invalid(f"{path}: {value} is not a valid enum value", f"Use one of {', '.join(enum)}.")
    if pattern and isinstance(value, str) and not re.fullmatch(pattern, value):
        yield _invalid(f"{path}: string [{value}] does not match pattern {pattern}", "Change it.")
    size = value if isinstance(value, int) else len(value) if isinstance(value, str) else 0
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if (low is not None and size < low) or (high is not None and size > high):
        yield _invalid(f"{path}: {value} is outside of {low} to {high}", "Change it.")


def _invalid(message: str, fix: str) -> Violation:
    return Violation(_PATH, message, fix, "ValidationException")


def _api_name(kind: str, key: str) -> str:
    return _RENAMED[kind].get(key) or key[:1].lower() + key[1:]


def _cfn_name(kind: str, name: str) -> str:
    back = {api: cfn for cfn, api in _RENAMED[kind].items()}
    return back.get(name) or name[:1].upper() + name[1:]


@cache
def _input(kind: str) -> Shape:
    model = botocore.session.get_session().get_service_model("pcs")
    shape = model.operation_model(_OPERATIONS[kind]).input_shape
    assert shape is not None
    return shape
