"""Names and tags of a stack, its resources and its teams on every cloud."""

import hashlib
import re
from collections.abc import Mapping

# The tags every taggable resource of a stack carries; cost reports and the policy pack rely on them.
TAG_PREFIX = "trainstack"
LOGIN_TAG = (f"{TAG_PREFIX}:node", "login")
"""Tag of the login node of a Slurm system, beside that of the stack."""
# Prefix of the groups of teams in the API server.
GROUP_PREFIX = f"{TAG_PREFIX}:team:"
MANAGER_GROUP = f"{TAG_PREFIX}:manager"
"""Group of the manager of several clusters in the API server of a worker."""
# Names of queues and flavors are also label values, of at most 63 characters.
_QUEUE_NAME_LENGTH = 40
_POOL_QUEUE_LENGTH = 63 - len("team---") - _QUEUE_NAME_LENGTH


def sanitize(text: str, *, max_length: int = 63) -> str:
    """Turn `text` into a DNS-1123 label: lower case, digits and dashes, at most `max_length` characters.

    A name that is too long keeps its start and ends in a digest of the whole, so that two long names which
    differ only at the end stay different. Raises ValueError when nothing usable is left.
    """
    label = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not label:
        raise ValueError(f"{text!r} holds no letter or digit")
    if len(label) <= max_length:
        return label
    digest = hashlib.sha256(label.encode()).hexdigest()[:7]
    return f"{label[: max_length - 8].rstrip('-')}-{digest}"


def team_namespace(team: str) -> str:
    """The Kubernetes namespace and queue of a team. Raises ValueError as `sanitize` does."""
    return f"team-{sanitize(team, max_length=_QUEUE_NAME_LENGTH)}"


def team_group(team: str) -> str:
    """The group of a team's members, as the API server sees it. Raises ValueError as `sanitize` does."""
    return f"{GROUP_PREFIX}{sanitize(team, max_length=_QUEUE_NAME_LENGTH)}"


def team_folder(team: str) -> str:
    """The folder of a team's data, in every bucket and file system. Raises ValueError as `sanitize` does."""
    return sanitize(team, max_length=_QUEUE_NAME_LENGTH)


def flavor_name(pool: str) -> str:
    """The ResourceFlavor of a pool. Raises ValueError as `sanitize` does."""
    return sanitize(pool, max_length=_QUEUE_NAME_LENGTH)


def gate_queue(pool: str) -> str:
    """The queue of the validation of a pool. Raises ValueError as `sanitize` does.

    Two dashes keep it different from the queue of scheduled validations.
    """
    return f"smoke--{flavor_name(pool)}"


def pool_queue(team: str, pool: str) -> str:
    """The queue of a team for one pool alone. Raises ValueError as `sanitize` does.

    No other name has two dashes, so it never equals the queue of a team. At most 63 characters: Kueue labels
    pods with it.
    """
    return f"{team_namespace(team)}--{sanitize(pool, max_length=_POOL_QUEUE_LENGTH)}"


def cluster_stack(stack: str, cluster: str) -> str:
    """The Pulumi stack of a cluster of a large stack."""
    return f"{stack}-{cluster}"


def cluster_pool(cluster: str, pool: str) -> str:
    """Full name of a pool of a cluster of a large stack."""
    return f"{cluster}-{pool}"


def dispatcher_role(stack: str) -> str:
    """Role of the dispatcher of a large stack, which its clusters trust before it exists."""
    return f"{stack}-dispatcher"


def login_role(stack: str) -> str:
    """Role of a cluster as which the dispatcher of its manager logs in."""
    return f"{stack}-manager"


def lasting_tags(stack: str) -> dict[str, str]:
    """Tags of every resource of a stack that never change."""
    return {f"{TAG_PREFIX}:stack": stack}


def large_tags(manager: str) -> dict[str, str]:
    """Tags of every resource of a manager and its clusters, for clouds whose budgets take one tag."""
    return {f"{TAG_PREFIX}:large": manager}


def changing_tags(
    *,
    profile: str,
    owner: str,
    cost_center: str,
    environment: str,
    data_class: str,
    expires_on: str,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """Tags of every resource of a stack that may change; `extra` adds keys but changes no other tag."""
    added = {key: value for key, value in extra.items() if not key.startswith(f"{TAG_PREFIX}:")}
    return {
        **added,
        f"{TAG_PREFIX}:profile": profile,  # a stack may grow
        "owner": owner,
        "cost-center": cost_center,
        "environment": environment,
        "data-class": data_class,
        "expires-on": expires_on,
    }


def gcp_labels(tags: Mapping[str, str]) -> dict[str, str]:
    """Tags as labels of Google Cloud: lower case, digits, `_` and `-`, at most 63 characters each.

    `trainstack:stack` becomes `trainstack-stack`, `ml@example.com` becomes `ml_at_example_com`. Source:
    Resource Manager documentation, "Requirements for labels". Raises ValueError for a key without a letter.
    """
    return {_label_key(key): _label_value(value) for key, value in tags.items()}


def _label_key(key: str) -> str:
    found = re.sub(r"[^a-z0-9_-]", "-", key.lower()).lstrip("-_0123456789")
    if not found:
        raise ValueError(f"{key!r} holds no letter")
    return found[:63]


def _label_value(value: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "_", value.lower().replace("@", "_at_"))[:63]
