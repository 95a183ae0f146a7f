"""Repositories with images. Nothing pushes images here; a workload that starts from one proves it exists.

Source: Amazon ECR API Reference, DeleteRepository; moto 5.2.5 moto/ecr/exceptions.py (messages);
hashicorp/terraform-provider-aws internal/service/ecr/repository.go (force_delete); AWS Lambda Developer
Guide, images-create (the image of a function must be there when it is created).
"""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Record, RefusalError
from rehearsal.dataplane.aws import images


def _deleting(site: Site, repository: Record) -> None:
    url = str(repository.outputs.get("repositoryUrl"))
    image = images.held(site.state, url)
    if image and not repository.outputs.get("forceDelete"):
        raise RefusalError(
            "RepositoryNotEmptyException",
            f"The repository with name '{repository.id}' in registry with id '{site.account}' "
            "cannot be deleted because it still contains images",
            f"{image} was started. Set forceDelete to true and run up before destroy, or delete the images.",
        )
    images.forget(site.state, url)


def _started(site: Site, function: Record) -> None:
    images.pulled(site.state, function.inputs.get("imageUri"))


HOOKS: Mapping[str, Hooks[Site]] = {
    "ecr/repository:Repository": Hooks(deleting=_deleting),
    "lambda/function:Function": Hooks(created=_started, changed=_started),
}
