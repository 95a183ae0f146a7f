"""Repeat one matrix product on all GPUs at once: rate and bits of every GPU.

The rate is absolute: peers may all be slow. The result has to have the same bits every time and on every GPU
of a kind: cuBLAS promises so for one version on GPUs of one architecture and number of multiprocessors (its
documentation, "Results reproducibility"). Untested on hardware, but for the product itself, on one H100.
"""

import time
from collections.abc import Iterator

import torch

from smoke_training.evidence import Record
from smoke_training.evidence.gpus import Gpus
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.training import fitness
from smoke_training.runtime import nvml

SIZE, PRODUCTS = 8192, 20  # 1.1 TFLOP a product: large enough for the best rate of any GPU
BURN_S, BURN_FULL_S = 4.0, 15.0  # power and heat settle within seconds


def measure(context: ProbeContext) -> Iterator[Record]:
    """The `gpus` evidence; nothing where the ranks compute on CPUs."""
    if context.group.cuda:
        yield burn(context.group, SIZE, PRODUCTS, BURN_FULL_S if context.full else BURN_S)


def burn(group: Group, size: int, products: int, budget_s: float) -> Gpus:
    """Multiply bfloat16 matrices for a while."""
    # Drawn on the CPU, so that all ranks multiply the same numbers whatever their GPUs are.
    dice = torch.Generator().manual_seed(size)
    left, right = (torch.randn(size, size, generator=dice).to(group.device, torch.bfloat16) for _ in "ab")
    result = torch.empty_like(left)

    def block() -> None:
        for _ in range(products):
            torch.mm(left, right, out=result)

    block()  # creates the library's workspace
    reader = fitness.window_reader(group)
    seconds, bits = list[float](), list[int]()
    group.barrier()
    began = time.monotonic()
    while not seconds or time.monotonic() - began < budget_s:
        seconds.append(group.seconds(block))
        reader.sample_clock()
        bits.append(int(result.view(torch.int16).sum(dtype=torch.int64)))
        group.beat()
    uuid = str(torch.cuda.get_device_properties(group.device).uuid) if group.cuda else ""
    state = nvml.state_of(f"GPU-{uuid}") if group.cuda else None
    return Gpus(
        dtype="bfloat16",
        size=size,
        products=products,
        seconds=group.rows(seconds),
        bits=tuple(group.gather(tuple(bits))),
        uuids=tuple(group.gather(uuid)),
        windows=fitness.windows(group, reader),
        states=tuple(group.gather(state)),
    )
