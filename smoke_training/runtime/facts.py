"""What one launcher says of its node before any rank starts. Values of variables leave only as digests."""

import hashlib
import platform
from collections.abc import Mapping
from importlib import metadata

from smoke_training import plan as plans
from smoke_training.evidence.world import Nic, NodeFacts, Preflight
from smoke_training.plan import Plan
from smoke_training.reader import decode
from smoke_training.runtime import code, host

STEERING = ("NCCL_", "GLOO_", "FI_", "OMP_", "TORCH_", "UCX_", "OFI_")


def digest_of(plan: Plan) -> str:
    """SHA-256 of the plan in its one rendered form, so that spelling does not matter."""
    return hashlib.sha256(plans.render(plan).encode()).hexdigest()


def steering(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that steer communication and threading, each with a digest of its value."""
    return {
        name: hashlib.sha256(value.encode()).hexdigest()[:12]
        for name, value in sorted(environment.items())
        if name.startswith(STEERING)
    }


def of_node(index: int, plan: Plan, found: Preflight, environment: Mapping[str, str]) -> NodeFacts:
    """The facts of this node as they are now."""
    try:
        torch: str | None = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = None
    return NodeFacts(
        node=index,
        host=host.name(),
        ranks=found.ranks,
        device=found.device,
        device_forced=found.device_forced,
        gpus=found.devices_found,
        driver=host.nvidia_driver(),
        cpus=host.usable_cpus(),
        kernel=platform.release(),
        python=platform.python_version(),
        torch=torch,
        code_sha256=code.digest(),
        plan_sha256=digest_of(plan),
        plan_nodes=plan.nodes,
        plan_ranks_per_node=plan.ranks_per_node,
        environment=steering(environment),
        nics=tuple(decode(Nic, nic) for nic in host.interfaces()),
        rdma=tuple(host.rdma_devices()),
    )
