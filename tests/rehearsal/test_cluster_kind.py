"""The kind of Kubernetes of a home is chosen once, stored, and never mixed."""

from pathlib import Path

import pytest

from infra.errors import UserError
from rehearsal.cluster_kind import Choice, ClusterKind, ProviderKind, choose, chosen, real_cluster

NOTHING = {"aws": 0, "kubernetes": 0}


def test_a_home_is_emulated_by_default(tmp_path: Path) -> None:
    assert chosen(tmp_path) == Choice()
    assert not choose(tmp_path, None, None, NOTHING)
    assert choose(tmp_path, ClusterKind.REAL, None, NOTHING)
    assert real_cluster(tmp_path)
    assert not choose(tmp_path, None, None, {"aws": 3})


def test_kinds_are_not_mixed(tmp_path: Path) -> None:
    choose(tmp_path, ClusterKind.REAL, None, NOTHING)
    with pytest.raises(UserError) as caught:
        choose(tmp_path, ClusterKind.EMULATED, None, {"aws": 3, "kubernetes": 2})
    assert caught.value.codes == (("cluster-kind-has-resources", "--cluster"),)
    assert real_cluster(tmp_path)
    assert choose(tmp_path, ClusterKind.EMULATED, None, NOTHING)
    assert not real_cluster(tmp_path)


def test_the_real_provider_needs_a_real_control_plane(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        choose(tmp_path, None, ProviderKind.REAL, NOTHING)
    assert caught.value.codes == (("real-provider-needs-cluster", "--provider"),)
    assert choose(tmp_path, ClusterKind.REAL, ProviderKind.REAL, NOTHING)
    assert choose(tmp_path, ClusterKind.EMULATED, None, NOTHING)  # and the provider with it
    assert chosen(tmp_path) == Choice()
