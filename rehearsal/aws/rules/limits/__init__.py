"""Limits of single values, as AWS documents them; `core.rules.limits` explains the rows."""

from pathlib import Path

from rehearsal.aws.rules.book import BOOK
from rehearsal.core.rules.limits import add_limits

add_limits(BOOK, "aws", Path(__file__).parent)
