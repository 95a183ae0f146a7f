"""Packets lost on a cable, at random or by size, by a small eBPF classifier: this kernel has no netem.

The classifier sits where packets arrive (clsact ingress). On a sender's egress the kernel would notify TCP of
the drop, nothing would be retransmitted, and the fault would not be a loss on the wire.
"""

import ctypes
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from tests.faults import network, probes
from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Lab, Run
from tests.faults.network import Place
from tests.faults.system import command

SYS_BPF = {"x86_64": 321, "aarch64": 280}  # asm/unistd_64.h, asm-generic/unistd.h
BPF_PROG_LOAD, BPF_OBJ_PIN, BPF_PROG_TYPE_SCHED_CLS = 5, 6, 3  # linux/bpf.h
BPF_FUNC_GET_PRANDOM_U32 = 7
CALL, JUMP32_GREATER, MOVE, EXIT, LOAD_WORD = 0x85, 0x26, 0xB7, 0x95, 0x61
CONTEXT = 1 << 4  # register 1 as the source: struct __sk_buff, whose first field is the length
TC_ACT_SHOT, TC_ACT_UNSPEC = 2, -1  # linux/pkt_cls.h
END = (EXIT, 0, 0, 0)
PROBES = 20_000


def instructions(share: float) -> bytes:
    """Drop a packet when a random 32-bit number is at most `share` of the largest."""
    threshold = int(share * 2**32) - 1
    drop, keep = (MOVE, 0, 0, TC_ACT_SHOT), (MOVE, 0, 0, TC_ACT_UNSPEC)
    return _packed(
        (CALL, 0, 0, BPF_FUNC_GET_PRANDOM_U32), (JUMP32_GREATER, 0, 2, threshold), drop, END, keep, END
    )


def longer_than(frame: int) -> bytes:
    """Drop a packet of more bytes than `frame`, its Ethernet header included."""
    drop, keep = (MOVE, 0, 0, TC_ACT_SHOT), (MOVE, 0, 0, TC_ACT_UNSPEC)
    return _packed((LOAD_WORD, CONTEXT, 0, 0), (JUMP32_GREATER, 0, 2, frame), keep, END, drop, END)


def _packed(*program: tuple[int, int, int, int]) -> bytes:
    """Instructions: code, registers, jump, value."""
    return b"".join(struct.pack("<BBhI", a, b, c, value & 0xFFFFFFFF) for a, b, c, value in program)


def load(code: bytes) -> int:
    """Load the classifier into the kernel; returns its file descriptor."""
    program = ctypes.create_string_buffer(code)
    license_text, log = ctypes.create_string_buffer(b"GPL"), ctypes.create_string_buffer(1 << 16)
    attributes = struct.pack(
        "<IIQQIIQ",
        BPF_PROG_TYPE_SCHED_CLS,
        len(code) // 8,
        ctypes.addressof(program),
        ctypes.addressof(license_text),
        1,
        len(log),
        ctypes.addressof(log),
    )
    return _bpf(BPF_PROG_LOAD, attributes)


def pin(descriptor: int, path: Path) -> None:
    """Give a loaded program a name in a bpf file system."""
    name = ctypes.create_string_buffer(str(path).encode())
    _bpf(BPF_OBJ_PIN, struct.pack("<QII", ctypes.addressof(name), descriptor, 0))


def _bpf(operation: int, attributes: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, 128)  # what is not set must be zero
    number = SYS_BPF[os.uname().machine]
    done = int(libc.syscall(number, operation, buffer, 128))
    if done < 0:
        error = ctypes.get_errno()
        raise InjectorError(f"bpf({operation}): {os.strerror(error)}")
    return done


@dataclass
class Loss(Injector):
    """A cable that loses `share` of all packets into a node, and of those from it if `both`."""

    node: int = 1
    rail: str = "eth0"
    share: float = 0.01
    both: bool = True

    def program(self) -> bytes:
        """What decides about a packet."""
        return instructions(self.share)

    def install(self, lab: Lab) -> None:
        folder = lab.home / "bpf"
        folder.mkdir(exist_ok=True)
        command("mount", "-t", "bpf", "bpf", str(folder))
        pinned = folder / "loss"
        descriptor = load(self.program())
        pin(descriptor, pinned)
        os.close(descriptor)
        for place, interface in self._ends(lab):
            # Not inside the node's mounts: they have nothing to do with the program's file.
            enter = ["nsenter", "--target", str(place.pid), "--net", "--"]
            command(*enter, "tc", "qdisc", "add", "dev", interface, "clsact")
            words = ["tc", "filter", "add", "dev", interface, "ingress", "bpf", "da", "pinned", str(pinned)]
            command(*enter, *words)
        self._probe(lab)
        self._before = self._drops(lab)
        self._segments = [network.tcp_segments(node.place) for node in lab.nodes]

    def _ends(self, lab: Lab) -> list[tuple[Place, str]]:
        ends = [(lab.nodes[self.node].place, self.rail)]
        return [*ends, (lab.switch, network.port(self.rail, self.node))] if self.both else ends

    def _drops(self, lab: Lab) -> int:
        return sum(network.qdisc_counter(place, name, "clsact", "drops") for place, name in self._ends(lab))

    def _probe(self, lab: Lab) -> None:
        peer = (self.node + 1) % lab.size
        before = self._drops(lab)
        probes.send_datagrams(lab, peer, self.node, self.rail, PROBES)
        found = (self._drops(lab) - before) / PROBES
        # Five standard deviations of a binomial count around the wanted share.
        margin = 5 * (self.share * (1 - self.share) / PROBES) ** 0.5
        if abs(found - self.share) > margin:
            raise InjectorError(f"{found:.3%} of {PROBES} datagrams were lost, {self.share:.3%} wanted")
        self.measured = found

    def prove(self, run: Run) -> str:
        drops = self._drops(run.lab) - self._before
        if drops < 5:
            raise InjectorError(f"only {drops} packets of the run were lost")
        sent = again = 0
        for node, (out, repeated) in zip(run.lab.nodes, self._segments, strict=True):
            now = network.tcp_segments(node.place)
            sent, again = sent + now[0] - out, again + now[1] - repeated
        if not again:
            raise InjectorError(f"{drops} packets were dropped, but TCP sent none again")
        return f"{drops} packets dropped (probe: {self.measured:.2%}), {again} of {sent} segments sent again"

    def remove(self, lab: Lab) -> None:
        for place, interface in self._ends(lab):
            enter = ["nsenter", "--target", str(place.pid), "--net", "--"]
            command(*enter, "tc", "qdisc", "del", "dev", interface, "clsact", check=False)
        command("umount", "--lazy", str(lab.home / "bpf"), check=False)


@dataclass
class LargeFrames(Loss):
    """A cable on whose way no frame above `most` bytes gets through, as after a wrong MTU."""

    most: int = 1400

    def program(self) -> bytes:
        return longer_than(self.most)

    def _probe(self, lab: Lab) -> None:
        peer, before = (self.node + 1) % lab.size, self._drops(lab)
        probes.send_datagrams(lab, peer, self.node, self.rail, 100)
        small = self._drops(lab) - before
        probes.send_datagrams(lab, peer, self.node, self.rail, 100, size=self.most)
        large = self._drops(lab) - before - small
        if (small, large) != (0, 100):
            raise InjectorError(f"{small} of 100 small and {large} of 100 large frames were dropped")

    def prove(self, run: Run) -> str:
        drops = self._drops(run.lab) - self._before
        if drops < 3:
            raise InjectorError(f"only {drops} frames of the run were dropped")
        return f"{drops} frames above {self.most} bytes dropped"
