"""Read NCCL's choice of algorithm and protocol per collective and size (pure).

NCCL writes one line per choice with `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING`, for example
`AllReduce: 2097152 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}`; releases before 2.24 number them
(`Algo 1 proto 2 time ...`; order: `src/include/nccl_common.h`), those from 2.20 to 2.22 name no collective
(v2.22.3-1 `src/enqueue.cc`), and older ones write nothing.
"""

import re
from collections.abc import Mapping

from smoke_training.formulae.bandwidth import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from smoke_training.formulae.bounds import PAIRWISE, RING, TREE

_LINE = re.compile(r"(?:(\w+): )?\b(\d+) Bytes -> Algo (\w+) proto (\w+)", re.IGNORECASE)
_NAMES = {
    "allreduce": ALL_REDUCE, "allgather": ALL_GATHER, "reducescatter": REDUCE_SCATTER, "alltoall": ALL_TO_ALL
}  # fmt: skip
_ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
_PROTOCOLS = ("ll", "ll128", "simple")
# Bound of `formulae.bounds` by algorithm. CollNet reduces in the network's switches: none.
BOUND_OF = {"ring": RING, "tree": TREE, "nvls": TREE, "nvls_tree": TREE, "pat": RING, PAIRWISE: PAIRWISE}


def parse(log: str, unnamed: str | None = None) -> Mapping[tuple[str, int], str]:
    """(collective, bytes) -> "ring/simple"; the last line wins. Other lines are skipped.

    Lines without a collective are of `unnamed`: the one that ran last, where a log is read right after it.
    """
    found = {}
    for collective, size, algorithm, protocol in _LINE.findall(log):
        name = _NAMES.get(collective.lower()) if collective else unnamed
        if name is not None:
            found[name, int(size)] = f"{_named(algorithm, _ALGORITHMS)}/{_named(protocol, _PROTOCOLS)}"
    return found


def _named(word: str, names: tuple[str, ...]) -> str:
    if word.isdigit():
        return names[int(word)] if int(word) < len(names) else word
    plain = word.lower().replace("_", "")
    return next((name for name in names if name.replace("_", "") == plain), word.lower())
