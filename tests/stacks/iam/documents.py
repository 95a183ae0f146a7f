"""Every policy document of a composed stack, with ARNs as the emulated AWS gives them."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pulumi.runtime import MockResourceArgs

from infra import stackspec
from rehearsal.aws.rules.documents import IDENTITY, RESOURCE
from rehearsal.aws.table import TABLE
from stacks import compose
from tests.components.aws.computed import COMPUTED
from tests.components.recorder import ACCOUNT, REGION, Recorder, deploy

_ROLE = "aws:iam/role:Role"
_CLUSTER = "aws:rds/cluster:Cluster"
_SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:rds!cluster-0-AbCdEf"
_DATABASE = {"masterUserSecrets": [{"secretArn": _SECRET}]}
RESOURCE_POLICIES = RESOURCE
"""Property of the policy, by type of resource."""


@dataclass(frozen=True)
class Document:
    """A policy document, and the resource that has it."""

    type: str
    name: str
    text: str
    role: str = ""
    """Logical name of the role, for its policies."""

    @property
    def managed(self) -> bool:
        """Return whether the policy is no inline one."""
        return self.type == "aws:iam/policy:Policy"

    @property
    def size(self) -> int:
        """Characters without white space, as IAM counts them (IAM user guide, "IAM and AWS STS quotas")."""
        return len(re.sub(r"\s", "", self.text))


def documents(spec: stackspec.StackSpec) -> list[Document]:
    """The policy documents of a stack."""
    made, _ = deploy(lambda: _composed(spec), _Arns(COMPUTED))
    return list(_found(made))


def _composed(spec: stackspec.StackSpec) -> Mapping[str, Any]:
    compose(spec)
    return {}


_IDS = {
    "aws:ec2/subnet:Subnet": "subnet-{0:.17}",
    "aws:ec2/securityGroup:SecurityGroup": "sg-{0:.17}",
    "aws:sagemaker/domain:Domain": "d-{0:.12}",
}


def real_id(type: str, name: str) -> str:
    """An id of the form and length that AWS gives, for a resource by its type and logical name."""
    return _IDS[type].format(hashlib.sha256(name.encode()).hexdigest())


def _found(made: Recorder) -> Iterator[Document]:
    ids = {f"{one.name}-id": real_id(one.type, one.name) for one in made.asked if one.type in _IDS}
    mocked = re.compile("|".join(sorted(map(re.escape, ids), key=len, reverse=True)) or "$^")
    attached = made.of_type("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
    roles = {str(one.properties["policyArn"]): str(one.properties["role"]) for one in attached}
    for asked in made.asked:
        path = {**IDENTITY, **RESOURCE_POLICIES}.get(asked.type)
        if path and asked.properties.get(path):
            own = [role for arn, role in roles.items() if arn.endswith(f"/{asked.name}-0000000")]
            role = str(asked.properties.get("role") or "".join(own)).removesuffix("-id")
            text = mocked.sub(lambda match: ids[match[0]], _text(asked.properties[path]))
            yield Document(asked.type, asked.name, text, role)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class _Arns(dict[str, Any]):
    """Outputs by type: those of the mocks, and an ARN by the emulation's table."""

    def __contains__(self, token: object) -> bool:
        return str(token).startswith("aws:") or super().__contains__(token)

    def __getitem__(self, token: str) -> Any:
        known = self.get(token, lambda args: {})
        return lambda args: {**_arn(args), **known(args), **(_DATABASE if token == _CLUSTER else {})}


def _arn(args: MockResourceArgs) -> dict[str, object]:
    row = TABLE.row(args.typ)
    fields = {"region": REGION, "account": ACCOUNT, "name": f"{args.name}-0000000", "path": "/"}
    fields |= {key: value for key, value in args.inputs.items() if isinstance(value, str)}
    fields["id"] = _filled(row.id, fields)
    fields.setdefault("bucket", fields["name"])
    return {"arn": _filled(row.link, fields)} if row.link else {}


def _filled(template: str, fields: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1].partition(":")[0]
        size = re.fullmatch(r"(?:hex|digits)(\d+)", name)
        return "0" * int(size[1]) if size else fields.get(name, name)

    return re.sub(r"\{([^}]+)\}", value, template)
