"""The check of the deployer's permissions, by IAM's policy simulation."""

from collections.abc import Iterator, Mapping
from typing import Final

from infra.alarms import storage as storage_alarms
from infra.catalog.aws import facts
from infra.catalog.aws.model import Permission
from infra.naming import TAG_PREFIX
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account
from trainstack.preflight.aws.identity import principal

_CHECK = "permissions"
_AT_ONCE = 50
STACK_TAG: Final = f"aws:ResourceTag/{TAG_PREFIX}:stack"
"""Condition key: the tag of a resource's stack."""
# Source: kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/README.md; EKS user guide, "Managed node
# groups": EKS gives it to the groups that it makes.
GROUP_TAG: Final = "aws:ResourceTag/k8s.io/cluster-autoscaler/{}"
"""Condition key of Auto Scaling groups, which is "owned" for the cluster in it."""
_DEPENDS = "allowed under conditions, which a simulation does not evaluate"
_UNBOUNDED = "allowed for roles with a permissions boundary alone"
_HAND_OVER = "iam:PassRole"
_ANY = "*"
_LINKED = ":role/aws-service-role/"
_OF_CLUSTERS = ("aws:autoscaling/", "aws:eks/", "aws:rds/", "aws:secretsmanager/")
_OF_MACHINES = ("aws:ec2/launchTemplate:", "aws:ec2/placementGroup:")
_OF_SLURM = (
    "aws:cloudcontrol/", "aws:cloudwatch/dashboard:", "aws:cloudwatch/logDelivery",
    "aws:iam/instanceProfile:", "aws:s3/bucketObjectv2:", "aws:ssm/", "trainstack:SlurmGate",
)  # fmt: skip
_NOT_OF_SLURM = ("aws:efs/accessPoint:", "aws:sns/topicPolicy:")
_MLFLOW = "aws:sagemaker/mlflowApp:"
_OF_JOBS = ("aws:cloudwatch/event", "aws:iam/policy:", "aws:lambda/", "aws:sagemaker/")


def deploying(account: Account) -> Iterator[Answer]:
    """Every action of the catalog is allowed to the deployer, also by policies of its organization.

    Simulated with a resource as the stack creates them, or with all ("*"): actions that are allowed only on
    some resources are reported as denied.
    """
    caller = account.client("sts").get_caller_identity()["Arn"]
    me, arn = principal(caller), source(account, caller)
    if arn is None:
        fix = "Deploy as a role of the account, such as one of a permission set; or --skip permissions."
        yield Answer(_CHECK, State.UNKNOWN, f"IAM simulates policies of roles and users, not {caller}", fix)
        return
    denied: dict[str, dict[str, None]] = {}
    for resource, every, passed in requests(account.spec, guest=account.is_guest):
        for start in range(0, len(every), _AT_ONCE):
            asked = {
                "PolicySourceArn": arn,
                "ActionNames": every[start : start + _AT_ONCE],
                "ResourceArns": [resource],
                **_context(account, resource, passed),
            }
            for row in account.pages("iam", "simulate_principal_policy", "EvaluationResults", **asked):
                if row["EvalDecision"] != "allowed" and not _exists(account, resource):
                    on = "" if resource == _ANY else f" on {resource}"
                    # An action is simulated for each service to which it passes a role.
                    denied.setdefault(f"{_by(row)}{on}", {})[row["EvalActionName"]] = None
    for reason, refused in denied.items():
        state = State.UNKNOWN if reason.startswith(_DEPENDS) else State.SHORT
        fix = (
            "Allow them to the deployer; --skip permissions if they are allowed on the stack's own resources."
        )
        if reason.startswith(_UNBOUNDED):
            fix = "Set on.permissions_boundary to the boundary that the deployer's policy names."
        yield Answer(_CHECK, state, f"{reason}: {', '.join(refused)}", fix)
    if not denied:
        count = len(actions(account.spec, guest=account.is_guest))
        yield Answer(_CHECK, State.READY, f"{count} actions are allowed to {me}")


def source(account: Account, caller: str) -> str | None:
    """The ARN whose policies are simulated; None for a root user and for federated users.

    That of a session (`sts::...:assumed-role/`) is refused: "Invalid Entity Arn" (amazon-ecs-exec-checker
    PR 10). It lacks the path of the role, which permission sets have, so IAM is asked for it.
    """
    me = principal(caller)
    if me is None or me.kind == "user":
        return caller if me else None
    named = next((one for one in account.on.admin_arns if principal(one) == me), None)
    if named is not None:
        return named
    found = account.found("iam", "get_role", "NoSuchEntity", RoleName=me.name)
    return str(found["Role"]["Arn"]) if found else None


def requests(spec: StackSpec, *, guest: bool = False) -> Iterator[tuple[str, list[str], str]]:
    """Resources with their actions, and the service to which a role is passed; empty for other actions.

    `guest`: as `rows`.
    """
    for resource, names in simulated(spec, guest=guest).items():
        yield resource, [one for one in names if one != _HAND_OVER], ""
        if _HAND_OVER in names:
            yield from ((resource, [_HAND_OVER], service) for service in passed_to(spec))


def _context(account: Account, resource: str, passed: str) -> dict[str, object]:
    """The condition keys by which policies limit resources, and roles that are passed, created or linked."""
    values = {STACK_TAG: account.spec.name, GROUP_TAG.format(account.spec.name): "owned"}
    _, linked, name = resource.partition(_LINKED)
    boundary = account.on.permissions_boundary
    if passed:
        values["iam:PassedToService"] = passed
    elif linked:
        values["iam:AWSServiceName"] = name.partition("/")[0]
    elif boundary and ":role/" in resource:
        values["iam:PermissionsBoundary"] = boundary
    return {
        "ContextEntries": [
            {"ContextKeyName": key, "ContextKeyType": "string", "ContextKeyValues": [value]}
            for key, value in values.items()
        ]
    }


def _exists(account: Account, resource: str) -> bool:
    """Return whether a service-linked role exists, so that no one creates it."""
    if _LINKED not in resource:
        return False
    name = resource.rpartition("/")[2]
    return account.found("iam", "get_role", "NoSuchEntity", RoleName=name) is not None


def simulated(spec: StackSpec, *, guest: bool = False) -> Mapping[str, list[str]]:
    """The actions of a deployment by the ARN for their simulation; "*" for all resources.

    `guest`: as `rows`.
    """
    fields = fields_of(spec)
    return {arn.format(**fields): names for arn, names in by_resource(spec, guest=guest).items()}


def fields_of(spec: StackSpec) -> Mapping[str, str]:
    """Values of the fields in ARNs of the catalog."""
    return {"stack": spec.name, "region": spec.region, "account": _on(spec).account_id}


def by_resource(spec: StackSpec, *, guest: bool = False) -> Mapping[str, list[str]]:
    """The actions of a deployment by the ARN of the catalog, with its fields; "*" for all resources.

    `guest`: as `rows`.
    """
    wanted, types = actions(spec, guest=guest), rows(spec, guest=guest)
    found: dict[str, list[str]] = {}
    for row in facts.simulated_resources.values():
        names = [action for action in row.actions if action in wanted]
        if names and row.type in types:
            found[row.arn] = names
    limited = {action for names in found.values() for action in names}
    return {_ANY: [action for action in wanted if action not in limited], **found}


def actions(spec: StackSpec, *, guest: bool = False) -> list[str]:
    """The actions for the resource types of this stack; `guest`: as `rows`."""
    return sorted({action for row in rows(spec, guest=guest).values() for action in row.actions})


def passed_to(spec: StackSpec) -> list[str]:
    """Services to which a deployment passes roles."""
    return sorted({service for row in rows(spec).values() for service in row.passes_to})


def rows(spec: StackSpec, *, guest: bool = False) -> Mapping[str, Permission]:
    """The rows of this stack by type, without those of parts that its spec lacks.

    `guest`: its manager, in another account, makes in this one what accepts the connection of both networks.
    """
    balancer = _on(spec).load_balancer
    jobs, slurm = isinstance(spec.layout, SmallLayout), isinstance(spec.layout, SlurmLayout)
    # Of clusters, a manager alone has no pools.
    manages = isinstance(spec.layout, ClusterLayout) and not spec.layout.pools
    # In a cluster, the cluster itself schedules validations.
    repeats = jobs and spec.smoke.schedule is not None
    absent = {
        "aws:lb/": balancer is None,
        "aws:autoscaling/attachment:": balancer is None,
        "aws:ec2/vpcPeeringConnection:": not manages,
        "aws:ec2/vpcPeeringConnectionAccepter:": not (manages or guest),
        "aws:costexplorer/": spec.budget.anomaly_usd is None,
        "aws:fsx/": spec.data.shared_fs is None,
        "aws:efs/": not spec.data.homes,
        "aws:scheduler/": not repeats,
        "trainstack:JobGate": not (jobs and spec.smoke.enabled),
        "trainstack:SlurmGate": not spec.smoke.enabled,
        # Alarms on storage, on scheduled validations, or on a Slurm system.
        "aws:cloudwatch/metricAlarm:": not (slurm or (repeats if jobs else storage_alarms.on_aws(spec))),
    }
    for prefixes, none in (
        (_OF_CLUSTERS, jobs or slurm),
        (_OF_MACHINES, jobs),
        (_OF_JOBS, not jobs),
        (_OF_SLURM, not slurm),
        (_NOT_OF_SLURM, slurm),
    ):
        absent |= dict.fromkeys(prefixes, True) if none else {}
    left_out = tuple(prefix for prefix, none in absent.items() if none)
    return {
        token: row
        for token, row in facts.permissions.items()
        if not token.startswith(left_out) or (slurm and token.startswith(_MLFLOW))
    }


def _on(spec: StackSpec) -> AwsSpec:
    assert isinstance(spec.on, AwsSpec)
    return spec.on


def _by(row: dict[str, object]) -> str:
    missing = row.get("MissingContextValues")
    if row["EvalDecision"] == "implicitDeny" and isinstance(missing, list) and missing:
        return _UNBOUNDED if "iam:PermissionsBoundary" in missing else _DEPENDS
    organization = row.get("OrganizationsDecisionDetail")
    if isinstance(organization, dict) and not organization.get("AllowedByOrganizations", True):
        return "a policy of the organization does not allow"
    return "a policy denies" if row["EvalDecision"] == "explicitDeny" else "no policy allows"
