"""Upper bounds that wires set to a collective, as bus bandwidth in GB/s (pure).

k nodes of g ranks, n = k g; S bytes of payload; W = sum of a node's training NICs in one direction; B = bus
bandwidth of the same collective inside one node, where no NIC takes part. Every bound is the time of the
busiest wire turned into bus bandwidth:

- ring: each of the n links carries the collective's bus factor times S, k of them leave a node, and channels
  spread them over its NICs: W between nodes, B inside.
- tree (hierarchical, all-reduce only): each rank sends 2(k-1)/k of its share S/g over its part W/g of the
  NICs: (W/g)(n-1)/(k-1). Inside the node it still reduces and gathers 2(g-1)/g of S, which takes as long as
  in one node: B (n-1)/(k(g-1)).
- pairwise (all-to-all): each rank sends S/n to every other rank, n-g of them on other nodes:
  (W/g)(n-1)/(n-g) between nodes, B (n-1)/(g-1) inside.

Sources: stas00/ml-engineering@744d01e `network/README.md`, "Inter-node speed depends on intra-node speed";
NVIDIA/nccl-tests#196 and #22 (two nodes exceed the network's rate). The tree's inner bound and the pairwise
one come from the same counting of bytes. All are for messages so large that latency does not matter.
"""

from dataclasses import dataclass, replace

from smoke_training.formulae.bandwidth import ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER, bus_factor

RING = "ring"
TREE = "tree"
PAIRWISE = "pairwise"

NETWORK = "the network"
INSIDE = "the links inside the node"

# gloo's reduce-scatter is an all-reduce of which each rank keeps a part: it moves twice the bytes (counted on
# the loopback with torch 2.13.0: 2.00, 6.01 times S in all for 2 and 4 ranks; a true one moves n-1).
GLOO_EXTRA_BYTES = {REDUCE_SCATTER: 2.0}


@dataclass(frozen=True)
class ClusterShape:
    """`nodes` machines with `per_node` ranks each."""

    nodes: int
    per_node: int

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.per_node < 1:
            raise ValueError(f"{self.nodes} nodes of {self.per_node} ranks: each must be at least 1")

    @property
    def ranks(self) -> int:
        """N = k g."""
        return self.nodes * self.per_node


@dataclass(frozen=True, kw_only=True)
class Wires:
    """GB/s in one direction; None is unknown.

    `network` is the sum of a node's training NICs. `ring` and `switch` are all-reduce bus bandwidths that
    one node reaches by itself: by rings, and with the reduction inside the switch (NVLS), which can exceed
    the links' own rate because fewer bytes cross them than the bus factor counts.
    """

    network: float | None
    ring: float | None = None
    switch: float | None = None


@dataclass(frozen=True, kw_only=True)
class BandwidthBound:
    """The most an algorithm can reach, GB/s; `complete` is false while one of the wires is unknown."""

    algorithm: str
    value: float
    limit: str
    complete: bool


def bounds(
    collective: str, shape: ClusterShape, wires: Wires, backend: str = "nccl"
) -> tuple[BandwidthBound, ...]:
    """One bound per algorithm that the backend can use; none where no wire on the way is known.

    ValueError for an unknown collective.
    """
    if bus_factor(collective, shape.ranks) is None:
        return ()
    if collective == ALL_TO_ALL:
        found = [_pairwise(shape, wires)]
    else:
        found = [_least(RING, wires.network, wires.ring, shape)]
        if collective == ALL_REDUCE and backend == "nccl":
            found.append(_tree(shape, wires))
    extra = GLOO_EXTRA_BYTES.get(collective, 1.0) if backend == "gloo" else 1.0
    return tuple(replace(bound, value=bound.value / extra) for bound in found if bound is not None)


def lowest(found: tuple[BandwidthBound, ...], algorithm: str | None = None) -> BandwidthBound | None:
    """The bound of `algorithm` if it is known, else the lowest: every library can use that one."""
    chosen = [bound for bound in found if bound.algorithm == algorithm] or list(found)
    return min(chosen, key=lambda bound: bound.value, default=None)


def highest(found: tuple[BandwidthBound, ...]) -> BandwidthBound | None:
    """The bound that no known algorithm exceeds."""
    return max(found, key=lambda bound: bound.value, default=None)


def wire_rates(busbw_gb_s: float, shape: ClusterShape) -> dict[str, float | None]:
    """Rate in GB/s on one rank's share of the NICs, for a tree and for a flat ring.

    busbw (k-1)/(n-1), a floor, because the time inside the nodes is charged to the NICs too; and busbw/g
    (stas00, as above). None inside one node, where nothing crosses a NIC.
    """
    if shape.nodes < 2:
        return {TREE: None, RING: None}
    return {TREE: busbw_gb_s * (shape.nodes - 1) / (shape.ranks - 1), RING: busbw_gb_s / shape.per_node}


def _tree(shape: ClusterShape, wires: Wires) -> BandwidthBound | None:
    """Tree and NVLS-tree between nodes; the switch's own reduction inside one node."""
    inner = wires.switch if wires.switch is not None else wires.ring
    network = wires.network
    if network is not None and shape.nodes > 1:
        network *= (shape.ranks - 1) / (shape.per_node * (shape.nodes - 1))
    if inner is not None and shape.nodes > 1 and shape.per_node > 1:
        inner *= (shape.ranks - 1) / (shape.nodes * (shape.per_node - 1))
    return _least(TREE, network, inner, shape)


def _pairwise(shape: ClusterShape, wires: Wires) -> BandwidthBound | None:
    network, inner = wires.network, wires.ring
    if network is not None and shape.nodes > 1:
        network *= (shape.ranks - 1) / (shape.per_node * (shape.ranks - shape.per_node))
    if inner is not None and shape.per_node > 1:
        inner *= (shape.ranks - 1) / (shape.per_node - 1)
    return _least(PAIRWISE, network, inner, shape)


def _least(
    algorithm: str, network: float | None, inside: float | None, shape: ClusterShape
) -> BandwidthBound | None:
    crossed = [(network, NETWORK)] if shape.nodes > 1 else []
    crossed += [(inside, INSIDE)] if shape.per_node > 1 else []
    known = [(rate, limit) for rate, limit in crossed if rate is not None]
    if not known:
        return None
    value, limit = min(known)
    return BandwidthBound(algorithm=algorithm, value=value, limit=limit, complete=len(known) == len(crossed))
