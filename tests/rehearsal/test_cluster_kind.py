"""Which Kubernetes a home has is chosen once, remembered, and never mixed."""

from pathlib import Path

import pytest

from infra.errors import UserError
from rehearsal.cluster_kind import Choice, ClusterKind, ProviderKind, choose, chosen, real_cluster

NOTHING = {"aws": 0, "kubernetes": 0}


def test_a_home_is_emulated_unless_something_else_was_chosen(tmp_path: Path) -> None:
    assert chosen(tmp_path) == Choice()
    assert not choose(tmp_path, None, None, NOTHING)
    assert choose(tmp_path, ClusterKind.REAL, None, NOTHING)
    assert real_cluster(tmp_path)
    assert not choose(tmp_path, None, None, {"aws": 3})


def test_kinds_are_not_mixed(tmp_path: Path) -> None:
    choose(tmp_path, ClusterKind.REAL, None, NOTHING)
    with pytest.raises(UserError, match=r"holds 5 resources that were made with --cluster real"):
        choose(tmp_path, ClusterKind.EMULATED, None, {"aws": 3, "kubernetes": 2})
    assert real_cluster(tmp_path)
    assert choose(tmp_path, ClusterKind.EMULATED, None, NOTHING)
    assert not real_cluster(tmp_path)


def test_the_real_provider_needs_a_real_control_plane(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--cluster real"):
        choose(tmp_path, None, ProviderKind.REAL, NOTHING)
    assert choose(tmp_path, ClusterKind.REAL, ProviderKind.REAL, NOTHING)
    assert choose(tmp_path, ClusterKind.EMULATED, None, NOTHING)  # and the provider with it
    assert chosen(tmp_path) == Choice()
