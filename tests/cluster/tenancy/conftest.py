"""The scene of an attacker with a member's rights, where admission policies deny and where they warn."""

from collections.abc import Iterator

import pytest

from policies.admission.manifests import Action
from rehearsal.controlplane.api import KubernetesApi
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.tenancy.scene import Scene, scene

ACTIONS: dict[str, tuple[Action, ...]] = {"deny": ("Deny",), "warn": ("Warn", "Audit")}


@pytest.fixture(scope="module", params=list(ACTIONS))
def stand(plane: ControlPlane, api: KubernetesApi, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A cluster of the environment, with two teams."""
    with scene(plane, api, ACTIONS[request.param]) as made:
        yield made
