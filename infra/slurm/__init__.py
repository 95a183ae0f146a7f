"""The configuration of a Slurm system from a spec (pure).

The files are for a Slurm that its owner runs; no cloud resource is made here.
"""

from infra.slurm.options import SystemOptions
from infra.slurm.render import files
from infra.slurm.system import SlurmSystem, system

__all__ = ["SlurmSystem", "SystemOptions", "files", "system"]
