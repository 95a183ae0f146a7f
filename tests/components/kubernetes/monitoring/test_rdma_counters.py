"""Counters of RDMA devices: the very script, on files as the kernel has them."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from components.kubernetes.monitoring import rdma_counters
from components.kubernetes.monitoring.chart_values import values
from tests.components.charts.documented_values import noted, unknown
from tests.components.kubernetes.monitoring.prometheus import tools

_PATIENCE_S = 10.0


def device(sys: Path, name: str, **counters: str) -> None:
    """A device as below /sys/class/infiniband: a number and an end of line in each file."""
    folder = sys / "class/infiniband" / name / "ports/1/hw_counters"
    folder.mkdir(parents=True)
    for counter, value in counters.items():
        (folder / counter).write_text(value)


@contextmanager
def running(sys: Path, out: Path) -> Iterator[subprocess.Popen[bytes]]:
    out.mkdir()
    shell = subprocess.Popen(
        ["/bin/sh", "-c", rdma_counters.SCRIPT],
        env={"SYS": str(sys), "OUT": str(out), "PATH": "/usr/bin:/bin"},
    )
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while not (out / "rdma.prom").exists():
            assert time.monotonic() < deadline and shell.poll() is None
            time.sleep(0.02)
        yield shell
    finally:
        shell.kill()
        shell.wait()


def written(folder: Path) -> str:
    with running(folder / "sys", folder / "out"):
        return (folder / "out/rdma.prom").read_text()


def test_every_counter_of_every_device_is_exported(tmp_path: Path) -> None:
    sys = tmp_path / "sys"
    device(sys, "rdmap16s27", tx_bytes="123\n", rx_drops="0\n", lifespan="12\n")
    device(sys, "rdmap32s27", tx_bytes="18446744073709\n", broken="N/A\n")
    assert written(tmp_path).splitlines()[2:] == [
        'trainstack_rdma_hw_total{device="rdmap16s27",port="1",counter="rx_drops"} 0',
        'trainstack_rdma_hw_total{device="rdmap16s27",port="1",counter="tx_bytes"} 123',
        'trainstack_rdma_hw_total{device="rdmap32s27",port="1",counter="tx_bytes"} 18446744073709',
    ]


def test_a_node_without_devices_exports_none(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    assert all(line.startswith("#") for line in written(tmp_path).splitlines())


def test_prometheus_has_no_objection(tmp_path: Path) -> None:
    device(tmp_path / "sys", "rdmap16s27", rdma_read_bytes="7\n")
    text = written(tmp_path)
    done = subprocess.run(
        [tools()["promtool"], "check", "metrics"], input=text, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_pod_ends_on_a_signal(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    with running(tmp_path / "sys", tmp_path / "out") as shell:
        shell.terminate()
        assert shell.wait(timeout=5) == 0


def test_only_where_there_are_devices_the_exporter_has_a_shell_beside_it() -> None:
    def exporter(*, rdma: bool) -> dict[str, object]:
        made = values(retention_days=1, storage_gib=10, memory_gib=3, alertmanager={}, rdma=rdma)
        return dict(made["prometheus-node-exporter"])

    assert not {"sidecars", "image"} & exporter(rdma=False).keys()
    given = exporter(rdma=True)
    assert {"sidecars", "image", "extraArgs"} <= given.keys()
    known = noted("kube-prometheus-stack").values["prometheus-node-exporter"]
    assert [*unknown(given, known)] == []
