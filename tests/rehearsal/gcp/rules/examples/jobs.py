"""For every rule about notebooks, services behind a proxy and custom roles: what is accepted and refused."""

from typing import Any

NOTEBOOK, SERVICE = "workbench/instance:Instance", "cloudrunv2/service:Service"
ROLE, VISITOR = (
    "projects/iAMCustomRole:IAMCustomRole",
    "iap/webCloudRunServiceIamMember:WebCloudRunServiceIamMember",
)
PLACE = {"location": "us-central1"}
VISIT = {**PLACE, "role": "roles/iap.httpsResourceAccessor", "member": "user:ada@example.com"}
SERVICES = [
    (SERVICE, name, {**PLACE, "name": name, "iapEnabled": on, "template": {"containers": [{"image": "i"}]}})
    for name, on in (("proxied", True), ("open", False))
]


def notebook(**setup: Any) -> dict[str, Any]:
    return {"location": "us-central1-a", "gceSetup": setup}


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
}
