"""The ambient cluster, for programs that use the current kubeconfig.

It stands for any cluster a user is logged in to, so it has one large CPU node and no cloud features.
"""

from decimal import Decimal

from rehearsal.core.model import Record
from rehearsal.workloads.scheduling import SchedulerNode

TYPE = "kubernetes:ambient:Cluster"
# Not reachable: the top-level domain is reserved (RFC 6761), and the daemon itself is the cluster.
ENDPOINT = "https://cluster.rehearsal.invalid:6443"
_NAME = "ambient"
# Kubernetes release of `rehearsal.controlplane`.
VERSION = "1.36"
RECORD = Record(
    key=0,
    package="kubernetes",
    type=TYPE,
    scope=_NAME,
    id=_NAME,
    urn="",
    name=_NAME,
    inputs={},
    outputs={"name": _NAME, "endpoint": ENDPOINT, "version": VERSION},
)
KUBECONFIG = f"""\
apiVersion: v1
kind: Config
clusters:
- name: {_NAME}
  cluster: {{server: "{ENDPOINT}"}}
users:
- name: {_NAME}
  user: {{}}
contexts:
- name: {_NAME}
  context: {{cluster: {_NAME}, user: {_NAME}}}
current-context: {_NAME}
"""


def nodes() -> list[SchedulerNode]:
    """One large node."""
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": _NAME}
    capacity = {"cpu": Decimal(64), "memory": Decimal(256) * 2**30}
    return [
        SchedulerNode(
            name=_NAME, group=_NAME, labels=labels, taints=(), capacity=capacity, extended={}, running=True
        )
    ]
