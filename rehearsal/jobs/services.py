"""Services of the emulated clouds that a user's programs call by HTTP, and what runs behind them."""

from pathlib import Path
from typing import Any

from rehearsal.core.fault_injection import FaultPlan
from rehearsal.core.state import State
from rehearsal.jobs.aws.services import AwsServices
from rehearsal.jobs.gcp.services import GoogleServices
from rehearsal.jobs.log_store import LogStore
from rehearsal.workloads.addresses import Addresses


class EmulatedServices:
    """Serves at the ports of the home from the start until `stop`; runs jobs, functions and servers.

    Raises RefusalError when another program has a port.
    """

    def __init__(self, state: State, home: Path, plan: FaultPlan) -> None:
        logs, addresses = LogStore(home), Addresses(state)
        self.aws = AwsServices(state, home, plan, logs, addresses)
        self.google = GoogleServices(state, home, plan, logs, addresses)

    def live_workloads(self) -> list[dict[str, Any]]:
        """Machines of running jobs, function calls and servers, each as a row of a pod."""
        return [*self.aws.live(), *self.google.live()]

    def locate(self, name: str) -> str | None:
        """The URL on this machine of the service with this ARN or address, if one runs."""
        return (self.aws if name.startswith("arn:") else self.google).locate(name)

    def stop(self) -> None:
        """End everything that runs."""
        self.aws.stop()
        self.google.stop()
