"""Which repositories of ECR hold images: what was started from one was pushed there before."""

import re

from rehearsal.core.state import State

_REPOSITORY = "aws:ecr/repository:Repository"
# Repository URL -> the image that was last started: document space.
_IMAGES = "ecr-image"
_URL = re.compile(r"(\d{12}\.dkr\.ecr\.[^/]+/[^:@]+)(?:[:@].*)?")


def pulled(state: State, image: object) -> None:
    """Note that something was started from an image; only those in repositories of the rehearsal are kept."""
    found = _URL.fullmatch(image) if isinstance(image, str) else None
    if found and any(one.outputs.get("repositoryUrl") == found[1] for one in state.find(type=_REPOSITORY)):
        state.put_document(_IMAGES, found[1], image)


def held(state: State, repository: str) -> str | None:
    """An image that a repository holds, by the URL of the repository; None where none is known."""
    image: str | None = state.document(_IMAGES, repository)
    return image


def forget(state: State, repository: str) -> None:
    """Forget the images of a repository that is deleted."""
    state.drop_document(_IMAGES, repository)
