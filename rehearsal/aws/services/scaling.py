"""Instances of an Auto Scaling group: where they start, and which ones the service ends by itself.

Source: Amazon EC2 Auto Scaling User Guide, "Auto Scaling benefits" (rebalancing activities) and "Suspend and
resume processes" (AZRebalance); aws/containers-roadmap issue 1453 for groups of EKS.
"""

from collections import Counter
from collections.abc import Sequence


class ScalingGroup:
    """A group over zones with the process AZRebalance, which EKS cannot switch off."""

    def __init__(self, name: str, zones: Sequence[str]) -> None:
        self._name, self._zones = name, sorted(zones)
        self._started = 0
        self.instances: dict[str, str] = {}
        """Running instances with their zones, oldest first."""

    def start(self) -> str:
        """Start an instance in the zone with the fewest."""
        self._started += 1
        instance = f"{self._name}-{self._started}"
        self.instances[instance] = min(self._zones, key=self._count)
        return instance

    def terminate(self, instance: str) -> list[str]:
        """End an instance and lower the desired size; returns the ones that the service then ends itself."""
        del self.instances[instance]
        ended: list[str] = []
        while True:
            counts = sorted(self._zones, key=self._count)
            if self._count(counts[-1]) - self._count(counts[0]) <= 1:
                return ended
            self.start()  # before the other one ends
            ended.append(next(name for name, zone in self.instances.items() if zone == counts[-1]))
            del self.instances[ended[-1]]

    def _count(self, zone: str) -> int:
        return Counter(self.instances.values())[zone]
