"""Variables of torch's flight recorder, for the installed version."""

from collections.abc import Mapping
from importlib import metadata

OLDER = {
    "TORCH_FR_BUFFER_SIZE": "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "TORCH_FR_DUMP_TEMP_FILE": "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
}


def named(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, with their older names too for torch before 2.11, which warns of those."""
    found = metadata.version("torch").split(".")[:2]
    if [int(part) for part in found] >= [2, 11]:
        return dict(variables)
    return {**variables, **{OLDER[name]: value for name, value in variables.items() if name in OLDER}}
