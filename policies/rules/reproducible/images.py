"""Container images: digests, registries, and mutable tags."""

import fnmatch
from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.kubernetes.pods import KINDS, containers
from policies.stack import Stack

_ECR, _GOOGLE = "aws:ecr/repository:Repository", "gcp:artifactregistry/repository:Repository"
_SCANNING = "aws:ecr/registryScanningConfiguration:RegistryScanningConfiguration"
_DOCKER_HUB = "docker.io"


@CATALOG.rule_around(
    "MLS-REP-01",
    "critical",
    KINDS,
    "A tag can name other content tomorrow: a run cannot be repeated, and an attacker's image is run.",
    "Name the image as REGISTRY/NAME@sha256:DIGEST; keep copies of others in your own registry.",
    ("CKV_K8S_43", "CIS EKS 5.1.4", "CIS GKE 5.1.4"),
)
def images_are_pinned(workload: Resource, stack: Stack) -> Iterator[Violation]:
    """Containers run images by digest, or by a version that the settings name, from approved registries."""
    found = False
    for path, container, _ in containers(workload):
        image = container.get("image")
        if not image:
            continue  # a template that patches another one may omit it
        found = True
        if "@sha256:" not in image and image not in stack.settings.images_by_version:
            yield Violation(f"{image} is not named by its digest", f"{path}.image")
        registry = registry_of(image)
        if not any(fnmatch.fnmatchcase(registry, one) for one in stack.settings.approved_registries):
            yield Violation(f"{image} is from {registry}, which is not approved", f"{path}.image")
    if not found:
        raise NotApplicableError("it names no image")


def registry_of(image: str) -> str:
    """The host of an image. Without one it is Docker Hub (distribution/reference, normalize.go)."""
    host, slash, _ = image.partition("/")
    return host if slash and ("." in host or ":" in host or host == "localhost") else _DOCKER_HUB


@CATALOG.rule_around(
    "MLS-REP-02",
    "medium",
    (_ECR, _GOOGLE),
    "A mutable tag is no version; vulnerabilities are only found by scans.",
    "Set imageTagMutability to IMMUTABLE and scanOnPush; on Google Cloud dockerConfig.immutableTags.",
    ("CKV_AWS_51", "CKV_AWS_163", "FSBP ECR.1"),
)
def tags_stay_and_images_are_scanned(repository: Resource, stack: Stack) -> Iterator[Violation]:
    """Image tags are immutable, and images are scanned for known vulnerabilities."""
    if repository.kind == _ECR:
        yield from _ecr(repository, stack)
    else:
        yield from _google(repository)


def _ecr(repository: Resource, stack: Stack) -> Iterator[Violation]:
    props = repository.props
    # Immutable except for tags of a filter (`latest`) counts as immutable. The default is MUTABLE.
    mutable = str(props.get("imageTagMutability") or "MUTABLE")
    if not mutable.startswith("IMMUTABLE"):
        yield Violation(f"tags are {mutable}", "imageTagMutability")
    scanned = (props.get("imageScanningConfiguration") or {}).get("scanOnPush") is True
    if not scanned and not _scanned_by_registry(props.get("name"), stack):
        yield Violation("images are not scanned", "imageScanningConfiguration.scanOnPush")


def _scanned_by_registry(name: Any, stack: Stack) -> bool:
    """Return whether a rule of the registry scans a repository; filters may have `*` (ECR User Guide)."""
    filters = [
        one.get("filter")
        for scanning in stack.all(_SCANNING)
        for _, rule in scanning.items("rules")
        if rule.get("scanFrequency") in ("SCAN_ON_PUSH", "CONTINUOUS_SCAN")
        for one in rule.get("repositoryFilters") or ()
    ]
    # A filter without `*` matches every repository that contains it.
    return any(fnmatch.fnmatchcase(str(name), one if "*" in one else f"*{one}*") for one in filters if one)


def _google(repository: Resource) -> Iterator[Violation]:
    props = repository.props
    if str(props.get("format")).upper() != "DOCKER" or props.get("mode") not in (None, "STANDARD_REPOSITORY"):
        raise NotApplicableError("images are not pushed to it")
    if (props.get("dockerConfig") or {}).get("immutableTags") is not True:
        yield Violation("tags are mutable", "dockerConfig.immutableTags")
    # Unset, the setting of the project counts (vulnerabilityScanningConfig: INHERITED).
    if (props.get("vulnerabilityScanningConfig") or {}).get("enablementConfig") == "DISABLED":
        yield Violation("images are not scanned", "vulnerabilityScanningConfig.enablementConfig")
