"""Stores of data, and the identities that the policies of a cloud let reach them (pure).

Grants are read from policies of AWS (`Allow` statements; `Deny` and conditions can only take away) and from
members of Google Cloud. What a file system or a database accepts is read from rules of security groups.
"""

import fnmatch
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainstack.dossier.architecture.exposure import STORES, at, merged, text, texts
from trainstack.dossier.architecture.parts import Row, is_counted, of_type

RIGHTS = ("read", "write", "delete", "all")
_NAMES = ("arn", "id", "name", "bucket", "clusterResourceId", "secretId")
_ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
_POLICIES = "aws:iam/policy:Policy"
_ATTACHED = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
_VERBS = (
    ("delete", re.compile(r"^(Delete|Purge)")),
    ("write", re.compile(r"^(Put|Create|Write|Update|Abort|Restore|Upload|ClientWrite|ClientRootAccess)")),
    ("read", re.compile(r"^(Get|List|Head|Read|Select|Download|ClientMount|connect)")),
)
_GOOGLE: Mapping[str, tuple[str, ...]] = {
    "roles/cloudsql.client": ("read", "write"),
    "roles/cloudsql.instanceUser": ("read", "write"),
    "roles/secretmanager.secretAccessor": ("read",),
    "roles/storage.admin": ("all",),
    "roles/storage.objectAdmin": ("all",),
    "roles/storage.objectCreator": ("write",),
    "roles/storage.objectUser": ("read", "write", "delete"),
    "roles/storage.objectViewer": ("read",),
}
_BUCKET_MEMBERS = (
    "gcp:storage/bucketIAMMember:BucketIAMMember",
    "gcp:storage/managedFolderIamMember:ManagedFolderIamMember",
)
_SECRET_MEMBERS = "gcp:secretmanager/secretIamMember:SecretIamMember"  # noqa: S105 - a type, not a secret
_PROJECT_MEMBERS = "gcp:projects/iAMMember:IAMMember"
_ENCRYPTION = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
_GROUPS = ("securityGroupIds", "vpcSecurityGroupIds", "securityGroups")
_TARGET = "aws:efs/mountTarget:MountTarget"
_INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_KEYS = (
    "kmsKeyId",
    "kmsKey",
    "kmsKeyArn",
    "encryptionKeyName",
    "encryption.defaultKmsKeyName",
    "kmsKeyName",
    "customerManagedEncryption.kmsKeyName",
    "gceSetup.bootDisk.kmsKey",
    "replication.userManaged.replicas.customerManagedEncryption.kmsKeyName",
)


@dataclass(frozen=True)
class DataStore:
    """A resource that holds data."""

    urn: str
    kind: str
    own_key: bool | None
    """Whether a key of a key service encrypts it; None: not known before the deployment."""
    protected: bool
    """Whether the engine, or the cloud, refuses to delete it."""
    kept: bool
    """Whether a destroy leaves it in the cloud."""
    reached_from: Sequence[str]
    """Sources that its security groups accept; empty where the cloud's API is the only way to it."""


@dataclass(frozen=True)
class StoreGrant:
    """The rights of one identity on one store."""

    who: str
    store: str
    """URN of the store."""
    rights: Sequence[str]
    scopes: Sequence[str]
    """Folders below the store that the rights are limited to; empty: all of it."""


def stores(resources: Sequence[Row]) -> list[DataStore]:
    """The stores, by kind and URN."""
    rows = [row for row in resources if is_counted(row)]
    keyed = {text(row, "bucket") for row in rows if of_type(row["urn"]) == _ENCRYPTION}
    found = []
    for row in rows:
        if kind := STORES.get(of_type(row["urn"])):
            props = merged(row)
            names = {text(row, "bucket"), text(row, "id")} - {""}
            own = any(at(props, path) for path in _KEYS) or bool(names & keyed)
            found.append(
                DataStore(
                    row["urn"],
                    kind,
                    own or (None if _planned(row) and not row.get("inputs") else own),
                    bool(row.get("protect")) or _guarded(props),
                    bool(row.get("retainOnDelete")),
                    _sources(row, rows),
                )
            )
    return sorted(found, key=lambda one: (one.kind, one.urn))


def grants(resources: Sequence[Row], found: Sequence[DataStore]) -> list[StoreGrant]:
    """The grants on stores, by identity."""
    rows = [row for row in resources if is_counted(row)]
    by_urn = {row["urn"]: row for row in rows}
    names = {one.urn: _names(by_urn[one.urn]) for one in found}
    given: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for who, store, rights, scope in (*_of_aws(rows, names), *_of_google(rows, names, by_urn)):
        both = given.setdefault((who, store), (set(), set()))
        both[0].update(rights)
        both[1].add(scope)
    return [
        StoreGrant(
            who, store, [one for one in RIGHTS if one in rights], [] if "" in scopes else sorted(scopes)
        )
        for (who, store), (rights, scopes) in sorted(given.items())
    ]


def _planned(row: Row) -> bool:
    return not row.get("outputs")


def _guarded(props: Mapping[str, Any]) -> bool:
    marks = ("deletionProtection", "deletionProtectionEnabled", "settings.deletionProtectionEnabled")
    return any(at(props, path) is True for path in marks)


def _names(row: Row) -> list[str]:
    props = merged(row)
    found = [props.get(key) for key in _NAMES] + [row.get("id")]
    secret = at(props, "masterUserSecrets.secretArn")
    return list(dict.fromkeys(one for one in [*found, secret] if isinstance(one, str) and one))


_Found = tuple[str, str, Iterable[str], str]


def _of_aws(rows: Sequence[Row], names: Mapping[str, Sequence[str]]) -> Iterator[_Found]:
    roles = {text(row, "name"): row for row in rows if of_type(row["urn"]) == "aws:iam/role:Role"}
    pods = _pods(rows)
    policies = {text(row, "arn"): row for row in rows if of_type(row["urn"]) == _POLICIES}
    for row in rows:
        kind = of_type(row["urn"])
        document = text(row, "policy") if kind == _ROLE_POLICY else ""
        if kind == _ATTACHED and text(row, "policyArn") in policies:
            document = text(policies[text(row, "policyArn")], "policy")
        role = roles.get(text(row, "role"))
        if not document or role is None:
            continue
        who = pods.get(text(role, "arn")) or f"role {role['urn'].split('::', 3)[3]}"
        for rights, resources in _allowed(document):
            for store, known in names.items():
                for scope in _scopes(resources, known):
                    yield who, store, rights, scope


def _pods(rows: Sequence[Row]) -> Mapping[str, str]:
    """`pod NAMESPACE/SERVICEACCOUNT` by ARN of the role."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if of_type(row["urn"]) == "aws:eks/podIdentityAssociation:PodIdentityAssociation":
            props = merged(row)
            pod = f"{props.get('namespace')}/{props.get('serviceAccount')}"
            found.setdefault(str(props.get("roleArn")), []).append(pod)
    return {arn: f"pods {', '.join(sorted(pods))}" for arn, pods in found.items()}


def _allowed(document: str) -> Iterator[tuple[set[str], list[str]]]:
    try:
        statements = json.loads(document).get("Statement", [])
    except (ValueError, AttributeError):
        return
    for one in statements if isinstance(statements, list) else [statements]:
        if isinstance(one, dict) and one.get("Effect") == "Allow":
            rights = {right for action in texts(one.get("Action")) for right in _rights(action)}
            if rights:
                yield rights, texts(one.get("Resource"))


def _rights(action: str) -> Iterator[str]:
    verb = action.rpartition(":")[2]
    if verb.startswith("*"):
        yield "all"
    for right, form in _VERBS:
        if form.match(verb):
            yield right


def _scopes(resources: Sequence[str], known: Sequence[str]) -> set[str]:
    """The folders below a store that patterns of a policy name; "" is all of it.

    The ARN of a bucket alone grants its list, not its objects; `*` alone is for actions without a resource.
    """
    found = set()
    for pattern in (one for one in resources if one != "*"):
        for arn in (one for one in known if one.startswith("arn:")):
            head, _, tail = pattern.partition(f"{arn}/")
            if not head and tail:
                found.add(tail.removesuffix("*").strip("/"))
            elif fnmatch.fnmatchcase(arn, pattern) and not (pattern == arn and ":s3:::" in arn):
                found.add("")
    return found


def _of_google(
    rows: Sequence[Row], names: Mapping[str, Sequence[str]], by_urn: Mapping[str, Row]
) -> Iterator[_Found]:
    for row in rows:
        kind, props = of_type(row["urn"]), merged(row)
        rights = _GOOGLE.get(str(props.get("role")))
        if rights is None or not isinstance(props.get("member"), str):
            continue
        who = _member(str(props["member"]))
        if kind in (*_BUCKET_MEMBERS, _SECRET_MEMBERS):
            aim = {str(props.get(key)) for key in ("bucket", "secretId") if props.get(key)}
            scope = str(props.get("managedFolder") or "").strip("/")
            yield from ((who, store, rights, scope) for store, known in names.items() if aim & {*known})
        elif kind == _PROJECT_MEMBERS:
            service = "database" if "cloudsql" in str(props["role"]) else "bucket"
            yield from (
                (who, store, rights, "")
                for store in names
                if STORES[of_type(by_urn[store]["urn"])] == service
            )


def _member(text: str) -> str:
    kind, _, name = text.partition(":")
    if kind in ("principalSet", "principal"):
        return f"pods {name.rpartition('/subject/')[2] or name.rpartition('/')[2]}"
    if kind == "serviceAccount":
        pods = re.fullmatch(r".*\.svc\.id\.goog\[(.+)\]", name)
        return f"pods {pods[1]}" if pods else f"account {name.partition('@')[0]}"
    return f"{kind} {name}"


def _sources(store: Row, rows: Sequence[Row]) -> list[str]:
    """Sources that the security groups of a store, or of its mount targets, accept."""
    at_network = [store, *(row for row in rows if _is_target(row, store))]
    groups = {one for row in at_network for key in _GROUPS for one in texts(at(merged(row), key))}
    tied = {urn for row in at_network for key in _GROUPS for urn in _references(row, key)}
    found = set()
    for row in rows:
        own = text(row, "securityGroupId")
        if of_type(row["urn"]) == _INGRESS and (
            own in groups or tied & {*_references(row, "securityGroupId")}
        ):
            other = text(row, "referencedSecurityGroupId")
            block = text(row, "cidrIpv4") or text(row, "cidrIpv6")
            found.add("itself" if other and other == own else block or _group(other, rows))
    return sorted(found)


def _is_target(row: Row, store: Row) -> bool:
    ours = bool(text(row, "fileSystemId")) and text(row, "fileSystemId") == (
        text(store, "id") or store.get("id")
    )
    return of_type(row["urn"]) == _TARGET and (ours or store["urn"] in _references(row, "fileSystemId"))


def _references(row: Row, key: str) -> Sequence[str]:
    """URNs of the resources that an input comes from."""
    return (row.get("propertyDependencies") or {}).get(key) or ()


def _group(group: Any, rows: Sequence[Row]) -> str:
    for row in rows:
        props = merged(row)
        if of_type(row["urn"]) == "aws:ec2/securityGroup:SecurityGroup" and props.get("id") == group:
            return f"group {row['urn'].split('::', 3)[3]}"
        if (
            of_type(row["urn"]) == "aws:eks/cluster:Cluster"
            and at(props, "vpcConfig.clusterSecurityGroupId") == group
        ):
            return "nodes of the cluster"
    return "another group"
