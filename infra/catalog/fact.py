"""Base class of rows of a table: source and date of a fact."""

import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Usd = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""US dollars; a price without a source is absent, never 0."""

# Models are built on first use, so that importing the catalog stays fast.
CLOSED = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Fact(BaseModel):
    """One row of a table.

    `date` is the day that the source itself gives for the fact (`dated="by source"`) or, where it gives
    none, the day the source was read (`dated="when read"`). `disagreements` describes, in full
    sentences, differing values of other sources.
    """

    model_config = CLOSED

    source: Name
    date: datetime.date
    dated: Literal["by source", "when read"] = "by source"
    disagreements: tuple[Name, ...] = ()


class DatedPrice(Fact):
    """A price, and the number of days after its date for which it is valid, by its source."""

    good_for_days: Count

    def old(self, on: datetime.date) -> bool:
        """Return whether the price is older on a day than its source allows."""
        return (on - self.date).days > self.good_for_days
