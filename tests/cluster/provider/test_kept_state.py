"""State that an engine keeps after failed creates and updates, with the real provider."""

from pathlib import Path

from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.provider.real import needs_provider, stacks
from tests.rehearsal.kubernetes import kept_state
from tests.rehearsal.kubernetes.kept_state import Kept


@needs_provider
def test_state_after_failed_creates_and_updates(plane: ControlPlane, tmp_path: Path) -> None:
    kept = Kept(stacks(tmp_path / "state"), plane.kubeconfig.read_text())
    try:
        kept_state.a_create_that_is_not_ready(kept)
        kept_state.an_update_that_is_refused(kept)
        kept_state.an_update_that_is_not_ready(kept)
    finally:
        kept.destroy()
