"""Members and roles that IAM does not know at once.

Source: terraform-provider-google issues 21931 (a grant to an agent that was just created is refused) and
20571 (a build without the role that was just granted); IAM documentation, "Access change propagation"
(minutes; here less than a second).
"""

import time

from rehearsal.core.model import Record
from rehearsal.core.state import State

DELAY_S = 0.3
# Documents: key of a resource -> time of its creation.
_SINCE = "iam-since"


def begin(state: State, record: Record) -> None:
    """Remember the creation of an agent or a grant."""
    state.put_document(_SINCE, str(record.key), time.time())


def effective(state: State, record: Record) -> bool:
    """Return whether IAM knows an agent or applies a grant."""
    since = state.document(_SINCE, str(record.key))
    return since is None or time.time() - float(since) >= DELAY_S
