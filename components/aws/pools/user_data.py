"""The boot configuration of an Amazon Linux 2023 node of EKS: a MIME message of NodeConfig and scripts. Pure.

EKS merges its own NodeConfig (cluster, certificate, labels, taints) into this one as long as the launch
template names no image. Order at boot: nodeadm writes its configuration, cloud-init runs the scripts, only
then nodeadm starts containerd and kubelet: a script can still change the capacity that kubelet detects.
Sources: EKS user guide, "Customize managed nodes with launch templates"; awslabs/amazon-eks-ami, nodeadm.
The parts for EFA are untested on hardware.
"""

import base64
from collections.abc import Sequence

from components.aws.pools import efa

_BOUNDARY = "trainstack-node"
_SCRIPT = 'text/x-shellscript; charset="us-ascii"'

_CONFIG = """\
---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
"""

_LOCAL_STORAGE = """\
  instance:
    localStorage:
      strategy: RAID0
"""

# EFA registers memory, which the kernel counts as locked: with containerd's default limit only root can do it
# (aws-ofi-nccl and libfabric then fail with ENOMEM). The list replaces nodeadm's own, so its limit
# of files is repeated. "Unlimited" cannot be written: nodeadm reads numbers as floats, and 2^64 - 1 becomes
# more than containerd can read. 2^50 bytes are more than any node has, and exact.
# Source: awslabs/amazon-eks-ami@81fec2e8 nodeadm/doc/examples.md ("Modifying container RLIMITs"),
# nodeadm/internal/util/merge.go, nodeadm/internal/containerd/base-runtime-spec.json.
_MEMORY_LOCK = """\
  containerd:
    baseRuntimeSpec:
      process:
        rlimits:
          - type: RLIMIT_NOFILE
            soft: 65536
            hard: 1048576
          - type: RLIMIT_MEMLOCK
            soft: 1125899906842624
            hard: 1125899906842624
"""

_HUGE_PAGES = """\
#!/usr/bin/env bash
set -euo pipefail
echo 'vm.nr_hugepages = {pages}' > /etc/sysctl.d/90-huge-pages.conf
sysctl --load /etc/sysctl.d/90-huge-pages.conf
"""

# Lustre's client uses EFA only when its network layer was configured before the first mount; else it uses
# TCP. So a failure is logged and does not block the node. Source: awsdocs/amazon-eks-user-guide@1527dee91f9d
# latest/ug/storage/fsx-csi-tuning-efa.adoc (Ubuntu); FSx for Lustre guide, "Configuring EFA clients" (AL2023;
# which devices: 8 where there are 8 or more, else the first and the last).
_LUSTRE_OVER_EFA = """\
#!/usr/bin/env bash
exec > >(logger -s -t lustre-over-efa) 2>&1
trap '[ $? = 0 ] || echo "failed: Lustre uses TCP on this node"; exit 0' EXIT
set -euo pipefail
dnf install -y lustre-client
primary=$(ip -o -4 route show to default | awk '{print $5; exit}')
modprobe lnet
modprobe kefalnd ipif_name="$primary"
modprobe ksocklnd
lnetctl lnet configure
lnetctl net del --net tcp || true
lnetctl net add --net tcp --if "$primary"
mapfile -t devices < <(ls /sys/class/infiniband)
count=${#devices[@]}
chosen=("${devices[0]}")
if (( count >= 8 )); then
  chosen=()
  for (( i = 0; i < count; i += count / 8 )); do chosen+=("${devices[i]}"); done
elif (( count > 1 )); then
  chosen+=("${devices[-1]}")
fi
for device in "${chosen[@]}"; do lnetctl net add --net efa --if "$device" --peer-credits 32; done
lnetctl set discovery 1
lnetctl udsp add --src efa --priority 0
modprobe lustre
lnetctl net show
"""

# By default NVIDIA's runtime gives a container the GPUs that its own `NVIDIA_VISIBLE_DEVICES` names: all of a
# node, whatever it requested. With shared GPUs those are of others. The runtime reads this file for every
# container; privileged ones (device plugin, DCGM) may go on naming GPUs. Without success kubelet does not
# start: cloud-init only logs a script that fails, and the node would offer shares that any container can see.
# Source: NVIDIA/nvidia-container-toolkit v1.19.1 internal/config/image/cuda_image.go (VisibleDevices),
# cmd/nvidia-ctk/config. Untested on hardware.
_GPUS_BY_MOUNT = """\
#!/usr/bin/env bash
set -euo pipefail
cat > "${ROOT:-}/etc/systemd/system/trainstack-gpus-by-mount.service" <<'UNIT'
[Unit]
Description=GPUs of containers by mounts alone
Before=kubelet.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/nvidia-ctk config --in-place \\
  --set accept-nvidia-visible-devices-envvar-when-unprivileged=false \\
  --set accept-nvidia-visible-devices-as-volume-mounts=true
StandardError=journal+console
[Install]
RequiredBy=kubelet.service
UNIT
systemctl daemon-reload
systemctl enable trainstack-gpus-by-mount.service
"""

# GPUs are cut before kubelet starts, so that no process has them open and the device plugin finds the parts.
# NVIDIA's MIG manager does it on a running node and restarts kubelet, after which nodes of AL2023 stay
# NotReady (NVIDIA/gpu-operator issue 2415, with this as the way around it). A100 in a virtual machine enables
# the mode with a restart only (gpu-operator issue 1606), H100 and newer without one. The mode may survive a
# restart, the parts never do (k8s-device-plugin issue 225), and EKS restarts nodes that it repairs: so this
# is a unit, not a script of the first boot. Without its success kubelet does not start, so a node never
# offers whole GPUs as shares. The mode is not enabled while another program has the GPU open, such as
# nvidia-smi of set-nvidia-clocks (gpu-operator issues 118 and 1845): the unit starts after it, and tries more
# than once. An A100 that waits for a restart may refuse the query. Names of units: awslabs/amazon-eks-ami
# templates/al2023/provisioners/install-nvidia-driver.sh; newer ones: nvidia-setup. Untested on hardware.
_PARTITIONS = """\
#!/usr/bin/env bash
set -euo pipefail
program=${{ROOT:-}}/usr/local/sbin/trainstack-partition-gpus
unit=${{ROOT:-}}/etc/systemd/system/trainstack-partition-gpus.service
cat > "$program" <<'PROGRAM'
#!/usr/bin/env bash
set -euo pipefail
restarted=${{ROOT:-}}/var/lib/trainstack-partition-gpus.restarted
for try in 1 2 3 4 5; do
  (( try == 1 )) || sleep 5
  nvidia-smi -mig 1 || true
  modes=$(nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader || true)
  grep --quiet --invert-match --line-regexp Enabled <<< "$modes" || break
done
if grep --quiet --invert-match --line-regexp Enabled <<< "$modes"; then
  if [[ -e $restarted ]]; then
    echo "MIG mode is not enabled after a restart: $modes" >&2
    exit 1
  fi
  touch "$restarted"
  systemctl --no-block reboot
  exit 1
fi
# Parts that an earlier attempt left.
nvidia-smi mig -dci || true
nvidia-smi mig -dgi || true
nvidia-smi mig -cgi {partitions} -C
rm -f "$restarted"
PROGRAM
chmod 755 "$program"
cat > "$unit" <<'UNIT'
[Unit]
Description=Partitions of GPUs
After=nvidia-kmod-load.service nvidia-setup.service
After=nvidia-persistenced.service nvidia-fabricmanager.service set-nvidia-clocks.service
Before=kubelet.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/trainstack-partition-gpus
StandardError=journal+console
[Install]
RequiredBy=kubelet.service
UNIT
systemctl daemon-reload
systemctl enable trainstack-partition-gpus.service
"""


def node_user_data(
    *,
    local_nvme: bool,
    with_efa: bool,
    lustre_over_efa: bool = False,
    shared: bool = False,
    partitions: Sequence[str] = (),
) -> str | None:
    """The MIME message, or None when the node needs no instructions.

    `local_nvme`: stripe all instance-store disks into one volume for images, pod scratch space and logs.
    `with_efa`: reserve huge pages before kubelet counts them, and let containers lock memory.
    `lustre_over_efa`: let Lustre's client use the EFA devices.
    `shared`: containers see no GPUs but those that the device plugin mounts.
    `partitions`: sizes of the parts into which each GPU is cut.
    """
    config = (_LOCAL_STORAGE if local_nvme else "") + (_MEMORY_LOCK if with_efa else "")
    parts = []
    if config:
        parts.append(("application/node.eks.aws", _CONFIG + config))
    if with_efa:
        parts.append((_SCRIPT, _HUGE_PAGES.format(pages=efa.HUGE_PAGES)))
    if with_efa and lustre_over_efa:
        parts.append((_SCRIPT, _LUSTRE_OVER_EFA))
    if shared:
        parts.append((_SCRIPT, _GPUS_BY_MOUNT))
    if partitions:
        parts.append((_SCRIPT, _PARTITIONS.format(partitions=",".join(partitions))))
    if not parts:
        return None
    head = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n\n'
    body = "".join(f"--{_BOUNDARY}\nContent-Type: {kind}\n\n{text}\n" for kind, text in parts)
    return f"{head}{body}--{_BOUNDARY}--\n"


def encoded(user_data: str | None) -> str | None:
    """Base64, as launch templates require it."""
    return None if user_data is None else base64.b64encode(user_data.encode()).decode()
