"""Properties that need or exclude each other; `core.rules.combinations` explains the rows."""

from pathlib import Path

from rehearsal.aws.rules.book import BOOK
from rehearsal.core.rules.combinations import add_combinations

add_combinations(BOOK, "aws", Path(__file__).parent, unknown_conflicts=True)
