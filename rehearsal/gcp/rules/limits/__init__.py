"""Limits of single values, as Google Cloud documents them; `core.rules.limits` explains the rows."""

from pathlib import Path

from rehearsal.core.rules.limits import add_limits
from rehearsal.gcp.rules.book import BOOK

add_limits(BOOK, "gcp", Path(__file__).parent)
