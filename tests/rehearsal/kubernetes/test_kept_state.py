"""State that an engine keeps after failed creates and updates; tests/cluster/provider does it with the
provider.
"""

from rehearsal.client import Rehearsal
from tests.rehearsal.kubernetes import kept_state
from tests.rehearsal.kubernetes.kept_state import Kept, Select


def test_state_after_failed_creates_and_updates(rehearsal: Rehearsal, stack: Select) -> None:
    kept = Kept(stack, rehearsal.kubeconfig().read_text())
    kept_state.a_create_that_is_not_ready(kept)
    kept_state.an_update_that_is_refused(kept)
    kept_state.an_update_that_is_not_ready(kept)
