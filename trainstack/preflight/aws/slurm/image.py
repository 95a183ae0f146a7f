"""The check of the machine image of all nodes: it exists in the region, fits their types, and has the agent.

Sources: AWS PCS User Guide, "Using PCS-ready DLAMI with AWS PCS" (names; Description with the versions of
agent and Slurm; no frameworks) and "Using sample AMIs with AWS PCS" (names); EC2 API Reference, error codes.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from infra.catalog.aws import facts
from infra.catalog.aws.pcs import IMAGES
from infra.stackspec.model import demanded
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

CHECK: Final = "image"
_ABSENT = ("InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIID.Unavailable")
_SAMPLES: Final = ("aws-pcs-sample_ami-", "aws-pcs-ready-")
_VERSIONS = re.compile(r"Slurm: ([0-9., -]+)")
_PATH = "on.pcs.image_id"


def usable(account: Account) -> Iterator[Answer]:
    """The image is available here, of the architecture of every node, and known to have agent and Slurm."""
    pcs = demanded(account.on.pcs)
    found = account.found("ec2", "describe_images", *_ABSENT, ImageIds=[pcs.image_id])
    newest = (
        f"aws ssm get-parameter --region {account.spec.region} --name {IMAGES} --query Parameter.Value "
        "--output text"
    )
    if found is None or not found["Images"]:
        text = f"{_PATH}: {pcs.image_id} does not exist in {account.spec.region}, or is not shared with it"
        yield Answer(CHECK, State.SHORT, text, f"{newest}\nWrite what it prints into {_PATH}.")
        return
    (image,) = found["Images"]
    wrong = [*_differences(account, image)]
    for text in wrong:
        fix = f"{newest}\nWrite what it prints into {_PATH}, or name an image of your own that fits."
        yield Answer(CHECK, State.SHORT, f"{_PATH}: {pcs.image_id} {text}", fix)
    if wrong:
        return
    name = str(image.get("Name", ""))
    of_service = image.get("ImageOwnerAlias") == "amazon" and name.startswith(_SAMPLES)
    if not of_service:
        text = f"{pcs.image_id} ({name or 'without a name'}) is none of the service: its agent is unknown"
        fix = (
            "Build it on an image of the service, or install agent and Slurm as its guide says: "
            "https://docs.aws.amazon.com/pcs/latest/userguide/working-with_ami_custom.html"
        )
        yield Answer(CHECK, State.NOTE, text, fix)
    elif account.spec.smoke.enabled and pcs.container is None:
        text = f"{pcs.image_id} ({name}) has no PyTorch, which the validation needs"
        fix = "Set on.pcs.container, or smoke.enabled: false for the first up (docs/how-to/slurm/aws.md)."
        yield Answer(CHECK, State.SHORT, text, fix)
    else:
        yield Answer(CHECK, State.READY, f"{pcs.image_id} ({name}) has the agent of AWS PCS")


def _differences(account: Account, image: Mapping[str, Any]) -> Iterator[str]:
    layout = account.slurm
    if image["State"] != "available":
        yield f"is {image['State']}"
    architecture = image["Architecture"]
    for path, machine in {
        "layout.login.machine": layout.login.machine,
        **{f"{path}.machine": pool.machine for path, pool in layout.by_path.items()},
    }.items():
        known = facts.instance_types.get(machine) or facts.cpu_type(machine)
        if known is not None and known.architecture != architecture:
            yield f"is for {architecture}, {path} ({machine}) for {known.architecture}"
    named = _VERSIONS.search(image.get("Description", ""))
    if named and not any(one.strip().startswith(f"{layout.slurm_version}.") for one in named[1].split(",")):
        yield f"has Slurm {named[1].strip(' .')}, not {layout.slurm_version}"
