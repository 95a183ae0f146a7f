"""Images of ECR repositories: a workload that starts from an image proves that it was pushed."""

import re

from rehearsal.core.state import State

_REPOSITORY = "aws:ecr/repository:Repository"
# Document space: repository URL -> the image that was started last.
_IMAGES = "ecr-image"
_URL = re.compile(r"(\d{12}\.dkr\.ecr\.[^/]+/[^:@]+)(?:[:@].*)?")


def pulled(state: State, image: object) -> None:
    """Record the image of a started workload, if it is in a repository of the rehearsal."""
    found = _URL.fullmatch(image) if isinstance(image, str) else None
    if found and any(one.outputs.get("repositoryUrl") == found[1] for one in state.find(type=_REPOSITORY)):
        state.put_document(_IMAGES, found[1], image)


def held(state: State, repository: str) -> str | None:
    """An image of a repository, by its URL; None if none is known."""
    image: str | None = state.document(_IMAGES, repository)
    return image


def forget(state: State, repository: str) -> None:
    """Drop the images of a deleted repository."""
    state.drop_document(_IMAGES, repository)
