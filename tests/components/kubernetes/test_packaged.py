"""The components can also be used from other languages: Pulumi infers a schema from their annotations."""

import pytest
from pulumi.provider.experimental.analyzer import Analyzer

from components.base import Component
from components.kubernetes.accelerators import Accelerators
from components.kubernetes.monitoring.stack import Monitoring
from components.kubernetes.queueing.queues import Queueing
from components.kubernetes.training.trainer import Trainer
from components.kubernetes.validation.gate import SmokeTest
from components.kubernetes.validation.schedule import SmokeSchedule
from components.kubernetes.volumes import SharedVolume


@pytest.mark.parametrize(
    "component", [Accelerators, Monitoring, Queueing, SharedVolume, SmokeSchedule, SmokeTest, Trainer]
)
def test_a_schema_can_be_inferred(component: type[Component]) -> None:
    found = Analyzer("trainstack").analyze([component])["component_definitions"][component.__name__]
    assert found.inputs
    assert found.outputs
