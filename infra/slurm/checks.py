"""prolog.sh, epilog.sh and health.sh: checks that do not fail on a healthy node.

Slurm drains a node whose prolog or epilog fails, so a wrong check takes the cluster away job by job. A check
fails only on what it has seen: never because a tool is missing or slow, and never for a GPU that works
(GoogleCloudPlatform/slurm-gcp PR 223 drained nodes whose idle GPUs had no utilization; sticky counters of
software errors and of corrected memory do the same; a row that memory could not remap, or remaps at the next
reset, is a fault: NVIDIA, "GPU Memory Error Management"). No command of Slurm runs in prolog and epilog
(slurm.schedmd.com/prolog_epilog.html: they delay jobs, and an exit code already drains the node).
"""

_CHECK = r"""# 0: healthy, or not known. 1: something is broken, and its name is on the output.
check() {
  command -v nvidia-smi > /dev/null || return 0 # without a driver slurmd finds no GPU, and reports the node
  rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure
  out=$(timeout 20 nvidia-smi --query-remapped-rows=$rows --format=csv,noheader 2>&1)
  code=$?
  [ $code -eq 124 ] && return 0 # slow is not broken
  if [ $code -ne 0 ]; then
    case $out in # a GPU that fell off the bus, a driver that lost it (NVIDIA's deployment guide, XID 79)
      *"No devices were found"* | *"GPU is lost"* | *"Unable to determine the device handle"*)
        echo "gpu lost: $(echo "$out" | head -n 1)"; return 1 ;;
    esac
    return 0
  fi
  bad=$(echo "$out" | awk -F, '{ gsub(/ /, "") } $2 ~ /^(Yes|1)$/ || $3 ~ /^(Yes|1)$/ { printf " %s", $1 }')
  [ -z "$bad" ] || { echo "memory rows to remap, the GPU needs a reset or an exchange:$bad"; return 1; }
  return 0
}
"""


def prolog(more: str = "") -> str:
    """prolog.sh and epilog.sh: exit code 1 drains the node, and requeues the job of a prolog.

    `more` is a command of sh that fails, with the reason on its output, on a node that must take no jobs.
    """
    return f'#!/bin/sh\n{_CHECK}reason=$({_all(more)}) || {{ echo "$reason" >&2; exit 1; }}\nexit 0\n'


def health(more: str = "") -> str:
    """health.sh: drains the node with the reason; a node that is down or drained already is left alone.

    `more`: as of `prolog`.
    """
    return (
        f"#!/bin/sh\n{_CHECK}"
        f"reason=$({_all(more)}) || scontrol update NodeName="
        '"${SLURMD_NODENAME:-$(hostname -s)}" State=DRAIN Reason="health: $reason"\n'
        "exit 0\n"
    )


def _all(more: str) -> str:
    return f"check && {more}" if more else "check"
