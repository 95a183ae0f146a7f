"""The base of every part of a spec, and the types that several parts share."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,30}[a-z0-9]$")]
"""A name of 2 to 32 lower-case letters, digits and dashes that begins with a letter."""

Image = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+(:[\w.-]+)?@sha256:[0-9a-f]{64}$")
]
"""A container image pinned by digest: `registry/repository[:tag]@sha256:<64 hex digits>`."""

Email = Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")]

Usd = Annotated[float, Field(gt=0)]
"""US dollars, more than zero."""

# The retention periods that CloudWatch Logs accepts (PutRetentionPolicy API reference), in days.
LogRetentionDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]


class Model(BaseModel):
    """Frozen, knows every key it may hold, and takes the docstring under a field as its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
