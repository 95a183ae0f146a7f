"""Notebooks of Workbench, functions, and services of Cloud Run behind Identity-Aware Proxy."""

import re
from collections.abc import Iterator
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.gcp import service_agents
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items
from rehearsal.gcp.rules.keys import OF_PROJECTS, members

_NOTEBOOK = "gcp:workbench/instance:Instance"
_FUNCTION = "gcp:cloudfunctionsv2/function:Function"
_VISITOR = "gcp:iap/webCloudRunServiceIamMember:WebCloudRunServiceIamMember"
_SERVICE = "gcp:cloudrunv2/service:Service"
_CPU_DOCS = "Cloud Run documentation, Configure CPU limits for services (CPU and memory table)"
# Cloud Run takes images of these hosts, and of Docker Hub without a host.
_HOSTS = re.compile(r"(.+[.-])?(gcr\.io|pkg\.dev)|(.+\.)?docker\.io")
# CPUs of an instance -> least and most memory in GiB. Source: _CPU_DOCS.
_MEMORY = {1: (0, 4), 2: (0, 8), 4: (2, 16), 6: (4, 24), 8: (4, 32)}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|Ki|Mi|Gi|k|M|G)?")
_UNITS = {None: 1.0, "m": 1e-3, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "k": 1e3, "M": 1e6, "G": 1e9}
_IDLE, _GUEST = "idle-timeout-seconds", "enable-guest-attributes"


@BOOK.rule_around(
    "GCP-NOTEBOOK-001",
    _NOTEBOOK,
    source="Vertex AI Workbench documentation, Idle shutdown (guest attributes have to be on)",
    advice=True,
)
def _idle(inputs: Properties, _: ProjectView) -> Iterator[Violation]:
    """An instance that is to go off when it is idle has guest attributes."""
    metadata = block(inputs.get("gceSetup"), "metadata")
    timeout, guest = metadata.get(_IDLE), metadata.get(_GUEST)
    if timeout in (None, "", UNKNOWN) or guest == UNKNOWN:
        return
    if str(guest).lower() != "true":
        yield Violation(
            f"gceSetup.metadata.{_IDLE}",
            f"the instance never finds itself idle without {_GUEST}",
            f'Set gceSetup.metadata["{_GUEST}"] to "true".',
        )


@BOOK.rule(
    "GCP-NOTEBOOK-003",
    _NOTEBOOK,
    source="pulumi-gcp 10.2.0, workbench.Instance (kms_key: only applicable if disk_encryption is CMEK)",
)
def _encryption(inputs: Properties) -> Iterator[Violation]:
    """A disk has a customer's key if and only if its encryption is CMEK."""
    setup = block(inputs.get("gceSetup"))
    for name in ("bootDisk", "dataDisks"):
        disk = block(setup.get(name))
        key, kind = disk.get("kmsKey"), disk.get("diskEncryption", "GMEK")
        if UNKNOWN in (key, kind):
            continue
        if (kind == "CMEK") != bool(key):
            problem = "names no key" if kind == "CMEK" else "names a key, and is encrypted with Google's"
            yield Violation(f"gceSetup.{name}.diskEncryption", f"the disk {problem}")


@BOOK.rule_around(
    "GCP-RUN-001",
    _VISITOR,
    source="Cloud Run documentation, Configure Identity-Aware Proxy (access is of services that have it)",
    advice=True,
)
def _proxied(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Rights to pass Identity-Aware Proxy need a service that has it."""
    service = world.find(inputs.get("cloudRunServiceName"), "cloudrunv2/service:Service")
    if service is not None and service.inputs and service.inputs.get("iapEnabled") is not True:
        yield Violation(
            "cloudRunServiceName",
            f"{service.id} has no Identity-Aware Proxy, so the right has no effect",
            "Set iapEnabled of the service.",
        )


@BOOK.rule_around(
    "GCP-FUNCTION-001",
    _FUNCTION,
    source="hashicorp/terraform-provider-google issue 20571 (text); resource_cloudfunctions2_function.go "
    "(the source is returned as gcf-v2-sources-<project number>-<location>)",
)
def _built(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A build reads the service's copy of the source: its account reads gcf-v2-sources-<number>-<region>."""
    account = block(inputs.get("buildConfig")).get("serviceAccount")
    if world.preview or not isinstance(account, str):
        return
    builder = account.rpartition("/")[2]
    bucket = f"gcf-v2-sources-{world.number}-{world.places.get('location')}"
    archive = f"{inputs.get('name')}/function-source.zip"
    copy, member = f"projects/_/buckets/{bucket}/objects/{archive}", f"serviceAccount:{builder}"
    grants = [one for one in world.all("projects/iAMMember:IAMMember") if one.inputs.get("member") == member]
    late = not all(world.effective(one) for one in grants)
    if late or not world.allows(member, "storage.objects.get", copy):
        yield Violation(
            "buildConfig.serviceAccount",
            "Error waiting to create function: Error waiting for Creating function: Error code 13, message: "
            "Build failed with status: FAILURE and message: failed to Fetch: failed to download archive "
            f"gs://{bucket}/{archive}: Access to bucket {bucket} denied. You must grant Storage Object "
            f"Viewer permission to {builder}.",
            "Grant roles/storage.objectViewer on the project, limited to that bucket by a condition, minutes "
            "before the function.",
            "internal",
        )


@BOOK.rule_around(
    "GCP-FUNCTION-002",
    _FUNCTION,
    source="hashicorp/terraform-provider-google issues 25294 (text) and 14584; pulumi/pulumi-gcp issue 1290 "
    "(the agent does not come with the API)",
)
def _triggered(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A trigger needs Eventarc's agent, which has had its role for a time."""
    if world.preview or not inputs.get("eventTrigger"):
        return
    email = service_agents.email("eventarc.googleapis.com", world.number)
    role, member = "roles/eventarc.serviceAgent", f"serviceAccount:{email}"
    grants = [one for token in OF_PROJECTS for one in world.all(token) if one.inputs.get("role") == role]
    if not any(member in members(one.inputs) and world.effective(one) for one in grants):
        yield Violation(
            "eventTrigger",
            "Error creating function: googleapi: Error 400: Validation failed for trigger of "
            f"{inputs.get('name')}: Permission denied while using the Eventarc Service Agent. If you "
            "recently started to use Eventarc, it may take a few minutes before all necessary permissions "
            "are propagated to the Service Agent. Otherwise, verify that it has Eventarc Service Agent role.",
            f"Give Eventarc's projects.ServiceIdentity {role}, minutes before.",
            "failedPrecondition",
        )


def _containers(inputs: Properties) -> list[tuple[str, dict[str, Any]]]:
    """The containers of a service, each with its path."""
    listed = items(block(inputs.get("template")).get("containers"))
    return [(f"template.containers[{index}]", block(one)) for index, one in enumerate(listed)]


@BOOK.rule("GCP-RUN-008", _SERVICE, source="hashicorp/terraform-provider-google issue 26877 (text)")
def _port(inputs: Properties) -> Iterator[Violation]:
    """Cloud Run itself sets PORT in the container that receives requests."""
    found = _containers(inputs)
    for path, one in found:
        for index, variable in enumerate(
            items(one.get("envs")) if one.get("ports") or len(found) == 1 else []
        ):
            if block(variable).get("name") == "PORT":
                yield Violation(
                    f"{path}.envs[{index}].name",
                    "The following reserved env names were provided: PORT. These values are automatically "
                    "set by the system",
                    "Leave it out, and give the port as ports.containerPort.",
                    "badRequest",
                )


@BOOK.rule(
    "GCP-RUN-009",
    _SERVICE,
    source="hashicorp/terraform-provider-google issue 14700, ko-build/terraform-provider-ko issue 205 (text)",
)
def _image_host(inputs: Properties) -> Iterator[Violation]:
    """Cloud Run takes images of Artifact Registry, Container Registry and Docker Hub."""
    for path, one in _containers(inputs):
        image = one.get("image")
        host = image.partition("/")[0] if isinstance(image, str) and "/" in image else ""
        if ("." in host or ":" in host) and not _HOSTS.fullmatch(host):
            yield Violation(
                f"{path}.image",
                "Expected an image path like [host/]repo-path[:tag and/or @digest], where host is one of "
                f"[region.]gcr.io, [region-]docker.pkg.dev or docker.io but obtained {image}",
                "Copy the image to Artifact Registry, or give it a remote repository there.",
                "badRequest",
            )


@BOOK.rule("GCP-RUN-010", _SERVICE, source=f"{_CPU_DOCS}; googleapis/repo-automation-bots issue 3875 (text)")
def _sizes(inputs: Properties) -> Iterator[Violation]:
    """An instance has up to 1, or 2, 4, 6 or 8 CPUs, and memory in the range of its CPUs."""
    found = _containers(inputs)
    if len(found) != 1 or block(inputs.get("template")).get("nodeSelector") is not None:
        return  # An instance with sidecars has the sum of them, one with a GPU other sizes.
    path, limits = f"{found[0][0]}.resources.limits", block(found[0][1].get("resources"), "limits")
    cpus, memory = _quantity(limits.get("cpu", "1")), _quantity(limits.get("memory"))
    if cpus is None or any(name not in ("cpu", "memory") for name in limits):
        return
    if cpus > 1 and cpus not in _MEMORY:
        yield Violation(
            f"{path}.cpu", "Invalid value specified for cpu", "Use 1, 2, 4, 6 or 8.", "badRequest"
        )
        return
    least, most = _MEMORY[max(1, int(cpus))]
    if memory is not None and not least * 2**30 <= memory <= most * 2**30:
        yield Violation(
            f"{path}.memory",
            f"Invalid value specified for memory. For {cpus:.1f} CPU, memory must be between "
            f"{f'{least}Gi' if least else '128Mi'} and {most}Gi inclusive.",
            "Change the memory or limits.cpu.",
            "badRequest",
        )


def _quantity(value: object) -> float | None:
    form = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return float(form[1]) * _UNITS[form[2]] if form else None
