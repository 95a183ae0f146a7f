"""Versions that GKE offers, and pins of a stack on it."""

from typing import Any

import pytest

from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout
from tests.trainstack.preflight.gcp.asking import spec
from trainstack.preflight.gcp import versions as gke
from trainstack.versions.gcp import pins as gke_pins
from trainstack.versions.pins import NOTHING

CONFIG: dict[str, Any] = {
    "channels": [
        {"channel": "RAPID", "defaultVersion": "1.36.0-gke.2", "validVersions": ["1.36.0-gke.2"]},
        {
            "channel": "REGULAR",
            "defaultVersion": "1.34.9-gke.7",
            "validVersions": ["1.35.2-gke.9", "1.35.10-gke.1", "1.34.9-gke.7"],
        },
    ]
}


def test_versions_are_ordered_by_their_numbers() -> None:
    versions = gke.channels(CONFIG)["regular"].versions
    assert gke.newest(versions, "1.35") == "1.35.10-gke.1"
    assert gke.newest(versions, "1.3") is None
    assert gke.minors(versions) == ["1.35", "1.34"]


def test_the_newest_minor_version_of_a_channel() -> None:
    assert gke.newest_minor(CONFIG, "regular", "1.34") == "1.35"
    assert gke.newest_minor(CONFIG, "stable", "1.34") is None


def test_a_version_that_is_not_offered_yet_says_where_it_is() -> None:
    with pytest.raises(ValueError, match=r"1\.35, 1\.34, not 1\.36.* rapid"):
        gke.newest_minor(CONFIG, "regular", "1.36")
    with pytest.raises(ValueError, match=r"not 1\.33$"):
        gke.newest_minor(CONFIG, "regular", "1.33")


@pytest.mark.parametrize(
    ("hold", "words"), [(True, "nothing: nodes follow when"), (False, "every node of system")]
)
def test_an_upgrade_drains_what_is_not_held(hold: bool, words: str) -> None:
    made = spec(on__maintenance__hold_nodes=hold)
    assert isinstance(made.layout, ClusterLayout) and isinstance(made.on, GcpSpec)
    first, second = gke_pins(made.layout, made.on, {"kueue": "0.17.1"})
    assert (first.kind, first.version) == ("Kubernetes", "1.36") and first.drains.startswith(words)
    assert (second.kind, second.name, second.drains) == ("chart", "kueue", NOTHING)
