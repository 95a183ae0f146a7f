"""Machine types of the catalogs, with GPUs, rates and hourly prices (pure).

Values without a source are None, and no estimate uses them.
"""

from collections.abc import Mapping
from typing import Final

from trainstack.advice.aws import machines as aws
from trainstack.advice.gcp import machines as gcp
from trainstack.advice.machine import Cloud, MachineTypes

OF_CLOUD: Final[Mapping[Cloud, MachineTypes]] = {"aws": aws, "gcp": gcp}
CLOUDS: Final[tuple[Cloud, ...]] = ("aws", "gcp")
