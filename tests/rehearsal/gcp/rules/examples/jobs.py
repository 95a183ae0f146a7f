"""For every rule about notebooks, functions and services behind a proxy: what is accepted and refused."""

from typing import Any

from tests.rehearsal.gcp.rules.examples.keys import agent

NOTEBOOK, SERVICE = "workbench/instance:Instance", "cloudrunv2/service:Service"
VISITOR = "iap/webCloudRunServiceIamMember:WebCloudRunServiceIamMember"
PLACE = {"location": "us-central1"}
VISIT = {**PLACE, "role": "roles/iap.httpsResourceAccessor", "member": "user:ada@example.com"}
SERVICES = [
    (SERVICE, name, {**PLACE, "name": name, "iapEnabled": on, "template": {"containers": [{"image": "i"}]}})
    for name, on in (("proxied", True), ("open", False))
]

FUNCTION = "cloudfunctionsv2/function:Function"
BUILDER = "projects/research/serviceAccounts/{}@research.iam.gserviceaccount.com"
BUILDERS = [
    ("serviceaccount/account:Account", name, {"accountId": name}) for name in ("builds", "reads-nothing")
]
SOURCES = (
    "projects/iAMMember:IAMMember",
    "sources",
    {
        "project": "research",
        "role": "roles/storage.objectViewer",
        "member": "serviceAccount:builds@research.iam.gserviceaccount.com",
        "condition": {
            "title": "sources",
            "expression": 'resource.name.startsWith("projects/_/buckets/gcf-v2-sources-")',
        },
    },
)
EVENTARC: list[tuple[str, str, dict[str, Any]]] = [
    ("projects/serviceIdentity:ServiceIdentity", "eventarc", {"service": "eventarc.googleapis.com"}),
    (
        "projects/iAMMember:IAMMember",
        "triggers",
        {
            "project": "research",
            "role": "roles/eventarc.serviceAgent",
            "member": agent("eventarc.googleapis.com"),
        },
    ),
]


def notebook(**setup: Any) -> dict[str, Any]:
    return {"location": "us-central1-a", "gceSetup": setup}


def service(**container: Any) -> dict[str, Any]:
    containers = [{"image": "us-docker.pkg.dev/cloudrun/container/hello", **container}]
    return {**PLACE, "name": "web", "template": {"containers": containers}}


def sized(cpu: str, memory: str) -> dict[str, Any]:
    return service(resources={"limits": {"cpu": cpu, "memory": memory}})


def idle(**more: str) -> dict[str, Any]:
    return notebook(metadata={"idle-timeout-seconds": "3600", **more})


EXAMPLES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = {
    "GCP-NOTEBOOK-001": (
        NOTEBOOK,
        [],
        idle(**{"enable-guest-attributes": "true"}),
        idle(),
        "gceSetup.metadata.idle-timeout-seconds",
    ),
    "GCP-NOTEBOOK-002": (
        NOTEBOOK,
        [],
        {"location": "us-central1-a", "instanceOwners": ["ada@example.com"]},
        {"location": "us-central1-a", "instanceOwners": ["ada@example.com", "ben@example.com"]},
        "instanceOwners",
    ),
    "GCP-NOTEBOOK-003": (
        NOTEBOOK,
        [],
        notebook(
            bootDisk={
                "diskEncryption": "CMEK",
                "kmsKey": "projects/other/locations/l/keyRings/r/cryptoKeys/k",
            }
        ),
        notebook(bootDisk={"kmsKey": "projects/other/locations/l/keyRings/r/cryptoKeys/k"}),
        "gceSetup.bootDisk.diskEncryption",
    ),
    "GCP-RUN-001": (
        VISITOR,
        SERVICES,
        {**VISIT, "cloudRunServiceName": "proxied"},
        {**VISIT, "cloudRunServiceName": "open"},
        "cloudRunServiceName",
    ),
    "GCP-RUN-008": (
        SERVICE,
        [],
        service(envs=[{"name": "MODE", "value": "fast"}]),
        service(envs=[{"name": "PORT", "value": "8080"}]),
        "template.containers[0].envs[0].name",
    ),
    "GCP-RUN-009": (
        SERVICE,
        [],
        service(image="docker.io/library/nginx"),
        service(image="quay.io/team/web"),
        "template.containers[0].image",
    ),
    "GCP-RUN-010": (
        SERVICE,
        [],
        sized("2", "8Gi"),
        sized("1000m", "8Gi"),
        "template.containers[0].resources.limits.memory",
    ),
    "GCP-FUNCTION-001": (
        FUNCTION,
        [*BUILDERS, SOURCES],
        {**PLACE, "name": "f", "buildConfig": {"serviceAccount": BUILDER.format("builds")}},
        {**PLACE, "name": "f", "buildConfig": {"serviceAccount": BUILDER.format("reads-nothing")}},
        "buildConfig.serviceAccount",
    ),
    "GCP-FUNCTION-002": (
        FUNCTION,
        EVENTARC,
        {**PLACE, "name": "f", "eventTrigger": {"eventType": "e"}},
        {**PLACE, "name": "f", "project": "others", "eventTrigger": {"eventType": "e"}},
        "eventTrigger",
    ),
}
