"""The checks of the cluster's name and of its log group, and of clusters that others create.

Sources: AWS PCS User Guide, "Endpoints and service quotas" (one cluster in creation in a Region; ten groups
and queues of a cluster) and "slurm-versions" (suspended clusters count); botocore 1.44.5 pcs/2023-02-10.
"""

from collections.abc import Iterator
from typing import Final

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import STACK_TAG, Account

CHECK: Final = "slurm-cluster"
_GROUPS: Final = 10


def possible(account: Account) -> Iterator[Answer]:
    """No other cluster has the stack's name, none is in creation, and groups are as few as one can have."""
    own, found = account.spec.name, [*account.pages("pcs", "list_clusters", "clusters")]
    problems = False
    groups = len(account.slurm.pools) + 1
    if groups > _GROUPS:
        problems = True
        text = f"pools and the login node are {groups} groups, a cluster has at most {_GROUPS}"
        yield Answer(CHECK, State.SHORT, text, "Use fewer pools, or two stacks: this limit is never raised.")
    for row in found:
        if row["name"] == own and not _is_own(account, row["arn"]):
            problems = True
            text = f"another cluster has the name {own}: {row['id']}, {row['status'].lower()}"
            delete = f"aws pcs delete-cluster --cluster-identifier {row['id']}"
            fix = f"Rename the stack, or delete that cluster: {delete}"
            yield Answer(CHECK, State.SHORT, text, fix)
        elif row["status"] == "CREATING":
            problems = True
            text = f"the cluster {row['name']} is in creation: a Region creates one at a time"
            yield Answer(CHECK, State.SHORT, text, "Wait until it is active.")
    if not problems:
        yield Answer(
            CHECK, State.READY, f"the name {own} is free or the stack's, and no cluster is in creation"
        )


def _is_own(account: Account, arn: str) -> bool:
    tags = account.client("pcs").list_tags_for_resource(resourceArn=arn).get("tags", {})
    return bool(tags.get(STACK_TAG) == account.spec.name)


def leftovers(account: Account) -> Iterator[Answer]:
    """The log group of the scheduler does not exist, or belongs to the stack."""
    name = f"/aws/vendedlogs/pcs/{account.spec.name}"
    yield account.foreign_log_group("leftovers", name, "an earlier cluster")
