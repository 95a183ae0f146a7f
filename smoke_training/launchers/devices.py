"""What pods ask for besides GPUs to use the adapters of a fabric (pure)."""

from collections.abc import Mapping

EFA = "vpc.amazonaws.com/efa"
# The EFA driver sets aside 5128 huge pages of 2 MiB a node, and libfabric uses them: awsdocs/
# amazon-eks-user-guide latest/ug/ml/node-efa.adoc (2024-12-18), whose example asks for this much.
EFA_HUGE_PAGES = {"hugepages-2Mi": "5120Mi"}


def efa(count: int, *, claimed: bool = False) -> Mapping[str, str]:
    """`RunPlan.devices` for `count` Elastic Fabric Adapters of a node; `claimed`: a claim gives them out."""
    if not count:
        return {}
    return EFA_HUGE_PAGES if claimed else {**EFA_HUGE_PAGES, EFA: str(count)}
