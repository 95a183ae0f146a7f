"""Provider settings whose change replaces all resources."""

import json
from typing import Any

import pytest

from rehearsal.core.model import UNKNOWN
from rehearsal.kubernetes.settings import replacing


def config(server: str, authority: str = "YQ==", user: str = "u") -> str:
    cluster = {"server": server, "certificate-authority-data": authority}
    return json.dumps(
        {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": user}}],
            "current-context": "c",
        }
    )


OLD = {"kubeconfig": config("https://1.2.3.4")}


@pytest.mark.parametrize(
    ("new", "replaces"),
    [
        ({"kubeconfig": config("https://5.6.7.8")}, ("kubeconfig",)),
        ({"kubeconfig": config("https://1.2.3.4", "Yg==")}, ("kubeconfig",)),
        ({"kubeconfig": UNKNOWN}, ("kubeconfig",)),
        ({"kubeconfig": config("https://1.2.3.4", user="v")}, ()),
        ({**OLD, "enableServerSideApply": "false"}, ()),
    ],
)
def test_another_address_or_authority_is_another_cluster(new: dict[str, Any], replaces: tuple[str]) -> None:
    assert replacing(OLD, new) == replaces


def test_a_cluster_with_an_identifier_may_get_another_address() -> None:
    named, moved = {"clusterIdentifier": "a"}, {"kubeconfig": config("https://5.6.7.8")}
    assert replacing({**OLD, **named}, {**moved, **named}) == ()
    assert replacing({**OLD, **named}, {**OLD, "clusterIdentifier": "b"}) == ("clusterIdentifier",)
    # It is given, or taken away, without harm.
    assert replacing(OLD, {**OLD, **named}) == replacing({**OLD, **named}, OLD) == ()
