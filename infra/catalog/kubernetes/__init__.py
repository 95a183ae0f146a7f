"""Kubernetes and its add-ons on every cloud. `limits` are those of single values."""

from pathlib import Path
from typing import Final

from infra.catalog.limits import read_limits

limits: Final = read_limits(Path(__file__).parent / "tables/limits.toml")
