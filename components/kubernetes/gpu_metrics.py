"""Metrics that the DCGM exporter collects of every GPU: the fields of dashboards, alerts and the ledger.

A list replaces the exporter's own. Beside most of that (etc/dcp-metrics-included.csv of 4.8.2) it has errors
by code: `DCGM_FI_DEV_XID_ERRORS` keeps the last code forever, without time or count. A GeForce or a part of a
GPU does not support some of them; the exporter leaves these out.
"""

# Field, kind of metric, help text (without a comma): of DCGM, and one that the exporter counts itself.
FIELDS = (
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz)."),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C)."),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W)."),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Energy since boot (in mJ)."),
    ("DCGM_FI_DEV_GPU_UTIL", "gauge", "Share of time in which a kernel ran (in %)."),
    ("DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB)."),
    ("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB)."),
    ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", "NVLink traffic of all lanes."),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for uncorrectable errors."),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping of rows has failed."),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Share of time in which the engine was active."),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Share of cycles in which tensor cores were active."),
    ("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Share of cycles in which memory was active."),
    ("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "Errors by XID in the last five minutes."),
)


def csv() -> str:
    """The list in the exporter's format."""
    return "".join(f"{', '.join(field)}\n" for field in FIELDS)
