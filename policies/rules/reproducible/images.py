"""Images of containers: which ones run, and who can exchange them."""

import fnmatch
from collections.abc import Iterator
from typing import Any

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.kubernetes.pods import KINDS, containers
from policies.stack import Stack

_ECR, _GOOGLE = "aws:ecr/repository:Repository", "gcp:artifactregistry/repository:Repository"
_SCANNING = "aws:ecr/registryScanningConfiguration:RegistryScanningConfiguration"
_DOCKER_HUB = "docker.io"


@CATALOGUE.rule_around(
    About(
        "MLS-REP-01",
        "critical",
        KINDS,
        "A tag can name other content tomorrow: a run cannot be repeated, and an intruder's image is run.",
        "Name the image as REGISTRY/NAME@sha256:DIGEST; keep copies of others in your own registry.",
        ("CKV_K8S_43", "CIS EKS 5.1.4", "CIS GKE 5.1.4"),
    )
)
def images_are_what_they_were(workload: Resource, stack: Stack) -> Iterator[Violation]:
    """Containers run images by digest, or by a version that the settings name, from approved registries."""
    found = False
    for path, container, _ in containers(workload):
        image = container.get("image")
        if not image:
            continue  # what patches or completes another template may leave it to that
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


@CATALOGUE.rule_around(
    About(
        "MLS-REP-02",
        "medium",
        (_ECR, _GOOGLE),
        "A tag that can be moved is no version; a flaw that nobody looks for stays.",
        "Set imageTagMutability to IMMUTABLE and scanOnPush; on Google Cloud dockerConfig.immutableTags.",
        ("CKV_AWS_51", "CKV_AWS_163", "FSBP ECR.1"),
    )
)
def tags_stay_and_images_are_scanned(repository: Resource, stack: Stack) -> Iterator[Violation]:
    """Tags of images cannot be moved, and images are scanned for known flaws."""
    if repository.kind == _ECR:
        yield from _ecr(repository, stack)
    else:
        yield from _google(repository)


def _ecr(repository: Resource, stack: Stack) -> Iterator[Violation]:
    props = repository.props
    # Immutable but for tags that a filter names (`latest`) is immutable here. The default is MUTABLE.
    mutable = str(props.get("imageTagMutability") or "MUTABLE")
    if not mutable.startswith("IMMUTABLE"):
        yield Violation(f"tags are {mutable}", "imageTagMutability")
    scanned = (props.get("imageScanningConfiguration") or {}).get("scanOnPush") is True
    if not scanned and not _scanned_by_registry(props.get("name"), stack):
        yield Violation("images are not scanned", "imageScanningConfiguration.scanOnPush")


def _scanned_by_registry(name: Any, stack: Stack) -> bool:
    """Whether a rule of the registry scans a repository; its filters are names with `*` (ECR User Guide)."""
    filters = [
        one.get("filter")
        for scanning in stack.all(_SCANNING)
        for _, rule in scanning.items("rules")
        if rule.get("scanFrequency") in ("SCAN_ON_PUSH", "CONTINUOUS_SCAN")
        for one in rule.get("repositoryFilters") or ()
    ]
    # A filter without `*` names every repository that contains it.
    return any(fnmatch.fnmatchcase(str(name), one if "*" in one else f"*{one}*") for one in filters if one)


def _google(repository: Resource) -> Iterator[Violation]:
    props = repository.props
    if str(props.get("format")).upper() != "DOCKER" or props.get("mode") not in (None, "STANDARD_REPOSITORY"):
        raise NotApplicableError("nobody pushes images to it")
    if (props.get("dockerConfig") or {}).get("immutableTags") is not True:
        yield Violation("tags can be moved", "dockerConfig.immutableTags")
    # Without a word, the setting of the project counts (vulnerabilityScanningConfig: INHERITED).
    if (props.get("vulnerabilityScanningConfig") or {}).get("enablementConfig") == "DISABLED":
        yield Violation("images are not scanned", "vulnerabilityScanningConfig.enablementConfig")
