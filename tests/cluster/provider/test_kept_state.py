"""What an engine keeps of creates and updates that fail: the real provider, as the emulated one has to do."""

from pathlib import Path

from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.provider.real import needs_provider, stacks
from tests.rehearsal.kubernetes import kept_state
from tests.rehearsal.kubernetes.kept_state import Kept


@needs_provider
def test_what_is_kept_of_creates_and_updates_that_fail(plane: ControlPlane, tmp_path: Path) -> None:
    kept = Kept(stacks(tmp_path / "state"), plane.kubeconfig.read_text())
    try:
        kept_state.a_create_that_is_not_ready(kept)
        kept_state.an_update_that_is_refused(kept)
        kept_state.an_update_that_is_not_ready(kept)
    finally:
        kept.destroy()
