"""A disk of its own for every node, at a declared rate; one of them, or all, slower than declared."""

import os
from dataclasses import dataclass
from pathlib import Path

from tests.faults import probes, system
from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Lab, Node, Run


@dataclass
class Disks(Injector):
    """An ext4 disk per node, all at the same path, durable writes shaped to `mb_s` (10^6 bytes per second).

    Like the wires, a shaped disk has the rate it is declared to have. `slow` names the nodes whose disk runs
    at `share` of it; none is the healthy case. The kernel shapes what a process itself submits, that is what
    it waits for in fsync; the journal's own few blocks pass.
    """

    mb_s: float = 80.0
    slow: tuple[int, ...] = ()
    share: float = 0.5
    size_mb: int = 512

    def path(self, lab: Lab) -> Path:
        """Where every node finds its disk."""
        return lab.home / "storage"

    def install(self, lab: Lab) -> None:
        self.path(lab).mkdir(exist_ok=True)
        self.devices = [self._attach(lab, node) for node in lab.nodes]
        self.measured = []
        for node in lab.nodes:
            wanted = self.mb_s * (self.share if node.index in self.slow else 1.0)
            found = probes.write_mb_s(node, self.path(lab), min(round(wanted), self.size_mb // 3))
            # The first 0.1 s or so pass unthrottled.
            if not 0.85 * wanted < found < 1.2 * wanted:
                raise InjectorError(f"node {node.index} writes {found:.1f} MB/s, {wanted:.1f} wanted")
            self.measured.append(found)
        self._before = self._written(lab)

    def _attach(self, lab: Lab, node: Node) -> str:
        image, mount = lab.home / f"disk-{node.index}.img", lab.home / f"disk-{node.index}"
        with image.open("wb") as stream:
            stream.truncate(self.size_mb << 20)
        mount.mkdir()
        options = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
        system.command("mkfs.ext4", *options, str(image))
        device = system.command("losetup", "--find", "--show", str(image)).strip()
        system.command("mount", device, str(mount))
        # Now in use, the device is only marked, and freed by the kernel when its last mount goes.
        system.command("losetup", "--detach", device)
        node.place.command("mount", "--bind", str(mount), str(self.path(lab)))
        share = self.share if node.index in self.slow else 1.0
        number = Path(device).stat().st_rdev
        identity = f"{os.major(number)}:{os.minor(number)}"
        limit = f"{identity} {round(self.mb_s * share * 1e6)}"
        node.group.write("blkio", "blkio.throttle.write_bps_device", limit)
        return identity

    def _written(self, lab: Lab) -> list[int]:
        """Bytes each node's processes wrote to its disk, as the throttle counts them."""
        found = []
        for node, identity in zip(lab.nodes, self.devices, strict=True):
            lines = node.group.read("blkio", "blkio.throttle.io_service_bytes").splitlines()
            words = (line.split() for line in lines)
            found.append(sum(int(w[2]) for w in words if w[:2] == [identity, "Write"]))
        return found

    def prove(self, run: Run) -> str:
        now = self._written(run.lab)
        moved = [after - before for before, after in zip(self._before, now, strict=True)]
        for node in self.slow:
            if moved[node] < 1_000_000:
                raise InjectorError(f"node {node} wrote only {moved[node]} bytes to its slow disk")
        rates = ", ".join(f"{rate:.1f}" for rate in self.measured)
        return f"disks measured at {rates} MB/s; the run wrote {moved} bytes"

    def remove(self, lab: Lab) -> None:
        for node in lab.nodes:
            node.place.command("umount", "--lazy", str(self.path(lab)), check=False)
            mount = lab.home / f"disk-{node.index}"
            system.command("umount", "--lazy", str(mount), check=False)
            (lab.home / f"disk-{node.index}.img").unlink(missing_ok=True)
            mount.rmdir()


@dataclass
class DiskFull(Injector):
    """A node whose work folder has only `megabytes` left."""

    node: int = 1
    megabytes: int = 3
    _least: int | None = None

    def install(self, lab: Lab) -> None:
        folder = lab.nodes[self.node].work_dir
        folder.mkdir(exist_ok=True)
        options = f"size={self.megabytes}m"
        system.command("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
        probe = folder / "probe"
        try:
            probe.write_bytes(bytes((self.megabytes + 1) << 20))
        except OSError:
            return
        finally:
            probe.unlink()
        raise InjectorError(f"{folder} took more than its {self.megabytes} MB")

    def watch(self, run: Run) -> None:
        left = os.statvfs(run.lab.nodes[self.node].work_dir)
        free = left.f_bavail * left.f_frsize
        self._least = free if self._least is None else min(free, self._least)

    def prove(self, run: Run) -> str:
        if self._least is None or self._least > 300_000:
            raise InjectorError(f"the disk of node {self.node} never ran full: {self._least} bytes were left")
        return f"{self._least} bytes were left on node {self.node}'s disk of {self.megabytes} MB"

    def remove(self, lab: Lab) -> None:
        system.command("umount", "--lazy", str(lab.nodes[self.node].work_dir), check=False)
