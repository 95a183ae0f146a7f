"""Common parts of the requests of managed training services (pure).

Each service describes a node's rank in its own document, which two lines of Python in the container read.
"""

from collections.abc import Mapping
from typing import TypeVar

from infra.launchers.bundle import NAME as WRAPPER
from infra.launchers.rendezvous import JOIN
from infra.launchers.runplan import RunPlan, RunPlanError, SageMakerOptions, VertexOptions

Options = TypeVar("Options", SageMakerOptions, VertexOptions)

START = "TRAINSTACK_START"
PACK = "code.tar.gz"  # archive in a folder of code
CHECK = "TRAINSTACK_CHECK"
"""Variable with `check`: SageMaker passes at most 512 characters of the whole command."""


def start(rank: str, first: str = "") -> str:
    """Return the container's script: `first`, read the node's rank, then exec the node's command."""
    return f"set -e; {first}P=$(python3 -c '{rank}'); NODE_RANK=${{P% *}} MASTER_ADDR=${{P#* }}; {JOIN}"


def check(archive: str, wrapper: str, others: Mapping[str, str] | None = None) -> str:
    """Return the command that ends a job without the submitted code, in the folder that has its files.

    Everyone who submits jobs may write the folder of code in the bucket. The request of a job cannot be
    changed, so these digests in its environment identify the submitted code: SHA-256 of the archive
    before compression, of the wrapper, and of `others` by name.
    """
    files = {WRAPPER: wrapper, **(others or {})}
    sums = [f"$(gzip -dc {PACK} | sha256sum | cut -c-64)"]
    sums += [f"$(sha256sum < {name} | cut -c-64)" for name in files]
    found, wanted = " ".join(sums), " ".join([archive, *files.values()])
    failed = 'echo "trainstack: the bucket has other code than was submitted" >&2; exit 3'
    return f'[ "{found}" = "{wanted}" ] || {{ {failed}; }}'


def unpacked(plan: RunPlan, source: str, folder: str) -> str:
    """Return the command that unpacks the archive in `source` into `folder`, after the check of the plan."""
    checked = f'cd {source}; eval "${CHECK}"; ' if CHECK in plan.env else ""
    return f"{checked}mkdir -p {folder}; cd {folder}; tar -xzf {source}/{PACK}; "


def part_of(plan: RunPlan, service: str, options: Options | None, missing: str) -> Options:
    """Return the plan's section for the service; RunPlanError for unsupported fields."""
    problems = [
        f"mounts[{index}]: {service} mounts no claims, ConfigMaps and Secrets; use its own storage"
        for index, mount in enumerate(plan.mounts)
        if mount.claim or mount.config_map or mount.secret
    ]
    if not plan.instance_type:
        problems.append(f"instance_type: missing; {service} buys the machines itself")
    if options is None:
        problems.append(missing)
    if problems or options is None:
        raise RunPlanError(problems)
    return options
