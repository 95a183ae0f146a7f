"""`stacks` composes exactly the pairs of profile and cloud that the spec accepts."""

from itertools import product
from typing import Any

import pytest

from infra.errors import UserError
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.clouds import ExistingSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, LargeLayout, SmallLayout
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.stack import StackSpec
from infra.stackspec.supported import CLOUDS, PROFILES, SUPPORTED
from stacks import compose
from tests.stacks.composition.composed import FILES, composed

LAYOUTS: dict[str, type[Any]] = {
    "small": SmallLayout,
    "small-cluster": ClusterLayout,
    "medium": ClusterLayout,
    "large": LargeLayout,
    "large-slurm": SlurmLayout,
}
ONS: dict[str, type[Any]] = {"aws": AwsSpec, "gcp": GcpSpec, "existing": ExistingSpec}


def test_every_supported_pair_has_a_stack_that_composes() -> None:
    # A large stack is several Pulumi stacks (tests/stacks/composition/test_large.py, test_large_gcp.py).
    assert set(FILES) | {("large", "aws"), ("large", "gcp")} == SUPPORTED
    for pair in sorted(FILES):
        made = composed(pair).outputs
        assert made["smoke"] if "smoke" in made and pair[0] != "small" else made["people"]


@pytest.mark.parametrize("pair", sorted(set(product(PROFILES, CLOUDS)) - SUPPORTED), ids="-".join)
def test_any_other_pair_is_refused_with_those_that_exist(pair: tuple[str, str]) -> None:
    profile, cloud = pair
    unchecked: Any = StackSpec.model_construct
    spec = unchecked(
        layout=LAYOUTS[profile].model_construct(profile=profile), on=ONS[cloud].model_construct(cloud=cloud)
    )
    with pytest.raises(UserError, match="medium on aws"):
        compose(spec)
