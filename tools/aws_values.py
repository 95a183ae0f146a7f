"""Write the values that AWS lists into the rehearsal's data: `rehearsal/aws/values/{facts,lists}.json`.

    python -m tools.aws_values

It reads the installed packages: cfn-lint's copies of CloudFormation's resource schemas and its lists, enums
of botocore, managed policies of moto. Nothing of them is needed at run time. Run it after an upgrade of one.

A fact is left out where the provider's documentation of the property names a value that it would refuse: the
schema is CloudFormation's, the program's provider may take more.
"""

import argparse
import functools
import importlib.metadata
import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi_aws  # noqa: F401 (registers the modules that `describe` reads)
from pulumi.runtime import rpc

from infra.engine.golang import ROOT
from rehearsal.aws.values import FACTS, LISTS
from rehearsal.core.sdk_types import describe
from tools import aws_lists
from tools.sdk.defaults import arguments_of, documented, object_class

_CFN_LINT = importlib.util.find_spec("cfnlint")
assert _CFN_LINT is not None and _CFN_LINT.origin is not None
DATA = Path(_CFN_LINT.origin).parent / "data" / "schemas"
# Resource types whose names differ more than by their spelling.
_NAMED = {
    "AutoScaling::AutoScalingGroup": "autoscaling/group:Group",
    "CloudWatch::Alarm": "cloudwatch/metricAlarm:MetricAlarm",
    "DocDB::DBCluster": "docdb/cluster:Cluster",
    "DocDB::DBInstance": "docdb/clusterInstance:ClusterInstance",
    "EC2::EIP": "ec2/eip:Eip",
    "EC2::Volume": "ebs/volume:Volume",
    "EC2::VPCPeeringConnection": "ec2/vpcPeeringConnection:VpcPeeringConnection",
    "ECR::Repository": "ecr/repository:Repository",
    "ElastiCache::CacheCluster": "elasticache/cluster:Cluster",
    "ElasticLoadBalancing::LoadBalancer": "elb/loadBalancer:LoadBalancer",
    "ElasticLoadBalancingV2::Listener": "lb/listener:Listener",
    "ElasticLoadBalancingV2::ListenerRule": "lb/listenerRule:ListenerRule",
    "ElasticLoadBalancingV2::LoadBalancer": "lb/loadBalancer:LoadBalancer",
    "ElasticLoadBalancingV2::TargetGroup": "lb/targetGroup:TargetGroup",
    "Events::EventBus": "cloudwatch/eventBus:EventBus",
    "Events::Rule": "cloudwatch/eventRule:EventRule",
    "Logs::LogGroup": "cloudwatch/logGroup:LogGroup",
    "Logs::LogStream": "cloudwatch/logStream:LogStream",
    "Logs::MetricFilter": "cloudwatch/logMetricFilter:LogMetricFilter",
    "MSK::Cluster": "msk/cluster:Cluster",
    "Neptune::DBCluster": "neptune/cluster:Cluster",
    "Neptune::DBInstance": "neptune/clusterInstance:ClusterInstance",
    "OpenSearchService::Domain": "opensearch/domain:Domain",
    "RDS::DBCluster": "rds/cluster:Cluster",
    "RDS::DBInstance": "rds/instance:Instance",
    "RDS::DBParameterGroup": "rds/parameterGroup:ParameterGroup",
    "RDS::DBProxy": "rds/proxy:Proxy",
    "RDS::DBSubnetGroup": "rds/subnetGroup:SubnetGroup",
    "Route53::HostedZone": "route53/zone:Zone",
    "Route53::RecordSet": "route53/record:Record",
    "SNS::Subscription": "sns/topicSubscription:TopicSubscription",
    "StepFunctions::StateMachine": "sfn/stateMachine:StateMachine",
}
_SERVICES = {"certificatemanager": "acm", "kinesisfirehose": "kinesis", "stepfunctions": "sfn", "aps": "amp"}
# Longest list of words that is closed rather than a list that grows.
_MOST_WORDS = 120
# Properties that take a value of a list that grows, or of the catalog.
_GROWING = ("runtime", "compatibleRuntimes[]", "instanceType", "engineVersion", "version", "retentionInDays")
_WORD = re.compile(r"`+\"?([^`\"]+)\"?`+")


@functools.cache
def limited() -> frozenset[tuple[str, str]]:
    """(type, path) of what a rule of the rehearsal judges already."""
    files = (ROOT / "rehearsal" / "aws" / "rules" / "limits").glob("*.toml")
    rows = [row for file in files for row in tomllib.loads(file.read_text(encoding="utf-8"))["limit"]]
    return frozenset(
        (token, path.replace("[].", ".")) for row in rows for token in row["types"] for path in row["paths"]
    )


def tokens() -> dict[tuple[str, str], str]:
    """(service, kind), both in small letters -> type, such as `sqs/queue:Queue`."""
    found = {}
    for modules in rpc._RESOURCE_MODULES.values():
        for module in modules:
            for token in getattr(module, "mod_info", {}).get("classes", {}):
                service, _, kind = token.removeprefix("aws:").partition("/")
                found[service.lower(), kind.partition(":")[0].lower()] = token.removeprefix("aws:")
    return found


class Reader:
    """Facts of one type: the schema of CloudFormation, walked beside the inputs of the SDK."""

    def __init__(self, token: str, schema: Mapping[str, Any]) -> None:
        described, arguments = describe(f"aws:{token}"), arguments_of(f"aws:{token}")
        assert described is not None and arguments is not None, token
        self.definitions = schema.get("definitions", {})
        self.objects = described["objects"]
        self.facts: dict[str, Any] = {}
        self._seen: list[str] = []
        self._names: set[str] = set()
        self._token = token
        self._walk(schema, described["inputs"], documented(arguments), "")

    def _walk(
        self, schema: Mapping[str, Any], fields: Mapping[str, Any], docs: Mapping[str, str], path: str
    ) -> None:
        by_name = {name.lower(): name for name in fields}
        texts = {name.replace("_", "").lower(): text for name, text in docs.items()}
        self._names |= set(docs)
        for name, given in schema.get("properties", {}).items():
            plain = name.lower()
            mine = next(
                (by_name[one] for one in (plain, f"{plain}s", plain.removesuffix("s")) if one in by_name), ""
            )
            if mine and mine not in ("tags", "name"):
                here = f"{path}.{mine}" if path else mine
                text = texts.get(mine.lower(), "")
                self._value(self._resolved(given), fields[mine]["type"], text, here)

    def _value(self, node: Mapping[str, Any], form: Any, text: str, path: str) -> None:
        if isinstance(form, dict) and "list" in form:
            form = form["list"]
            if node.get("type") == "array" or "items" in node:
                node = self._resolved(node.get("items", {}))
            path = path if isinstance(form, dict) else f"{path}[]"
        if isinstance(form, dict) and "object" in form:
            if form["object"] not in self._seen:
                self._seen.append(form["object"])
                docs = documented(object_class("aws", form["object"]))
                self._walk(node, self.objects[form["object"]], docs, path)
                self._seen.pop()
        elif isinstance(form, str) and form in ("str", "int", "float"):
            self._scalar(node, form, text, path)

    def _scalar(self, node: Mapping[str, Any], form: str, text: str, path: str) -> None:
        if path.rpartition(".")[2] in _GROWING or (self._token, path) in limited():
            return
        words = node.get("enum")
        if words and 1 < len(words) <= _MOST_WORDS:
            named = {word for word in _WORD.findall(text) if re.fullmatch(r"[\w.:+/-]+", word)} - self._names
            self.facts.setdefault("words_any_case", {})[path] = sorted({*map(str, words), *named})
        low, high = node.get("minimum"), node.get("maximum")
        if form != "str" and (low is not None or high is not None) and _agrees(text, low, high):
            # Zero and -1 stand for "not set" in many properties of the provider.
            unset = [[0, 0]] if low is not None and low > 0 else []
            self.facts.setdefault("ranges", {})[path] = [[low, high], *unset]
        longest = node.get("maxLength")
        if form == "str" and longest and _agrees(text, None, longest):
            self.facts.setdefault("length", {})[path] = [0, longest]

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in node:
            node = self.definitions.get(node["$ref"].rpartition("/")[2], {})
        return node


def _agrees(text: str, low: float | None, high: float | None) -> bool:
    """Return whether no number in the documentation is outside of a range; -1 and 0 may have a meaning."""
    numbers = [
        float(one.replace(",", "")) for one in re.findall(r"(?<![\w.-])-?\d[\d,]*(?:\.\d+)?(?![\w.])", text)
    ]
    return all((low is None or one >= low or one == 0) and (high is None or one <= high) for one in numbers)


def types() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each type with its schema."""
    known = tokens()
    listed = json.loads((DATA / "providers" / "us-east-1.json").read_text(encoding="utf-8"))
    for name, digest in sorted(listed.items()):
        _, _, plain = name.partition("::")
        service, _, kind = plain.lower().partition("::")
        token = _NAMED.get(plain) or known.get((_SERVICES.get(service, service), kind))
        if token and name.startswith("AWS::"):
            yield token, json.loads((DATA / "resources" / f"{digest}.json").read_text(encoding="utf-8"))


def head() -> dict[str, str]:
    """Versions of the packages, and the date of the schemas."""
    packages = ("cfn-lint", "botocore", "moto")
    date = json.loads((DATA / "version.json").read_text(encoding="utf-8"))["schema_date"][:10]
    source = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return {"source": source, "date": date}


def write(file: Path, key: str, rows: Mapping[str, Any]) -> None:
    """Write a file of one line for each row."""
    opening = json.dumps(head())[:-1]
    lines = (f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in rows.items())
    file.write_text(f'{opening}, "{key}": {{\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    sys.stdout.write(f"{file.relative_to(ROOT)}: {file.stat().st_size} bytes, {len(rows)} rows\n")


def main() -> None:
    """Write the data files."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    found = {token: Reader(token, schema).facts for token, schema in types()}
    write(FACTS, "types", {token: facts for token, facts in sorted(found.items()) if facts})
    text = json.dumps({**head(), **aws_lists.lists(DATA)}, indent=1)
    LISTS.write_text(
        re.sub(r'\[\s+("[^\]]*?")\s+\]', lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text) + "\n"
    )
    sys.stdout.write(f"{LISTS.relative_to(ROOT)}: {LISTS.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
