"""Section of docs/how-to/live.md on clusters, with the role of a collector."""

import itertools
import json
from typing import Any

import yaml

from policies.sources.live.kubernetes.object_kinds import OBJECT_KINDS
from trainstack.collect.kubernetes import DISCOVERY

_ABOUT = """## Kubernetes

    trainstack collect --live kubernetes --out snapshot.json     # --context NAME for another cluster
    trainstack audit --snapshot snapshot.json

    trainstack audit --live kubernetes                           # both at once

kubectl must be installed. It uses the login of its kubeconfig, and a read-only proxy on a socket of the user.
Only objects that rules read are listed, each kind in one version. A kind that the cluster does not serve has
no objects.

- **Secrets are not read.** Variables, annotations, options and command words that are named like secrets lose
  their values. Of ConfigMaps only the keys are kept, except for `aws-auth` and `amazon-vpc-cni`. `status` and
  the copy of kubectl apply are removed; of `managedFields` the names of the managers are kept. Other secrets
  in commands and scripts are searched, but may be missed.
- **Objects that a controller created** for a judged object are excluded: the ReplicaSets and pods of a
  Deployment, the Jobs of a JobSet. Changes of such pods by webhooks are not seen. Pods of other controllers
  are judged.
- **Not judged**, because they are part of Kubernetes: objects in `kube-system`, `kube-public` and
  `kube-node-lease` except ConfigMaps, and the bindings that the API server restores at each start. With
  `--state`, objects of a program there are judged.
- **Charts** are reported as the objects that they create, without releases.
- **Cloud resources** are not reported: rules that need buckets, EKS Auto Mode or default encryption are
  undetermined.
- Only the state has the end of a validation (MLS-REP-04).
- The namespace `default` is judged as any other.

The identity of a cluster is the uid of `kube-system`. With `--state`, objects match by kind, namespace and
name, in any version: **missing** and **drifted** are reported as for an account. A state with several
clusters reports the objects of the others as missing. Objects do not name their stack, so nothing is
**unmanaged**, and `--import-file` is an error.

Tested with a real API server, Kueue, JobSet and Trainer; without nodes, and without EKS and GKE.

This role has exactly the required permissions. Rules for kinds that the cluster does not serve have no
effect.

```yaml
"""


def role() -> dict[str, Any]:
    """A ClusterRole with all permissions of a collector."""
    groups = itertools.groupby(sorted(OBJECT_KINDS, key=lambda one: one.group), lambda one: one.group)
    lists = [
        {"apiGroups": [group], "resources": sorted({one.plural for one in kinds}), "verbs": ["list"]}
        for group, kinds in groups
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "trainstack-audit"},
        "rules": [*lists, {"nonResourceURLs": list(DISCOVERY), "verbs": ["get"]}],
    }


def section() -> str:
    """The section."""
    plain = json.loads(json.dumps(role()))  # without the references of YAML
    written = yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=105)
    return f"{_ABOUT}{written}```\n"
