"""Driver of the emulated Google Cloud that calls it as the provider does, without an engine."""

from pathlib import Path
from typing import Any

from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.gcp.cloud import EmulatedGcp
from rehearsal.gcp.site import Site, site_of
from tests.rehearsal import driver

CONFIG = {"project": "research", "region": "us-central1", "zone": "us-central1-a"}


class Driver(driver.Driver):
    """A project of its own per test."""

    def __init__(self, folder: Path, schemas: Schemas) -> None:
        state = State(folder / "state.sqlite")
        super().__init__("gcp", state, EmulatedGcp(state, schemas, folder), dict(CONFIG))

    def site(self, token: str, inputs: dict[str, Any]) -> Site:
        return site_of(self.state, self.call(f"gcp:{token}", "subject"), inputs)
