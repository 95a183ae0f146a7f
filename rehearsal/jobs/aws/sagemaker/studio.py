"""SageMaker Studio for boto3: spaces and apps, which users create outside of programs, and their domain.

Their creator must be allowed to tag them, also with the tags that the domain propagates (developer guide,
"Give your users access to private spaces"). Spaces and apps are records of the emulated AWS that belong to no
program and block the deletion of their domain and its profiles. With tag propagation they have the tags of
these. Apps are InService at once. Source: botocore 1.44.5 sagemaker/2017-07-24 (members, forms of ARNs,
AppStatus, SpaceStatus); SageMaker developer guide, "Domain resource isolation" and "Tag propagation"; service
authorization reference (OwnerUserProfileArn, SpaceSharingType); aws/amazon-sagemaker-feedback issue 113 (text
of ResourceInUse, there for a profile) and 157 (the quota of apps on a machine type).
"""

from collections.abc import Callable, Mapping
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws import shapes
from rehearsal.dataplane.aws.authorization import authorise, context_of, request_tags, tagging
from rehearsal.dataplane.aws.http import Operation, Request, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.dataplane.aws.identity import OPERATOR
from rehearsal.jobs.aws.sagemaker import quotas
from rehearsal.jobs.aws.sagemaker.paging import page

_DOMAIN, _PROFILE = "aws:sagemaker/domain:Domain", "aws:sagemaker/userProfile:UserProfile"
_SPACE, _APP = "aws:sagemaker/space:Space", "aws:sagemaker/app:App"
_NAMES = {
    "DomainId": "domainId",
    "UserProfileName": "userProfileName",
    "SpaceName": "spaceName",
    "AppType": "appType",
    "AppName": "appName",
}


class Studio:
    """Creates, lists and deletes spaces and apps."""

    def __init__(self, state: State, limits: Callable[[], Mapping[str, float]]) -> None:
        self._state, self._limits = state, limits

    def operations(self) -> Mapping[str, Operation]:
        """See `http.JsonService`."""
        return {
            "CreateSpace": self._create_space,
            "DescribeSpace": lambda request, body: self._described(request, body, _SPACE),
            "ListSpaces": lambda request, body: self._list(request, body, _SPACE, "Spaces"),
            "DeleteSpace": lambda request, body: self._delete(request, body, _SPACE),
            "CreateApp": self._create_app,
            "DescribeApp": lambda request, body: self._described(request, body, _APP),
            "ListApps": lambda request, body: self._list(request, body, _APP, "Apps"),
            "DeleteApp": lambda request, body: self._delete(request, body, _APP),
            "DescribeDomain": self._describe_domain,
            "CreatePresignedDomainUrl": self._presigned,
        }

    def _create_space(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        owner = (body.get("OwnershipSettings") or {}).get("OwnerUserProfileName")
        sharing = (body.get("SpaceSharingSettings") or {}).get("SharingType")
        more = {"ownerUserProfileName": str(owner or ""), "sharingType": str(sharing or "")}
        return {"SpaceArn": self._made(request, body, _SPACE, more)}

    def _create_app(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        space = self._one(request, _SPACE, body).outputs if body.get("SpaceName") else {}
        owner = str(space.get("ownerUserProfileName") or body.get("UserProfileName") or "")
        machine = str((body.get("ResourceSpec") or {}).get("InstanceType") or "system")
        more = {"sharingType": str(space.get("sharingType") or ""), "instanceType": machine}
        return {"AppArn": self._made(request, body, _APP, {**more, "ownerUserProfileName": owner})}

    def _made(self, request: Request, body: dict[str, Any], token: str, more: Mapping[str, str]) -> str:
        """Create a record with these names and `more`; returns its ARN."""
        domain, owner = self._domain(request, body), more["ownerUserProfileName"]
        profile = next((one for one in self._all(request, _PROFILE) if _is(one, domain.id, owner)), None)
        if owner and profile is None:
            raise ServiceError("ResourceNotFound", f"UserProfile [{owner}] does not exist.")
        space = self._one(request, _SPACE, body) if token == _APP and body.get("SpaceName") else None
        names = {column: str(body[member]) for member, column in _NAMES.items() if body.get(member)}
        parts = [names["domainId"], names.get("spaceName") or owner]
        parts += [names["appType"], names["appName"]] if token == _APP else []
        account, _, region = domain.scope.partition("/")
        kind = "app" if token == _APP else "space"
        arn = f"arn:aws:sagemaker:{region}:{account}:{kind}/{'/'.join(parts)}"
        given = {str(tag["Key"]): str(tag["Value"]) for tag in body.get("Tags") or ()}
        tags = {**_spread(domain, profile), **given}
        outputs = {**names, **more, "arn": arn, "tagsAll": tags}
        self._authorise(request, arn, {**_context(domain, outputs, owner), **request_tags(given)})
        authorise(self._state, request.caller, tagging(request.region, arn, tags, request.action))
        if self._state.issued(arn):
            raise ServiceError("ResourceInUse", f"{kind} {arn} already exists.")
        self._check_quotas(request, token, outputs)
        used = {"domainId": domain, "owner": profile, "spaceName": space}
        with self._state.transaction():
            record = self._state.insert(
                package="aws", type=token, scope=domain.scope, id=arn, urn="", name=parts[-1],
                inputs={}, outputs=outputs,
            )  # fmt: skip
            self._state.issue(record, {arn})
            self._state.refer(record, {path: one for path, one in used.items() if one is not None})
        return arn

    def _check_quotas(self, request: Request, token: str, outputs: Mapping[str, Any]) -> None:
        """Raise ServiceError where a space or app exceeds a quota of the account."""
        limits, others = self._limits(), self._all(request, token)
        if token == _SPACE:
            allowed = "Maximum number of Studio spaces allowed per account"
            quotas.check_count(limits, allowed, len(others), 1, "Spaces")
            return
        kind, machine = outputs["appType"], outputs["instanceType"]
        same = [one.outputs for one in others if one.outputs["appType"] == kind]
        used = sum(one["instanceType"] == machine for one in same)
        allowed = f"Studio {kind} Apps running on {machine} instances"
        quotas.check_count(limits, allowed, used, 1, "Apps")
        running = "Maximum number of running Studio apps allowed per account"
        quotas.check_count(limits, running, len(others), 1, "Apps")

    def _described(self, request: Request, body: dict[str, Any], token: str) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        record = self._one(request, token, body)
        self._authorise(request, record.id, self._known(request, record))
        more = {"AppArn" if token == _APP else "SpaceArn": record.outputs.get("arn")}
        if token == _SPACE:
            more["OwnershipSettings"] = {"OwnerUserProfileName": record.outputs.get("ownerUserProfileName")}
        return {**_row(record), **more}

    def _list(self, request: Request, body: dict[str, Any], token: str, member: str) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        self._authorise(request, "*", {})
        rows = [_row(record) for record in self._all(request, token)]
        for column in ("DomainId", "UserProfileName", "SpaceName"):
            rows = [row for row in rows if body.get(f"{column}Equals") in (None, row.get(column))]
        if needle := body.get("SpaceNameContains"):
            rows = [row for row in rows if needle in str(row.get("SpaceName"))]
        request_body = {"SortOrder": "Ascending", **body}
        found = page(rows, request_body, {"CreationTime": "CreationTime"})
        return {member: found.pop("rows"), **found}

    def _delete(self, request: Request, body: dict[str, Any], token: str) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        record = self._one(request, token, body)
        self._authorise(request, str(record.outputs.get("arn")), self._known(request, record))
        if self._state.users(record):
            message = f"Unable to delete Space [{record.name}] because App(s) are associated with it."
            raise ServiceError("ResourceInUse", message)
        self._state.remove(record)
        return {}

    def _describe_domain(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        domain = self._domain(request, body)
        arn = str(domain.outputs.get("arn"))
        self._authorise(request, arn, {})
        return {"DomainArn": arn, "DomainId": domain.id, "Status": "InService"}

    def _presigned(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        """The address of a domain for a profile; it has no server behind it."""
        shapes.check("sagemaker", request.action, body)
        domain, name = self._domain(request, body), str(body["UserProfileName"])
        account, _, region = domain.scope.partition("/")
        arn = f"arn:aws:sagemaker:{region}:{account}:user-profile/{domain.id}/{name}"
        self._authorise(request, arn, {})
        if not any(_is(one, domain.id, name) for one in self._all(request, _PROFILE)):
            raise ServiceError("ResourceNotFound", f"UserProfile [{name}] does not exist.")
        return {"AuthorizedUrl": f"https://{domain.id}.studio.{region}.sagemaker.aws/auth?token={name}"}

    def _domain(self, request: Request, body: Mapping[str, Any]) -> Record:
        wanted = str(body["DomainId"])
        for record in self._all(request, _DOMAIN):
            if record.id == wanted:
                return record
        raise ServiceError("ResourceNotFound", f"Domain [{wanted}] does not exist.")

    def _one(self, request: Request, token: str, body: Mapping[str, Any]) -> Record:
        members = _NAMES if token == _APP else ("DomainId", "SpaceName")
        wanted = {member: body[member] for member in members if body.get(member) is not None}
        if token == _SPACE or request.action == "CreateApp":
            wanted = {member: wanted[member] for member in ("DomainId", "SpaceName")}
        for record in self._all(request, token):
            if wanted.items() <= _row(record).items():
                return record
        raise ServiceError("ResourceNotFound", f"{token.rpartition(':')[2]} {wanted} does not exist.")

    def _known(self, request: Request, record: Record) -> dict[str, str]:
        """Condition keys of an existing record; a program's record has no owner here."""
        outputs = record.outputs
        domain = next((one for one in self._all(request, _DOMAIN) if one.id == outputs.get("domainId")), None)
        tags = outputs.get("tagsAll") or {}
        owner = str(outputs.get("ownerUserProfileName") or "")
        found = _context(domain, outputs, owner) if domain else {}
        return {**found, **{f"aws:ResourceTag/{key}": str(value) for key, value in tags.items()}}

    def _all(self, request: Request, token: str) -> list[Record]:
        return [record for record in self._state.find(type=token) if sees(request, record)]

    def _authorise(
        self, request: Request, resource: str, context: Mapping[str, str | tuple[str, ...]]
    ) -> None:
        known = {**context_of(request.region), **context}
        authorise(self._state, request.caller, [AccessCheck(f"sagemaker:{request.action}", resource, known)])


def sees(request: Request, record: Record) -> bool:
    """Return whether a record is in the account and region of a caller."""
    account, _, region = record.scope.partition("/")
    return sees_account(request, account) and region in (request.region, "global")


def sees_account(request: Request, account: str) -> bool:
    """Return whether the caller may see an account; the operator of a rehearsal sees all."""
    return request.caller == OPERATOR or request.caller.account == account


def _is(profile: Record, domain: str, name: str) -> bool:
    return (profile.outputs.get("domainId"), profile.outputs.get("userProfileName")) == (domain, name)


def _spread(domain: Record, profile: Record | None) -> dict[str, str]:
    """Tags that the domain propagates to its spaces and apps."""
    if domain.outputs.get("tagPropagation") != "ENABLED":
        return {}
    above = [one.outputs.get("tagsAll") or {} for one in (domain, profile) if one is not None]
    return {str(key): str(value) for tags in above for key, value in tags.items()}


def _context(domain: Record, outputs: Mapping[str, Any], owner: str) -> dict[str, str]:
    account, _, region = domain.scope.partition("/")
    profile = f"arn:aws:sagemaker:{region}:{account}:user-profile/{domain.id}/{owner}"
    found = {
        "sagemaker:OwnerUserProfileArn": profile if owner else "",
        "sagemaker:SpaceSharingType": str(outputs.get("sharingType") or ""),
        "sagemaker:InstanceTypes": str(outputs.get("instanceType") or ""),
    }
    return {key: value for key, value in found.items() if value}


def _row(record: Record) -> dict[str, Any]:
    found = {member: record.outputs.get(column) for member, column in _NAMES.items()}
    # A record has no time of creation; its key grows with it.
    found |= {"Status": "InService", "CreationTime": record.key, "LastModifiedTime": record.key}
    if record.type == _APP:
        del found["LastModifiedTime"]
    return {name: value for name, value in found.items() if value is not None}
