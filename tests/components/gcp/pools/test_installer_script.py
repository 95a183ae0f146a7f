"""The script of the installers, run on folders: jobs on the node keep the files that they have mapped."""

import mmap
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.gcp.pools.installers import daemons
from infra.launchers.gcp import gke

FABRICS = ("tcpx", "tcpxo", "rdma")
SOURCES = {"tcpx": "tcpx/lib64", "tcpxo": "tcpxo/lib64", "rdma": "gib/lib64"}


class Node:
    """Folders of a node and of an installer's image."""

    def __init__(self, home: Path, fabric: str) -> None:
        self.home, self.fabric = home, fabric
        self.libraries = home / "target/lib64"
        self.libraries.mkdir(parents=True)
        (home / "target-gib").mkdir()
        self.image = home / "var/lib" / SOURCES[fabric]
        self.image.mkdir(parents=True)
        entry = home / "scripts/container_entry.sh"
        entry.parent.mkdir()
        entry.write_text("#!/bin/sh\n")
        entry.chmod(0o755)

    def publish(self, text: str) -> None:
        """Another content of the plugin's image."""
        (self.image / "libnccl-net.so.1").write_text(text)
        link = self.image / "libnccl-net.so"
        link.unlink(missing_ok=True)
        link.symlink_to("libnccl-net.so.1")
        profile = self.image.parent / "scripts/set_nccl_env.sh"
        profile.parent.mkdir(exist_ok=True)
        profile.write_text(f"export NCCL_TUNER_CONFIG_PATH={gke.GIB_OF_GOOGLE}/configs/tuner.txt\n# {text}\n")

    def install(self) -> subprocess.CompletedProcess[str]:
        """The init container that copies, as the DaemonSet has it."""
        (daemon, *_) = daemons([{"fabric": self.fabric, "pools": ["gpu"]}])
        words = daemon["spec"]["template"]["spec"]["initContainers"][-1]["command"]
        script = words[-1]
        for folder in ("/target", "/var/lib", "/scripts"):
            for before in (" ", "\n"):
                script = script.replace(f"{before}{folder}", f"{before}{self.home}{folder}")
        return subprocess.run([*words[:-1], script], capture_output=True, text=True, check=False)


@pytest.fixture(params=FABRICS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    yield Node(tmp_path, request.param)


def test_a_job_keeps_the_library_that_it_has_mapped(node: Node) -> None:
    node.publish("old" * 4000)
    assert node.install().returncode == 0
    library = node.libraries / "libnccl-net.so.1"
    assert library.is_file()
    before = library.stat().st_ino
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        node.publish("new")
        assert node.install().returncode == 0
        # First: the mapping of a file that was written to ends this process by a signal.
        assert library.stat().st_ino != before
        assert bytes(mapped) == b"old" * 4000
    assert library.read_text() == "new"
    assert (node.libraries / "libnccl-net.so").readlink() == Path("libnccl-net.so.1")
    assert not [*node.home.glob("target*/**/.trainstack-new")]


def test_files_of_the_driver_stay(node: Node) -> None:
    driver = node.libraries / "libcuda.so"
    driver.write_text("driver")
    node.publish("new")
    assert node.install().returncode == 0
    assert driver.read_text() == "driver"


def test_an_installation_that_fails_is_not_done(node: Node) -> None:
    node.publish("old")
    assert node.install().returncode == 0
    assert [*node.home.glob("target/trainstack/*")]
    for file in node.libraries.iterdir():
        file.unlink()
    node.libraries.rmdir()
    node.libraries.write_text("no folder")
    assert node.install().returncode != 0
    assert not [*node.home.glob("target/trainstack/*")]


def test_gib_refers_to_itself_where_it_lies(tmp_path: Path) -> None:
    node = Node(tmp_path, "rdma")
    for text in ("old", "new"):
        node.publish(text)
        assert node.install().returncode == 0
    profile = "scripts/set_nccl_env.sh"
    own, google = (node.home / folder / profile for folder in ("target/gib", "target-gib"))
    assert f"={gke.GIB}/configs" in own.read_text() and "# new" in own.read_text()
    assert f"={gke.GIB_OF_GOOGLE}/configs" in google.read_text()
