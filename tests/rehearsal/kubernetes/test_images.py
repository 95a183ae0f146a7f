"""Images that pods were started from lie in their repositories."""

from rehearsal.dataplane.aws import images
from tests.rehearsal.kubernetes.harness import JOB, Rehearsed, job, script_pod

REGISTRY = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"


def test_a_repository_holds_what_a_pod_was_started_from(rehearsed: Rehearsed) -> None:
    url = f"{REGISTRY}/apps/train"
    rehearsed.aws("aws:ecr/repository:Repository", "apps/train", {}, {"repositoryUrl": url})
    rehearsed.namespace()
    rehearsed.config_map("job", {"main.py": "print('done')"})
    for name, image in (
        ("mine", f"{url}:1"),
        ("other", f"{REGISTRY}/elsewhere:1"),
        ("public", "python:3.11"),
    ):
        rehearsed.create(JOB, job(name, script_pod(container={"image": image})), name)
    assert images.held(rehearsed.state, url) == f"{url}:1"
    assert images.held(rehearsed.state, f"{REGISTRY}/elsewhere") is None
