"""Names of the networks between nodes that carry training traffic, for the whole product."""

from enum import StrEnum


class Fabric(StrEnum):
    """Network between the nodes of a pool. `Fabric(text)` also reads the names that older plans used."""

    EFA = "efa"  # AWS Elastic Fabric Adapter
    TCPX = "tcpx"  # Google Cloud GPUDirect-TCPX (A3 High)
    TCPXO = "tcpxo"  # Google Cloud GPUDirect-TCPXO (A3 Mega)
    RDMA = "rdma"  # RDMA over Converged Ethernet, as Google Cloud's GPUDirect RDMA (A3 Ultra, A4)
    INFINIBAND = "infiniband"
    NVLINK = "nvlink"  # NVLink across the nodes of one rack (GB200 NVL72)
    TCP = "tcp"  # sockets over the node's ordinary interfaces

    @classmethod
    def _missing_(cls, value: object) -> "Fabric | None":
        return EARLIER.get(value) if isinstance(value, str) else None


EARLIER = {
    "gpudirect-rdma": Fabric.RDMA,
    "gpudirect-tcpx": Fabric.TCPX,
    "gpudirect-tcpxo": Fabric.TCPXO,
    "ib": Fabric.INFINIBAND,
    "loopback": Fabric.TCP,
    "roce": Fabric.RDMA,
    "shaped-veth": Fabric.TCP,
}
