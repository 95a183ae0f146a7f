"""Authorization of callers for actions on resources and their KMS keys, with the errors of the services."""

from collections.abc import Iterable, Mapping

from rehearsal.core.state import State
from rehearsal.dataplane.aws.http import ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck, allowed, role_record
from rehearsal.dataplane.aws.identity import OPERATOR, Caller


def context_of(region: str) -> dict[str, str]:
    """Condition keys that every request has."""
    return {"aws:RequestedRegion": region, "aws:SecureTransport": "true"}


def refused(state: State, caller: Caller, checks: Iterable[AccessCheck]) -> AccessCheck | None:
    """The first check that fails for the caller; the operator of the rehearsal passes all."""
    if caller == OPERATOR:
        return None
    role = role_record(state, caller.role_arn)
    return next((check for check in checks if role is None or not allowed(state, role, check)), None)


def authorise(
    state: State, caller: Caller, checks: Iterable[AccessCheck], code: str = "AccessDeniedException"
) -> None:
    """Raise ServiceError for the first check that fails."""
    denied = refused(state, caller, checks)
    if denied is not None:
        raise ServiceError(code, _denial(caller, denied), 403 if code == "AccessDenied" else 400)


def _denial(caller: Caller, denied: AccessCheck) -> str:
    return (
        f"User: {caller.arn} is not authorized to perform: {denied.action} on resource: {denied.resource} "
        f"because no identity-based policy allows the {denied.action} action"
    )


def tagging(region: str, arn: str, tags: Mapping[str, str], action: str = "") -> list[AccessCheck]:
    """The check of `sagemaker:AddTags` for tags, if there are any; `action` is the operation that creates.

    Source: SageMaker developer guide, "Provide permissions for tagging SageMaker AI resources"; service
    authorization reference, AddTags (sagemaker:TaggingAction).
    """
    if not tags:
        return []
    known: dict[str, str | tuple[str, ...]] = {**context_of(region), **request_tags(tags)}
    if action:
        known["sagemaker:TaggingAction"] = action
    return [AccessCheck("sagemaker:AddTags", arn, known)]


def request_tags(tags: Mapping[str, str]) -> dict[str, str | tuple[str, ...]]:
    """Condition keys of the tags of a request."""
    named = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    return {**named, "aws:TagKeys": tuple(tags)} if tags else {}


def key_arn(state: State, key: str) -> str:
    """The ARN of a KMS key that is known under an id, ARN or alias; `key` itself when there is none."""
    for record in state.issued(key):
        if record.outputs.get("targetKeyArn"):  # an alias
            return str(record.outputs["targetKeyArn"])
        if record.outputs.get("arn"):
            return str(record.outputs["arn"])
    return key


def key_checks(
    state: State, key: str, region: str, service: str, actions: Iterable[str]
) -> list[AccessCheck]:
    """Checks for the use of a customer managed key through a service."""
    through = {**context_of(region), "kms:ViaService": f"{service}.{region}.amazonaws.com"}
    return [AccessCheck(action, key_arn(state, key), through) for action in actions]
