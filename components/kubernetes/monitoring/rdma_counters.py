"""Counters of RDMA devices that node exporter does not read: a script in a sidecar writes them to a file.

Its collector `infiniband` reads `ports/*/counters`; some devices have only `hw_counters`, which it does not
support (prometheus/procfs 0.22.0, sysfs/class_infiniband.go; prometheus/node_exporter#3670 is open,
read 2026-11-26). So a shell loop in the exporter's pod turns these files into one that its textfile collector
reads.
"""

from typing import Any, Final

METRIC: Final = "trainstack_rdma_hw_total"
"""By `device`, `port` and `counter`: the name of the file, such as `rdma_write_bytes`."""
_FOLDER = "/run/rdma-counters"
# `lifespan` is a setting: how long the kernel caches values. Other content than numbers is left out. The file
# is complete when the exporter reads it (mv). A shell as process 1 ends on TERM only with a trap.
SCRIPT: Final = f"""\
trap 'exit 0' TERM INT
while true; do
  {{
    echo '# HELP {METRIC} Counters of RDMA devices, by the name of their file.'
    echo '# TYPE {METRIC} counter'
    for file in "$SYS"/class/infiniband/*/ports/*/hw_counters/*; do
      counter=${{file##*/}}
      [ -r "$file" ] && [ "$counter" != lifespan ] || continue
      read -r value < "$file" || continue
      case "$value" in ''|*[!0-9]*) continue ;; esac
      port=${{file%/hw_counters/*}}
      device=${{port%/ports/*}}
      labels="device=\\"${{device##*/}}\\",port=\\"${{port##*/}}\\",counter=\\"$counter\\""
      echo "{METRIC}{{$labels}} $value"
    done
  }} > "$OUT/rdma.prom.new" 2> /dev/null
  mv "$OUT/rdma.prom.new" "$OUT/rdma.prom"
  sleep 15 &
  wait $!
done
"""
ARGUMENTS: Final = (f"--collector.textfile.directory={_FOLDER}",)
"""Arguments of the exporter."""


def values() -> dict[str, Any]:
    """Values of the chart prometheus-node-exporter 4.56.1, with image and permissions of the sidecar."""
    return {
        # The chart's choice has no shell.
        "image": {"distroless": False},
        # In memory; the exporter gets it read-only.
        "sidecarVolumeMount": [{"name": "rdma-counters", "mountPath": _FOLDER, "readOnly": False}],
        "sidecars": [
            {
                "name": "rdma-counters",
                "command": ["/bin/sh", "-c", SCRIPT],
                "env": [{"name": "SYS", "value": "/host/sys"}, {"name": "OUT", "value": _FOLDER}],
                "resources": {"requests": {"cpu": "5m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
                "volumeMounts": [{"name": "sys", "mountPath": "/host/sys", "readOnly": True}],
            }
        ],
    }
