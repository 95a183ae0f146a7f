"""Capacity that a rehearsal takes as bought: what the specs of shipped stacks name."""

from infra import stackspec
from trainstack.cli.clouds.choice import services_of


def test_reservations_and_blocks_of_pools_are_presumed_in_their_region() -> None:
    spec = stackspec.load_file("large-aws-usw2").spec
    (row,) = services_of("aws").presumed(spec)
    assert (row["id"], row["region"]) == ("cr-0a1b2c3d4e5f67890", "us-west-2")
    assert row["outputs"]["instanceType"] == "p5.48xlarge"


def test_other_purchases_and_other_clouds_presume_nothing() -> None:
    assert services_of("aws").presumed(stackspec.load_file("large-aws-use1").spec) == []
    assert services_of("aws").presumed(stackspec.load_file("small-aws").spec) == []
    assert services_of("gcp").presumed(stackspec.load_file("prod-gcp").spec) == []
