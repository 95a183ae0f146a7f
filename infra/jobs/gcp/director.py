"""Slurm of Cluster Director as a job service: scripts of the login node, by SSH through IAP.

Untested in a real project: scripts are run by a real Slurm.
"""

from infra.jobs.gcp.login_node import LoginNode
from infra.jobs.gcp.service import VertexService
from infra.jobs.login_jobs import LoginJobs


class DirectorService(LoginJobs):
    """Jobs of the stack's cluster, by its login node. See `service.JobService`."""

    def __init__(self, project: str, stack: str) -> None:
        super().__init__(stack, LoginNode(project, stack), VertexService(project, "", stack), "gs")
