"""Fields of resources against the discovery documents of Google APIs."""

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.policies.sources.live.google_schemas import FILE
from tests.trainstack.collect.project import Project


@functools.cache
def documents() -> Any:
    return json.loads(FILE.read_text())


# By asset type: the document and the schema of its data.
SCHEMAS = {
    "artifactregistry.googleapis.com/Repository": ("artifactregistry.v1", "Repository"),
    "bigquery.googleapis.com/Dataset": ("bigquery.v2", "Dataset"),
    "cloudkms.googleapis.com/CryptoKey": ("cloudkms.v1", "CryptoKey"),
    "cloudkms.googleapis.com/KeyRing": ("cloudkms.v1", "KeyRing"),
    **{
        f"compute.googleapis.com/{name}": ("compute.v1", name)
        for name in ("Disk", "Firewall", "Instance", "InstanceGroupManager", "Network", "Subnetwork")
    },
    "container.googleapis.com/Cluster": ("container.v1", "Cluster"),
    "container.googleapis.com/NodePool": ("container.v1", "NodePool"),
    "file.googleapis.com/Backup": ("file.v1", "Backup"),
    "file.googleapis.com/Instance": ("file.v1", "Instance"),
    "iam.googleapis.com/ServiceAccount": ("iam.v1", "ServiceAccount"),
    "iam.googleapis.com/ServiceAccountKey": ("iam.v1", "ServiceAccountKey"),
    "iam.googleapis.com/WorkloadIdentityPoolProvider": ("iam.v1", "WorkloadIdentityPoolProvider"),
    "logging.googleapis.com/LogBucket": ("logging.v2", "LogBucket"),
    "logging.googleapis.com/LogSink": ("logging.v2", "LogSink"),
    "lustre.googleapis.com/Instance": ("lustre.v1", "Instance"),
    "monitoring.googleapis.com/AlertPolicy": ("monitoring.v3", "AlertPolicy"),
    "secretmanager.googleapis.com/Secret": ("secretmanager.v1", "Secret"),
    "sqladmin.googleapis.com/Instance": ("sqladmin.v1beta4", "DatabaseInstance"),
    "storage.googleapis.com/Bucket": ("storage.v1", "Bucket"),
}
_TYPES: Mapping[str, Any] = {
    "string": str, "boolean": bool, "integer": int, "number": (int, float), "object": dict, "any": object,
}  # fmt: skip


def wrong(value: Any, form: Any, api: str, path: str) -> Iterator[str]:
    """What in a value is not as a discovery document has it."""
    if isinstance(form, str) and form.startswith("#"):
        form = documents()[api]["schemas"][form[1:]]
    if isinstance(form, list):
        if not isinstance(value, list):
            yield f"{path} is no list"
        else:
            for index, one in enumerate(value):
                yield from wrong(one, form[0], api, f"{path}[{index}]")
    elif isinstance(form, dict):
        if not isinstance(value, dict):
            yield f"{path} is no object"
            return
        for name, one in value.items():
            if name not in form and "*" not in form:
                yield f"{path}.{name} is no field"
            else:
                yield from wrong(one, form.get(name, form.get("*")), api, f"{path}.{name}")
    elif not isinstance(value, _TYPES[form]):
        yield f"{path} is no {form}"


def held(project: Project) -> list[str]:
    """Everything in a project that is not as the discovery documents have it."""
    found = [
        fault
        for kind, rows in project.assets.items()
        for row in rows
        for fault in wrong(row["resource"]["data"], f"#{SCHEMAS[kind][1]}", SCHEMAS[kind][0], kind)
    ]
    for row in (project.policy, project.above_policy):
        found += wrong(row, "#Policy", "cloudresourcemanager.v3", "policy")
    for row in project.policies:
        found += wrong(row, "#Asset", "cloudasset.v1", "policies")
    lists = {
        "billingbudgets": ("billingbudgets.v1", "#GoogleCloudBillingBudgetsV1ListBudgetsResponse", "budgets"),
        "logging": ("logging.v2", "#ListSinksResponse", "sinks"),
        "parallelstore": ("parallelstore.v1", "#ListInstancesResponse", "instances"),
        "storage": ("storage.v1", "#HmacKeysMetadata", "items"),
    }
    for path, answers in project.rows.items():
        api, form, key = lists[path.partition("/")[0]]
        found += wrong({key: answers}, form, api, path)
    return found
