"""What an engine keeps of creates and updates that fail; tests/cluster/provider asks the real provider."""

from rehearsal.client import Rehearsal
from tests.rehearsal.kubernetes import kept_state
from tests.rehearsal.kubernetes.kept_state import Kept, Select


def test_what_is_kept_of_creates_and_updates_that_fail(rehearsal: Rehearsal, stack: Select) -> None:
    kept = Kept(stack, rehearsal.kubeconfig().read_text())
    kept_state.a_create_that_is_not_ready(kept)
    kept_state.an_update_that_is_refused(kept)
    kept_state.an_update_that_is_not_ready(kept)
