"""The operation of a service that creates a resource type of the SDK, by names and by what it takes."""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import botocore.session

# Verbs of operations that write a resource, the likeliest first.
_VERBS = ("Create", "Register", "Put", "Allocate", "Request", "Import", "Publish", "Add", "Set", "Update")
# Modules of the SDK whose services have other names.
_SERVICES = {
    "alb": ("elbv2",),
    "apigateway": ("apigateway",),
    "appautoscaling": ("application-autoscaling",),
    "cfg": ("config",),
    "cloudwatch": ("cloudwatch", "logs", "events"),
    "cognito": ("cognito-idp", "cognito-identity"),
    "costexplorer": ("ce",),
    "ebs": ("ec2",),
    "ec2clientvpn": ("ec2",),
    "ec2transitgateway": ("ec2",),
    "elasticsearch": ("es",),
    "kinesis": ("kinesis", "firehose"),
    "lb": ("elbv2",),
    "lex": ("lexv2-models",),
    "msk": ("kafka",),
    "mskconnect": ("kafkaconnect",),
    "route53": ("route53", "route53resolver"),
    "amp": ("amp",),
    "serverlessrepository": ("serverlessrepo",),
    "servicediscovery": ("servicediscovery",),
    "sfn": ("stepfunctions",),
    "ssm": ("ssm", "ssm-incidents", "ssm-contacts"),
    "timestreamwrite": ("timestream-write",),
    "transcribe": ("transcribe",),
    "vpc": ("ec2",),
}
# Types whose names do not end with the operation's, or that take few of its members.
_NAMED = {
    "cloudwatch/logGroup:LogGroup": ("logs", "CreateLogGroup"),
    "fsx/windowsFileSystem:WindowsFileSystem": ("fsx", "CreateFileSystem"),
    "glue/catalogDatabase:CatalogDatabase": ("glue", "CreateDatabase"),
    "glue/catalogTable:CatalogTable": ("glue", "CreateTable"),
    "msk/configuration:Configuration": ("kafka", "CreateConfiguration"),
    "appautoscaling/policy:Policy": ("application-autoscaling", "PutScalingPolicy"),
    "appautoscaling/target:Target": ("application-autoscaling", "RegisterScalableTarget"),
    "autoscaling/policy:Policy": ("autoscaling", "PutScalingPolicy"),
    "autoscaling/schedule:Schedule": ("autoscaling", "PutScheduledUpdateGroupAction"),
    "cfg/rule:Rule": ("config", "PutConfigRule"),
    "cloudwatch/eventRule:EventRule": ("events", "PutRule"),
    "cloudwatch/logMetricFilter:LogMetricFilter": ("logs", "PutMetricFilter"),
    "cloudwatch/logSubscriptionFilter:LogSubscriptionFilter": ("logs", "PutSubscriptionFilter"),
    "directoryservice/directory:Directory": ("ds", "CreateDirectory"),
    "docdb/cluster:Cluster": ("docdb", "CreateDBCluster"),
    "docdb/clusterInstance:ClusterInstance": ("docdb", "CreateDBInstance"),
    "ec2/instance:Instance": ("ec2", "RunInstances"),
    "ec2/networkAclRule:NetworkAclRule": ("ec2", "CreateNetworkAclEntry"),
    "eks/nodeGroup:NodeGroup": ("eks", "CreateNodegroup"),
    "elasticache/cluster:Cluster": ("elasticache", "CreateCacheCluster"),
    "emr/cluster:Cluster": ("emr", "RunJobFlow"),
    "neptune/cluster:Cluster": ("neptune", "CreateDBCluster"),
    "neptune/clusterInstance:ClusterInstance": ("neptune", "CreateDBInstance"),
    "opensearch/serverlessCollection:ServerlessCollection": ("opensearchserverless", "CreateCollection"),
    "opensearch/serverlessSecurityPolicy:ServerlessSecurityPolicy": (
        "opensearchserverless",
        "CreateSecurityPolicy",
    ),
    "opensearch/serverlessAccessPolicy:ServerlessAccessPolicy": (
        "opensearchserverless",
        "CreateAccessPolicy",
    ),
    "rds/cluster:Cluster": ("rds", "CreateDBCluster"),
    "rds/clusterInstance:ClusterInstance": ("rds", "CreateDBInstance"),
    "rds/eventSubscription:EventSubscription": ("rds", "CreateEventSubscription"),
    "rds/instance:Instance": ("rds", "CreateDBInstance"),
    "rds/proxy:Proxy": ("rds", "CreateDBProxy"),
    "sns/topicSubscription:TopicSubscription": ("sns", "Subscribe"),
}
# Members that no property has: tokens of requests, and tags, which rules of their own judge.
_ASIDE = re.compile(
    r"tags?(et|list|s|map|specifications?)?|(client|idempotency|creator).*(token|reference)|dryrun|clientid"
)
# Structures around what is created, beside the name of the resource: `DatabaseInput`, `PipelineDeclaration`.
_AROUND = ("", "input", "config", "configuration", "declaration", "metadata", "definition")
# So much of the members must be properties, and so much of the properties must be members.
_SAME, _ENDS = (0.1, 0.0), (0.6, 0.4)


def plain(name: str) -> str:
    """A name in small letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@dataclass(frozen=True)
class Operation:
    """An operation with the shapes of its members by name, without wrappers; `noun` is what it creates."""

    service: str
    name: str
    noun: str
    members: Mapping[str, Any]
    required: frozenset[str]


def _session() -> Any:
    return botocore.session.get_session()


@functools.cache
def _model(service: str) -> Any:
    return _session().get_service_model(service)


@functools.cache
def _services() -> Mapping[str, str]:
    return {plain(one): one for one in _session().get_available_services()}


def _operation(service: str, name: str) -> Operation | None:
    shape = _model(service).operation_model(name).input_shape
    if shape is None:
        return None
    noun = plain(re.sub(r"^[A-Z][a-z]+", "", name))
    members, required = dict(shape.members), set(shape.required_members)
    for member, inner in shape.members.items():
        around = inner.type_name == "structure" and plain(member) in {f"{noun}{one}" for one in _AROUND}
        if around:
            del members[member]
            members = {**inner.members, **members}
            required |= set(inner.required_members)
    left = {name: one for name, one in members.items() if not _ASIDE.fullmatch(plain(name))}
    return Operation(service, name, noun, left, frozenset(required))


def _candidates(token: str) -> Iterator[tuple[Operation, bool]]:
    """Operations that a type's name fits, with whether it is the same name."""
    module, _, kind = token.partition(":")[0].partition("/")
    module, kind = plain(module), plain(kind)
    named = [_services()[module]] if module in _services() else []
    named += [one for one in _SERVICES.get(module, ()) if one not in named]
    for service in named:
        for verb in _VERBS:
            for name in _model(service).operation_names:
                noun = plain(name.removeprefix(verb)) if name.startswith(verb) else ""
                same = noun in (kind, f"{module}{kind}") or kind == f"{plain(service)}{noun}"
                if noun and (same or (len(noun) > 4 and kind.endswith(noun))):
                    found = _operation(service, name)
                    if found:
                        yield found, same


def property_of(member: str, noun: str, names: Mapping[str, str]) -> str | None:
    """The property for a member; `names` are properties by their plain names.

    A list has the plural, and the name of a resource may lack the resource: `DeliveryStreamName` is `name`.
    """
    word = plain(member)
    short = word.removeprefix(noun) if noun and word != noun else word
    for one in (word, short):
        for form in (one, f"{one}s", f"{one}es", f"{one.removesuffix('y')}ies", one.removesuffix("s")):
            if form in names and (one == word or short in ("name", "description", "type", "identifier")):
                return names[form]
    return None


def matched(operation: Operation, inputs: Mapping[str, Any]) -> dict[str, str]:
    """Member -> property of the SDK; two members for one property have none."""
    names = {plain(name): name for name in inputs}
    found = {member: property_of(member, operation.noun, names) for member in operation.members}
    times = [*found.values()]
    exact = {member for member in found if plain(member) in names}
    return {
        member: name
        for member, name in found.items()
        if name and (member in exact or (times.count(name) == 1))
    }


def creating(token: str, inputs: Mapping[str, Any]) -> Operation | None:
    """The operation that creates a type with these inputs, or None where none is sure."""
    if token in _NAMED:
        return _operation(*_NAMED[token])
    best: tuple[tuple[bool, bool, float], Operation] | None = None
    others = {name for name in inputs if name not in ("region", "tags", "namePrefix")}
    for operation, same in _candidates(token):
        pairs = matched(operation, inputs)
        if not operation.members or not others:
            continue
        of_members, of_inputs = len(pairs) / len(operation.members), len({*pairs.values()}) / len(others)
        least, most = _SAME if same else _ENDS
        enough = of_members >= least and of_inputs >= most
        lacking = [one for one in operation.required & {*operation.members} if one not in pairs]
        if (enough or of_inputs >= 0.7) and len(lacking) <= 1:
            made = not operation.name.startswith(_VERBS[-1])
            rank = (same, made, of_members + of_inputs)
            best = (rank, operation) if best is None or rank > best[0] else best
    return best[1] if best else None
