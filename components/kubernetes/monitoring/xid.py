"""XID codes of NVIDIA's driver by urgency, from NVIDIA's catalogue (`xids.csv`).

Sources of the rows: `catalogue` is docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (codes 1 to
172, columns "Immediate Action" and "Investigatory Action"; codes that it marks "Unused" are left out).
`driver` is NVIDIA/open-gpu-kernel-modules df1c9a3 src/common/sdk/nvidia/inc/nverror.h, for codes that the
catalogue does not list yet. `read` is the date on which a row was read.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

_FILE = resources.files("components.kubernetes.monitoring").joinpath("xids.csv")


class Urgency(StrEnum):
    """Handling of a code by the alert rules."""

    PAGE = "page"
    """`GpuXidError`, critical: the GPU does not work until it is reset or replaced."""
    TICKET = "ticket"
    """`GpuXidReported`, a warning; also codes that are in no list."""
    IGNORE = "ignore"
    """No alert: the error of an application, or an event without consequence."""


# Urgency and the node's repair, by NVIDIA's immediate action. A GPU reset needs a node without pods that use
# GPUs, so the node is drained first.
_DRAIN, _REPLACE, _LOOK, _NONE = "drain, reboot", "drain, replace", "look at it in working hours", "none"
_ACTIONS = {
    "RESET_GPU": (Urgency.PAGE, _DRAIN),
    "RESTART_VM": (Urgency.PAGE, _DRAIN),
    "RESTART_BM": (Urgency.PAGE, _REPLACE),
    "WORKFLOW_XID_48": (Urgency.PAGE, _DRAIN),
    "WORKFLOW_NVLINK_ERR": (Urgency.PAGE, _DRAIN),
    "WORKFLOW_NVLINK5_ERR": (Urgency.PAGE, _DRAIN),
    "CHECK_MECHANICALS": (Urgency.TICKET, _LOOK),
    "CHECK_UVM": (Urgency.TICKET, _LOOK),
    "CONTACT_SUPPORT": (Urgency.TICKET, _LOOK),
    "UPDATE_SWFW": (Urgency.TICKET, _LOOK),
    "": (Urgency.TICKET, _LOOK),
    "RESTART_APP": (Urgency.IGNORE, _NONE),
    "IGNORE": (Urgency.IGNORE, _NONE),
    # 45 follows another code or the end of a process; 154 repeats the action of another code.
    "WORKFLOW_XID_45": (Urgency.IGNORE, _NONE),
    "XID_154": (Urgency.IGNORE, _NONE),
}
# Codes for which the action alone says too much or too little, with the reason.
EXCEPTIONS = {
    92: (Urgency.TICKET, _LOOK, "many corrected errors announce uncorrected ones"),
    94: (Urgency.TICKET, _DRAIN, "the catalogue recommends a reset when convenient"),
    109: (
        Urgency.TICKET,
        _LOOK,
        "an application's error for NVIDIA/k8s-device-plugin (internal/rm/health.go)",
    ),
    155: (Urgency.TICKET, _LOOK, "links that the driver puts down on purpose report it, too"),
    157: (Urgency.TICKET, _LOOK, "no more rows or channels can be retired"),
    167: (Urgency.PAGE, _REPLACE, "fatal by its name; the catalogue has no action yet"),
    173: (Urgency.PAGE, _REPLACE, "fatal by its name; the catalogue does not list it yet"),
}


@dataclass(frozen=True)
class Xid:
    """A code with NVIDIA's actions and ours."""

    code: int
    name: str
    immediate: str
    """NVIDIA's immediate action; empty where none is published."""
    later: str
    """NVIDIA's action where the error comes back."""
    source: str
    read: str
    """Date of the row, such as 2026-11-27."""
    urgency: Urgency
    repair: str
    """Action on the node."""


@cache
def xids() -> tuple[Xid, ...]:
    """All codes in their order."""
    return tuple(_read(row) for row in csv.DictReader(_FILE.read_text(encoding="utf-8").splitlines()))


def _read(row: dict[str, str]) -> Xid:
    code = int(row["code"])
    urgency, repair = EXCEPTIONS[code][:2] if code in EXCEPTIONS else _ACTIONS[row["immediate"]]
    return Xid(code, row["name"], row["immediate"], row["later"], row["source"], row["read"], urgency, repair)


def expression(*urgencies: Urgency) -> str:
    """A regular expression of the codes with one of these urgencies, for a matcher of PromQL."""
    return "|".join(str(xid.code) for xid in xids() if xid.urgency in urgencies)


def table(urgency: Urgency) -> Iterator[str]:
    """Rows of a Markdown table for a runbook page."""
    yield "| XID | name | NVIDIA's action | action on the node |"
    yield "|---|---|---|---|"
    for xid in xids():
        if xid.urgency == urgency:
            yield f"| {xid.code} | `{xid.name}` | {xid.immediate or 'not published'} | {xid.repair} |"
