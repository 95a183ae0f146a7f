"""The rules REP on what is configured in other ways than in their examples."""

from typing import Any

import pytest

from policies.rules.reproducible.images import registry_of
from tests.policies.rules.judging import judged, made

ECR, GOOGLE = "aws:ecr/repository:Repository", "gcp:artifactregistry/repository:Repository"
SCANNING = "aws:ecr/registryScanningConfiguration:RegistryScanningConfiguration"
DIGEST = "@sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("python:3.12", "docker.io"),
        ("mlflow/mlflow", "docker.io"),
        ("localhost/x", "localhost"),
        ("registry:5000/x", "registry:5000"),
        ("nvcr.io/nvidia/pytorch:26.01", "nvcr.io"),
    ],
)
def test_the_registry_of_an_image(image: str, registry: str) -> None:
    assert registry_of(image) == registry


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (f"1234.dkr.ecr.eu-west-1.amazonaws.com/x{DIGEST}", "pass"),
        (f"europe-west4-docker.pkg.dev/p/r/x:1{DIGEST}", "pass"),
        (f"python{DIGEST}", "fail spec.containers[0].image"),
        (f"ghcr.io.example.com/x{DIGEST}", "fail spec.containers[0].image"),
        ("ghcr.io/x:1", "fail spec.containers[0].image"),
        (None, "not-applicable"),
    ],
)
def test_images_of_pods(image: Any, said: str) -> None:
    pod = made("kubernetes:core/v1:Pod", spec={"containers": [{"name": "a", "image": image}]})
    assert judged("MLS-REP-01", pod) == {"it": said}


def test_a_team_has_its_own_registries() -> None:
    spec = {"initContainers": [{"image": f"ghcr.io/x{DIGEST}"}], "containers": []}
    said = judged("MLS-REP-01", made("kubernetes:core/v1:Pod", spec=spec), approved_registries=("own.io",))
    assert said == {"it": "fail spec.initContainers[0].image"}


FIXED = {"name": "team/train", "imageTagMutability": "IMMUTABLE_WITH_EXCLUSION"}


@pytest.mark.parametrize(
    ("frequency", "pattern", "said"),
    [
        ("CONTINUOUS_SCAN", "*", "pass"),
        ("SCAN_ON_PUSH", "team", "pass"),
        ("SCAN_ON_PUSH", "other/*", "fail imageScanningConfiguration.scanOnPush"),
        ("MANUAL", "*", "fail imageScanningConfiguration.scanOnPush"),
    ],
)
def test_the_registry_can_scan_for_its_repositories(frequency: str, pattern: str, said: str) -> None:
    rules = [{"scanFrequency": frequency, "repositoryFilters": [{"filter": pattern}]}]
    assert judged("MLS-REP-02", made(ECR, **FIXED), made(SCANNING, "all", rules=rules)) == {"it": said}


def test_no_word_is_the_default_of_the_service() -> None:
    scanned = {"imageScanningConfiguration": {"scanOnPush": True}}
    assert judged("MLS-REP-02", made(ECR, name="x", **scanned)) == {"it": "fail imageTagMutability"}
    assert judged("MLS-REP-02", made(GOOGLE, format="DOCKER")) == {"it": "fail dockerConfig.immutableTags"}
    assert judged("MLS-REP-02", made(GOOGLE, format="PYTHON")) == {"it": "not-applicable"}
    remote = made(GOOGLE, format="DOCKER", mode="REMOTE_REPOSITORY")
    assert judged("MLS-REP-02", remote) == {"it": "not-applicable"}
