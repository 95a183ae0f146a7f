"""Write the values that the clouds fill in, by the documentation of the SDKs, into the rehearsal's data.

    python -m tools.sdk.defaults aws|gcp

The schema of a provider says that it computes a property which a program leaves out, not what value the cloud
gives it. The documentation of many says so: "Defaults to `false`." Sentences with a condition are left out.
`rehearsal/<cloud>/provider/filled.json` gets one line for each type. Run it after `tools.provider_changes`.
"""

import argparse
import importlib.metadata
import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from infra.engine.golang import ROOT
from rehearsal.aws.table import TABLE as AWS
from rehearsal.core.sdk_types import describe, resource_class
from rehearsal.gcp.table import TABLE as GCP
from tools.provider_types import tokens

_PARAMETER = re.compile(r"^\s*:param [^:]*?\b(\w+): (.*?)(?=^\s*:param |\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.;])\s+(?=[A-Z*(`])|\n\s*\n|\n\s*[*-] |\n\s*>")
# A value in quotes, or a plain one: a number, a truth or a word in capitals.
_VALUE = r"(?:`+\[?\"?([\w./:-]+)\"?\]?`+|\"([\w./:-]+)\"|(\d+|true|false|[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b)"
_DEFAULT = re.compile(
    r"(?:\b[Dd]efault(?:s to| is| value is| value:|:)|\((?:[Dd]efault(?:s to)?:? ?))\s*" + _VALUE
)
_BY_DEFAULT = re.compile(r"`([\w./:-]+)` \((?:the )?default\)|\b([A-Z_]+) is the default if\b")
_UNSET = re.compile(
    r"\b(?:[Ii]f|[Ww]hen) (?:it is |this is |the \w+ is )?(?:not|un|omitted|left)[\w ]*", re.ASCII
)
_CONDITION = re.compile(
    r"\b(?:for|when|if|unless|except|otherwise|depend\w*|on|where|and|or|in)\b", re.IGNORECASE
)
# Type -> path -> what the service fills in, by its API reference, where the SDK does not document it. Each is
# the default wherever the property is allowed, or `where` other properties have one of these lists of values.
# Those of AWS are held against the models of the APIs by tests/rehearsal/differences/test_references.py.
_REFERENCES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "aws": {
        # EC2 API Reference: CreateVolume and EbsBlockDevice (gp3), RunInstances, Placement.
        "ebs/volume:Volume": {"iops": 3000, "throughput": 125},
        "ec2/instance:Instance": {
            "tenancy": "default",
            "instanceInitiatedShutdownBehavior": "stop",
            "rootBlockDevice.iops": 3000,
            "rootBlockDevice.throughput": 125,
            "ebsBlockDevices.deleteOnTermination": True,
            "ebsBlockDevices.iops": 3000,
            "ebsBlockDevices.throughput": 125,
        },
        # API References: CreateTargetGroup, CreateAutoScalingGroup, TracingConfig of Lambda.
        "lb/targetGroup:TargetGroup": {"ipAddressType": "ipv4"},
        "autoscaling/group:Group": {"defaultCooldown": 300},
        "lambda/function:Function": {"tracingConfig.mode": "PassThrough"},
    },
    # Discovery documents by schema and property, as in google-api-python-client 2.202.0; read 2026-11-29.
    "gcp": {
        # compute v1 20261106, Disk.physicalBlockSizeBytes: a default is used, and one size is supported.
        "compute/disk:Disk": {"physicalBlockSizeBytes": 4096},
        # compute v1 20261106, Scheduling.onHostMaintenance. The model: Google Cloud SDK,
        # command_lib/compute/instances/flags.py, --provisioning-model (the request leaves it out).
        "compute/instance:Instance": {
            "scheduling.onHostMaintenance": "MIGRATE",
            "scheduling.provisioningModel": "STANDARD",
        },
        # cloud.google.com/run/docs/securing/ingress: by default, the whole internet reaches a service.
        # run v1 20261031, RevisionSpec.timeoutSeconds: 300 seconds.
        # run v2 20261031, GoogleCloudRunV2RevisionTemplate: 80 requests; with less than one CPU it is 1.
        # cloud.google.com/run/docs/about-concurrency: 80 for each CPU. Without a limit, a container has one.
        "cloudrunv2/service:Service": {
            "ingress": "INGRESS_TRAFFIC_ALL",
            "template.timeout": "300s",
            "template.maxInstanceRequestConcurrency": {
                "is": 80,
                "where": {"template.containers.resources.limits.cpu": [[], ["1"], ["1000m"]]},
            },
        },
        # bigquery v2 20261009, Dataset.maxTimeTravelHours.
        "bigquery/dataset:Dataset": {"maxTimeTravelHours": "168"},
        # pubsub v1 20261027, Subscription.expirationPolicy: 31 days.
        "pubsub/subscription:Subscription": {"expirationPolicy.ttl": "2678400s"},
    },
}


def documented(cls: type) -> dict[str, str]:
    """Property in Python -> its documentation, of a class of arguments."""
    text = vars(cls)["__init__"].__doc__ or cls.__doc__ or ""
    return dict(_PARAMETER.findall(text))


def arguments_of(token: str) -> type | None:
    """The class of a resource's arguments, of a full token; None without one."""
    resource = resource_class(token)
    if resource is None:
        return None
    module = vars(sys.modules[resource.__module__])
    names = (f"{resource.__name__}InitArgs", f"{resource.__name__}Args")
    found: type | None = next((module[name] for name in names if name in module), None)
    return found


def object_class(package: str, name: str) -> type:
    """The class of a nested object of `describe`."""
    owner, kind = name.rpartition(".")[::2]
    module = f"pulumi_{package}.{owner}._inputs" if owner else f"pulumi_{package}._inputs"
    found: type = vars(sys.modules[module])[kind]
    return found


def default_in(text: str, form: Any) -> Any:
    """The default that a documentation names without a condition, in the form of the property; or None."""
    for sentence in _SENTENCE.split(text):
        plain = " ".join(sentence.split())
        match = _DEFAULT.search(plain) or _BY_DEFAULT.search(plain)
        if match is None:
            continue
        rest = _UNSET.sub("", f"{plain[: match.start()]} {plain[match.end() :]}")
        if match.re is _DEFAULT and (_CONDITION.search(rest) or _DEFAULT.search(plain, match.end())):
            return None
        return _of_form(next(one for one in match.groups() if one), form)
    return None


def _of_form(word: str, form: Any) -> Any:
    if form == "bool":
        return {"true": True, "false": False}.get(word.lower())
    if form in ("int", "float"):
        return int(word) if word.isdigit() else None
    if form == {"list": "str"}:
        return [word]
    if word.isdigit() and form == "str":
        return None
    return word.rstrip(".") if form == "str" or (isinstance(form, dict) and "one_of" in form) else None


_Walk = Iterator[tuple[str, Any]]


def of_type(package: str, token: str, computed: frozenset[str]) -> dict[str, Any]:
    """Property path -> default, of the computed properties of a type."""
    described, arguments = describe(f"{package}:{token}"), arguments_of(f"{package}:{token}")
    if described is None or arguments is None:
        return {}
    objects = described["objects"]

    def walk(
        fields: Mapping[str, Any], cls: type, path: str, seen: frozenset[str]
    ) -> Iterator[tuple[str, Any]]:
        texts = {name.replace("_", "").lower(): text for name, text in documented(cls).items()}
        for name, field in fields.items():
            here, form = f"{path}.{name}" if path else name, field["type"]
            if here in computed:
                default = default_in(texts.get(name.lower(), ""), form)
                if default is not None:
                    yield here, default
            form = form["list"] if isinstance(form, dict) and "list" in form else form
            inner = form["object"] if isinstance(form, dict) and "object" in form else ""
            if inner and inner not in seen:
                yield from walk(objects[inner], object_class(package, inner), here, seen | {inner})

    return dict(walk(described["inputs"], arguments, "", frozenset()))


def main() -> None:
    """Write the data file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", choices=["aws", "gcp"])
    package = parser.parse_args().package
    facts = {"aws": AWS, "gcp": GCP}[package].changes
    known = {*facts.tokens} & {*tokens(package)}
    referred = _REFERENCES[package]
    found = {
        token: {**of_type(package, token, facts.of(token).computed), **referred.get(token, {})}
        for token in sorted(known)
    }
    file = facts.file.with_name("filled.json")
    source = f"documentation of pulumi-{package} {importlib.metadata.version(f'pulumi-{package}')}"
    rows = (
        f"{json.dumps(token)}: {json.dumps(row, separators=(',', ':'))}"
        for token, row in found.items()
        if row
    )
    file.write_text(f'{{"source": "{source}", "types": {{\n' + ",\n".join(rows) + "\n}}\n", encoding="utf-8")
    count = sum(map(len, found.values()))
    sys.stdout.write(f"{file.relative_to(ROOT)}: {count} values, {file.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
