"""The emulated Google Cloud, spoken to as the provider does, without an engine."""

from pathlib import Path
from typing import Any

from infra.rehearsal.gcp.cloud import GcpCloud
from infra.rehearsal.gcp.shape import places_of, project_of
from infra.rehearsal.gcp.site import Site
from infra.rehearsal.schema import Schemas
from infra.rehearsal.state import State
from tests.rehearsal.rules import driver

CONFIG = {"project": "research", "region": "us-central1", "zone": "us-central1-a"}


class Driver(driver.Driver):
    """A project of its own."""

    def __init__(self, folder: Path, schemas: Schemas) -> None:
        state = State(folder / "state.sqlite")
        super().__init__("gcp", state, GcpCloud(state, schemas, folder), dict(CONFIG))

    def site(self, token: str, inputs: dict[str, Any]) -> Site:
        call = self.call(f"gcp:{token}", "subject")
        return Site(self.state, project_of(self.config, inputs), places_of(self.config, inputs), call)
