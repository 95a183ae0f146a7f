"""The table of XID codes against NVIDIA's driver and device plugin, and its use in rules and the runbook."""

import csv
import datetime
import re
from pathlib import Path

import pytest

from components.kubernetes.monitoring import rules, xid
from components.kubernetes.monitoring.xid import Urgency
from components.runbooks import page
from infra.engine.golang import ROOT, TOOLS, SetupError, go
from rehearsal.controlplane.binaries import FILES

# Codes and names of NVIDIA/open-gpu-kernel-modules df1c9a3 (2026-03-05), src/common/sdk/nvidia/inc/nverror.h.
_HEADER = Path(__file__).with_name("nverror.csv")
# Names that the driver has and the catalogue spells otherwise.
_SPELLED = {63, 64, 152, 153, 162, 163, 164, 165, 166, 170}


def driver() -> dict[int, str]:
    with _HEADER.open(encoding="utf-8") as file:
        return {int(row["code"]): row["name"] for row in csv.DictReader(file)}


def test_codes_have_the_names_of_the_driver() -> None:
    found, table = driver(), {row.code: row.name for row in xid.xids()}
    both = found.keys() & table.keys()
    assert len(both) > 80
    assert {code for code in both if found[code] != table[code]} == _SPELLED


def test_every_code_of_the_driver_from_the_first_hopper_codes_on_is_in_the_table() -> None:
    """Older ones that the table leaves out are marked "Unused" in the catalogue."""
    newer = {code for code in driver() if code > 125}
    assert newer - {row.code for row in xid.xids()} == {138}


def test_codes_are_unique_and_every_row_has_a_source_and_a_date() -> None:
    table = xid.xids()
    assert len({row.code for row in table}) == len(table) > 100
    for row in table:
        assert row.source in ("catalogue", "driver")
        datetime.date.fromisoformat(row.read)
        assert (row.source == "driver") <= (not row.immediate)
    assert xid.EXCEPTIONS.keys() <= {row.code for row in table}


def test_the_device_plugin_and_we_agree_on_errors_of_applications() -> None:
    """Codes for which NVIDIA's plugin leaves a GPU healthy do not page (internal/rm/health.go)."""
    plugin = FILES["nvidia-device-plugin"]
    try:
        source = Path(go(TOOLS / plugin.folder, "list", "-m", "-f", "{{.Dir}}", plugin.module).strip())
        text = (source / "internal/rm/health.go").read_text(encoding="utf-8")
    except (SetupError, OSError):
        pytest.skip("the source of the device plugin is not here: `make binaries` fetches it")
    (listed,) = re.findall(r"(?s)ignoredXids := \[\]uint64\{(.*?)\n\t\}", text) or re.findall(
        r"(?s)(\n\t\t13, .*?)\n\t\}", text
    )
    codes = {int(code) for code in re.findall(r"^\t\t(\d+),", listed, re.M)}
    assert {13, 31, 43, 45} <= codes
    assert not codes & {row.code for row in xid.xids() if row.urgency == Urgency.PAGE}


@pytest.mark.parametrize("code", [48, 62, 64, 74, 79, 95, 119, 120, 140, *range(144, 151)])
def test_failures_of_hardware_page(code: int) -> None:
    assert code in {row.code for row in xid.xids() if row.urgency == Urgency.PAGE}


@pytest.mark.parametrize("code", [13, 31, 43, 45])
def test_errors_of_applications_are_ignored(code: int) -> None:
    assert code in {row.code for row in xid.xids() if row.urgency == Urgency.IGNORE}


def test_the_rules_have_the_codes_of_the_table() -> None:
    said = {
        rule["alert"]: set(re.findall(r'xid[!=]~"([^"]+)"', rule["expr"])[0].split("|"))
        for group in rules.groups("execution")
        for rule in group["rules"]
        if rule.get("alert", "").startswith("GpuXid")
    }
    by = {urgency: {str(row.code) for row in xid.xids() if row.urgency == urgency} for urgency in Urgency}
    assert said["GpuXidError"] == by[Urgency.PAGE]
    assert said["GpuXidReported"] - {"0", ""} == by[Urgency.PAGE] | by[Urgency.IGNORE]


@pytest.mark.parametrize(
    ("alert", "urgency"), [("GpuXidError", Urgency.PAGE), ("GpuXidReported", Urgency.TICKET)]
)
def test_the_runbook_has_the_table(alert: str, urgency: Urgency) -> None:
    text = (ROOT / page("execution", alert)).read_text(encoding="utf-8")
    assert "\n".join(xid.table(urgency)) in text
