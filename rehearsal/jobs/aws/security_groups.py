"""EC2 for boto3: the security groups of a VPC, for programs that clean up behind other services.

Only rules between two groups that a service created are returned. Source: botocore 1.44.5 ec2/2016-11-15 (the
query protocol of EC2, DescribeSecurityGroups, RevokeSecurityGroupIngress and -Egress, DeleteSecurityGroup,
errors); service authorization reference, Amazon EC2 (ec2:Vpc).
"""

import fnmatch
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from rehearsal.core.emulation.site import OWNER
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws.authorization import authorise, context_of
from rehearsal.dataplane.aws.http import XML, Request, Response, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.jobs.aws.sagemaker.studio import sees

_GROUP = "aws:ec2/securityGroup:SecurityGroup"
_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
_NFS = 2049
_WAYS = {"RevokeSecurityGroupIngress": "ingress", "RevokeSecurityGroupEgress": "egress"}


class SecurityGroups:
    """See `http.Service`."""

    def __init__(self, state: State) -> None:
        self._state = state

    def answer(self, request: Request) -> Response:
        """See `http.Service`."""
        form = {name: values[0] for name, values in parse_qs(request.body.read().decode()).items()}
        action = form.get("Action", "")
        if action == "DescribeSecurityGroups":
            self._authorise(request, action, "*", {})
            inside = "".join(f"<item>{_item(one)}</item>" for one in self._matching(request, form))
            return _answer(action, f"<securityGroupInfo>{inside}</securityGroupInfo>")
        if action not in (*_WAYS, "DeleteSecurityGroup"):
            raise ServiceError("InvalidAction", f"The action {action} is not emulated.")
        group = self._one(request, action, form.get("GroupId", ""))
        if action == "DeleteSecurityGroup":
            if self._state.users(group):
                raise ServiceError("DependencyViolation", f"resource {group.id} has a dependent object")
            self._state.remove(group)
            return _answer(action, "<return>true</return>")
        self._revoke(group, _WAYS[action], form)
        return _answer(action, "<return>true</return>")

    def refusal(self, error: ServiceError) -> Response:
        """See `http.Service`."""
        said = f"<Code>{error.code}</Code><Message>{escape(error.message)}</Message>"
        text = f"<Response><Errors><Error>{said}</Error></Errors><RequestID>0</RequestID></Response>"
        return Response(error.status, text.encode(), XML)

    def _revoke(self, group: Record, way: str, form: Mapping[str, str]) -> None:
        other, pair = group.outputs.get(way), re.compile(r"IpPermissions\.\d+\.Groups\.\d+\.GroupId")
        named = [value for key, value in form.items() if pair.fullmatch(key)]
        if not isinstance(other, str) or named != [other]:
            message = "The specified rule does not exist in this security group."
            raise ServiceError("InvalidPermission.NotFound", message)
        outputs = {key: value for key, value in group.outputs.items() if key != way}
        domain = str(outputs.get("name")).rpartition("-nfs-")[2]
        paths = {path: outputs.get(path) for path in ("vpcId", *_WAYS.values())} | {OWNER: domain}
        near = {path: self._state.issued(value) for path, value in paths.items() if isinstance(value, str)}
        with self._state.transaction():
            self._state.replace(group, inputs=group.inputs, outputs=outputs)
            self._state.refer(group, {path: found[0] for path, found in near.items() if found})

    def _matching(self, request: Request, form: Mapping[str, str]) -> list[Record]:
        found = [one for one in self._state.find(type=_GROUP) if sees(request, one)]
        number = 1
        while name := form.get(f"Filter.{number}.Name"):
            prefix = f"Filter.{number}.Value."
            values = [value for key, value in form.items() if key.startswith(prefix)]
            column = {"vpc-id": "vpcId", "group-name": "name"}.get(name)
            if column is None:
                raise ServiceError("InvalidParameterValue", f"The filter '{name}' is not emulated.")
            found = [
                one
                for one in found
                if any(fnmatch.fnmatchcase(str(one.outputs.get(column)), value) for value in values)
            ]
            number += 1
        return found

    def _one(self, request: Request, action: str, id: str) -> Record:
        """A group that the caller may change. Raises ServiceError."""
        group = next(
            (one for one in self._state.issued(id) if one.type == _GROUP and sees(request, one)), None
        )
        if group is None:
            raise ServiceError("InvalidGroup.NotFound", f"The security group '{id}' does not exist")
        account, _, region = group.scope.partition("/")
        place = f"arn:aws:ec2:{region}:{account}"
        context = {"ec2:Vpc": f"{place}:vpc/{group.outputs.get('vpcId')}"}
        self._authorise(request, action, f"{place}:security-group/{group.id}", context)
        return group

    def _authorise(self, request: Request, action: str, resource: str, more: Mapping[str, str]) -> None:
        check = AccessCheck(f"ec2:{action}", resource, {**context_of(request.region), **more})
        authorise(self._state, request.caller, [check], "UnauthorizedOperation")


def _answer(action: str, inside: str) -> Response:
    text = f'<{action}Response xmlns="{_NAMESPACE}"><requestId>0</requestId>{inside}</{action}Response>'
    return Response(200, text.encode(), XML)


def _item(group: Record) -> str:
    outputs = group.outputs
    fields = {
        "ownerId": group.scope.partition("/")[0],
        "groupId": group.id,
        "groupName": outputs.get("name") or group.id,
        "groupDescription": outputs.get("description") or "",
        "vpcId": outputs.get("vpcId") or "",
    }
    plain = "".join(f"<{name}>{escape(str(value))}</{name}>" for name, value in fields.items())
    ways = {"ipPermissions": outputs.get("ingress"), "ipPermissionsEgress": outputs.get("egress")}
    rules = "".join(f"<{name}>{_rule(group, other)}</{name}>" for name, other in ways.items())
    return plain + rules


def _rule(group: Record, other: Any) -> str:
    """The rule that allows a group's NFS in or out; empty without one."""
    if not isinstance(other, str):  # lists are rules of programs
        return ""
    pair = f"<userId>{group.scope.partition('/')[0]}</userId><groupId>{other}</groupId>"
    ports = f"<fromPort>{_NFS}</fromPort><toPort>{_NFS}</toPort>"
    return f"<item><ipProtocol>tcp</ipProtocol>{ports}<groups><item>{pair}</item></groups></item>"
