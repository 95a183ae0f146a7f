"""Writes google_schemas.json: fields and methods of the APIs that live sources of Google Cloud read.

    pip download --no-deps google-api-python-client
    python -m tests.policies.sources.live.google_schemas google_api_python_client-*.whl

The package holds the discovery documents of Google's APIs; it has 90 MB, so only what is needed is kept.
"""

import datetime
import json
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainstack.collect.gcp.methods import METHODS

FILE = Path(__file__).with_name("google_schemas.json")
_DOCUMENTS = "googleapiclient/discovery_cache/documents"
ROOTS = {
    "artifactregistry.v1": ("Repository",),
    "bigquery.v2": ("Dataset",),
    "billingbudgets.v1": ("GoogleCloudBillingBudgetsV1ListBudgetsResponse",),
    "cloudasset.v1": ("Asset", "ListAssetsResponse"),
    "cloudbilling.v1": ("ProjectBillingInfo",),
    "cloudkms.v1": ("CryptoKey", "KeyRing"),
    "cloudresourcemanager.v1": ("Project", "GetAncestryResponse"),
    "cloudresourcemanager.v3": ("Policy", "GetIamPolicyRequest"),
    "compute.v1": ("Disk", "Firewall", "Instance", "InstanceGroupManager", "Network", "Subnetwork"),
    "container.v1": ("Cluster", "NodePool"),
    "file.v1": ("Backup", "Instance"),
    "iam.v1": ("ServiceAccount", "ServiceAccountKey", "WorkloadIdentityPoolProvider"),
    "logging.v2": ("ListSinksResponse", "LogBucket", "LogSink"),
    "monitoring.v3": ("AlertPolicy",),
    "parallelstore.v1": ("ListInstancesResponse",),
    "secretmanager.v1": ("Secret",),
    "sqladmin.v1beta4": ("DatabaseInstance",),
    "storage.v1": ("Bucket", "HmacKeysMetadata"),
}
# The package has no document of Managed Lustre.
_LUSTRE = {
    "source": "googleapis/googleapis, google/cloud/lustre/v1/instance.proto at 6c345acd31e0",
    "date": "2026-11-24",
    "methods": {},
    "schemas": {
        "Instance": {
            **dict.fromkeys(
                ("name", "filesystem", "capacityGib", "network", "state", "mountPoint"), "string"
            ),
            **dict.fromkeys(("createTime", "updateTime", "description", "kmsKey", "stateReason"), "string"),
            **dict.fromkeys(("mountPoint", "perUnitStorageThroughput", "placementPolicy", "uid"), "string"),
            "gkeSupportEnabled": "boolean",
            "labels": {"*": "string"},
        }
    },
}


def written(
    wheel: Path, wanted: Mapping[str, tuple[str, ...]] = ROOTS, named: Collection[str] = tuple(METHODS)
) -> dict[str, Any]:
    """By API: where it is from, its methods with verb, address and parameters, the schemas of `wanted`."""
    name, version = wheel.name.split("-")[:2]
    source = f"{name} {version}, {_DOCUMENTS}"
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    made: dict[str, Any] = {}
    with zipfile.ZipFile(wheel) as package:
        for api, roots in wanted.items():
            document = json.loads(package.read(f"{_DOCUMENTS}/{api}.json"))
            made[api] = {
                "source": source,
                "date": date,
                "methods": dict(
                    sorted(_methods(document, document["rootUrl"] + document["servicePath"], named))
                ),
                "schemas": _schemas(document["schemas"], roots),
            }
    return made


def _methods(holder: Any, base: str, named: Collection[str]) -> Iterator[tuple[str, Any]]:
    for one in holder.get("methods", {}).values():
        if one["id"] in named:
            row = {
                "verb": one["httpMethod"],
                "address": base + one["path"].replace("{+", "{"),
                "parameters": sorted(one.get("parameters", {})),
                "response": one["response"]["$ref"],
            }
            yield one["id"], row
    for one in holder.get("resources", {}).values():
        yield from _methods(one, base, named)


def _schemas(all_of: Any, roots: tuple[str, ...]) -> dict[str, Any]:
    """The schemas that roots lead to: by field its type, a schema, or a list or object of some."""
    made: dict[str, Any] = {}
    waiting = list(roots)

    def form(field: Any) -> Any:
        if "$ref" in field:
            waiting.append(field["$ref"])
            return f"#{field['$ref']}"
        if field.get("type") == "array":
            return [form(field["items"])]
        if "properties" in field:
            return {name: form(one) for name, one in sorted(field["properties"].items())}
        return (
            {"*": form(field["additionalProperties"])} if "additionalProperties" in field else field["type"]
        )

    while waiting:
        name = waiting.pop()
        if name not in made:
            made[name] = {}  # it may lead to itself
            made[name] = {key: form(one) for key, one in sorted(all_of[name].get("properties", {}).items())}
    return dict(sorted(made.items()))


def kept(rows: Mapping[str, Any], file: Path) -> None:
    """Write them, one API a line."""
    lines = [f"{json.dumps(api)}: {json.dumps(rows[api], sort_keys=True)}" for api in sorted(rows)]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    kept({"lustre.v1": _LUSTRE, **written(Path(sys.argv[1]))}, FILE)
