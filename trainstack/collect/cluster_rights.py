"""The section of docs/how-to/live.md about clusters, with the role that a collector needs."""

import itertools
import json
from typing import Any

import yaml

from policies.sources.live.kubernetes.sorts import SORTS
from trainstack.collect.kubernetes import DISCOVERY

_ABOUT = """## Kubernetes

    trainstack collect --live kubernetes --out snapshot.json     # --context NAME for another cluster
    trainstack audit --snapshot snapshot.json

    trainstack audit --live kubernetes                           # both at once

kubectl has to be installed. It logs in as its kubeconfig says, and passes requests on through a socket that
only you reach; it is told to refuse everything but reading. Asked for are objects that rules look at, each
kind in one version. A kind that the cluster does not serve is one of which there are none.

- **Secrets are not asked for.** Variables that are named like secrets lose their values; so do annotations,
  options and words of commands that are. Of ConfigMaps only the keys are kept, but of `aws-auth` and
  `amazon-vpc-cni`. `status` and the copy that kubectl applied are left out, of `managedFields` the names of
  the managers stay. Other secrets in commands and scripts are searched for, not surely found.
- **Objects that a controller made** for an object which is judged itself are left out: the ReplicaSets and
  pods of a Deployment, the Jobs of a JobSet. What a webhook adds to such pods is not seen. Pods of
  controllers that no rule knows are judged as they are.
- **Not judged**, because they are part of Kubernetes: what is in `kube-system`, `kube-public` and
  `kube-node-lease`, but ConfigMaps, and the bindings that the API server makes anew at each start. With
  `--state`, what a program manages there is judged.
- **What charts brought** is told as the objects that it consists of; releases are none.
- **What is around a cluster** is not told: rules that look for buckets, for EKS Auto Mode or for default
  encryption are undetermined there.
- When and how a validation ended (MLS-REP-04) only the state knows.
- The namespace `default` is judged as any other.

A snapshot is known by the uid of `kube-system`. With `--state`, objects are found again by kind, namespace
and name, in any version: **missing** and **drifted** are told as of an account. A state with several
clusters has those of the others missing. Objects do not name their stack, so nothing is **unmanaged**, and
`--import-file` is refused.

Tested with a real API server, Kueue, JobSet and Trainer; without nodes, and without EKS and GKE.

This role allows everything that is asked, and nothing else. Kinds that the cluster does not have do no harm.

```yaml
"""


def role() -> dict[str, Any]:
    """A ClusterRole with every right that a collector needs."""
    groups = itertools.groupby(sorted(SORTS, key=lambda one: one.group), lambda one: one.group)
    lists = [
        {"apiGroups": [group], "resources": sorted({one.plural for one in sorts}), "verbs": ["list"]}
        for group, sorts in groups
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "trainstack-audit"},
        "rules": [*lists, {"nonResourceURLs": list(DISCOVERY), "verbs": ["get"]}],
    }


def section() -> str:
    """All of it."""
    plain = json.loads(json.dumps(role()))  # without the references of YAML
    written = yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=105)
    return f"{_ABOUT}{written}```\n"
