"""Members and roles that IAM, or a new database instance, does not know at once.

Source: terraform-provider-google issues 21931 and 9969 (a grant to an agent that was just created is
refused), 20571 (a build without the role that was just granted) and 25294 (a trigger of an agent that has
just got its role); IAM documentation, "Access change propagation" (minutes; here less than a second).
"""

import time

from rehearsal.core.state import State

DELAY_S = 0.3
# Documents: key of a resource, or address of an agent -> time of its creation.
_SINCE = "iam-since"


def begin(state: State, key: str, *, again: bool = True) -> None:
    """Remember the creation of an agent, a grant or an instance; without `again`, its first one."""
    if again or state.document(_SINCE, key) is None:
        state.put_document(_SINCE, key, time.time())


def effective(state: State, key: str) -> bool:
    """Return whether IAM knows an agent or applies a grant, or an instance has the role of its users."""
    since = state.document(_SINCE, key)
    return since is None or time.time() - float(since) >= DELAY_S
