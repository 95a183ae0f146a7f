"""Kubernetes and what runs on it, on every cloud. `limits` holds what is accepted of single values."""

from pathlib import Path
from typing import Final

from infra.catalog.limits import read_limits

limits: Final = read_limits(Path(__file__).parent / "tables/limits.toml")
