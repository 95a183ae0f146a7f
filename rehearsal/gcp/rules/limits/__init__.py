"""Limits of single values from Google Cloud's documentation; `core.rules.limits` describes the rows."""

from pathlib import Path

from rehearsal.core.rules.limits import add_limits
from rehearsal.gcp.rules.book import BOOK

add_limits(BOOK, "gcp", Path(__file__).parent)
