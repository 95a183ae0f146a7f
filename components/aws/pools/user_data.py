"""The boot instructions of an Amazon Linux 2023 node of EKS: a MIME message of NodeConfig and scripts. Pure.

EKS merges its own NodeConfig (cluster, certificate, labels, taints) into this one as long as the launch
template names no image. Order at boot: nodeadm writes its configuration, cloud-init runs the scripts, only
then nodeadm starts containerd and kubelet: a script can still change what kubelet counts as capacity.
Sources: EKS user guide, "Customize managed nodes with launch templates"; awslabs/amazon-eks-ami, nodeadm.
"""

import base64

_BOUNDARY = "trainstack-node"

_LOCAL_STORAGE = """\
---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  instance:
    localStorage:
      strategy: RAID0
"""

_HUGE_PAGES = """\
#!/usr/bin/env bash
set -euo pipefail
echo 'vm.nr_hugepages = {pages}' > /etc/sysctl.d/90-huge-pages.conf
sysctl --load /etc/sysctl.d/90-huge-pages.conf
"""


def node_user_data(*, local_nvme: bool, huge_pages: int) -> str | None:
    """The MIME message, or None when the node needs no instructions.

    `local_nvme`: stripe all instance-store disks into one volume for images, pod scratch space and logs.
    `huge_pages`: 2 MiB pages to set aside before kubelet counts them; 0 leaves the kernel's choice.
    """
    parts = []
    if local_nvme:
        parts.append(("application/node.eks.aws", _LOCAL_STORAGE))
    if huge_pages:
        parts.append(('text/x-shellscript; charset="us-ascii"', _HUGE_PAGES.format(pages=huge_pages)))
    if not parts:
        return None
    head = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n\n'
    body = "".join(f"--{_BOUNDARY}\nContent-Type: {kind}\n\n{text}\n" for kind, text in parts)
    return f"{head}{body}--{_BOUNDARY}--\n"


def encoded(user_data: str | None) -> str | None:
    """Base64, as a launch template wants it."""
    return None if user_data is None else base64.b64encode(user_data.encode()).decode()
