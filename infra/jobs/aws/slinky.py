"""Slurm in an EKS cluster of a stack as a job service: scripts of its login pod.

Untested in a real account: scripts are run by a real Slurm.
"""

from infra.clouds.aws.login import Clients
from infra.jobs.aws.service import SageMakerService
from infra.jobs.login_jobs import LoginJobs
from infra.jobs.login_pod import LoginPod


class SlinkyService(LoginJobs):
    """Jobs of the stack's Slurm, by its login pod. See `service.JobService`."""

    def __init__(self, clients: Clients, stack: str, region: str, kubeconfig: str) -> None:
        super().__init__(stack, LoginPod(kubeconfig), SageMakerService(clients, stack, region), "s3")
