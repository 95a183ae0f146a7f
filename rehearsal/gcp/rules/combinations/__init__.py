"""Properties that need or exclude each other; `core.rules.combinations` explains the rows."""

from pathlib import Path

from rehearsal.core.rules.combinations import add_combinations
from rehearsal.gcp.rules.book import BOOK

add_combinations(BOOK, "gcp", Path(__file__).parent, unknown_conflicts=False)
