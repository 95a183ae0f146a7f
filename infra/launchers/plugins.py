"""Wait of a pod for the NCCL plugin of its node, and the plugin's variables for any command (pure).

A new node accepts pods before the plugin is installed. NCCL without it would use sockets, at a tenth of the
rate and less. So an init container waits for the plugin, and fails when it does not come. It has the GPUs of
the run, because only containers with GPUs have the plugin's folder; the run gets the same ones afterwards.

The pod names the version of its submission, and may start months later, when its nodes have a newer one. A
plugin that is used with a daemon of the pod has to be of the daemon's version, so such a pod fails at once;
another plugin is used as it is. A node with an older version is about to get the newer one.

Commands that the launcher does not render, as those of TrainJobs, do not read the profile of the fabric. The
init container writes its variables into /etc/nccl.conf of the run. Every version of NCCL reads it, after the
environment and a user's own file, which take precedence (NVIDIA/nccl src/misc/param.cc, `initEnv`).
"""

from typing import Any

from infra.launchers.runplan import Plugin, RunPlan

Body = dict[str, Any]
CONTAINER = "nccl-plugin"
WAIT_S = 600
_VOLUME, _LINKS = "nccl", "nccl-plugin"
_FOLDER = "/run/nccl"
_FILE = "nccl.conf"
_WAIT = f"""\
shopt -s nullglob
until [ -e "$1" ]; do
  newest=$(printf '%s\\n' "$1" "${{1%-v*}}"-v* | sort -V | tail -n 1)
  if [ "$newest" != "$1" ]; then
    [ -n "$5" ] || break
    echo "$newest: newer than ${{1##*/}}, the version of this job's daemon: submit the job again" >&2
    exit 1
  fi
  if [ "$SECONDS" -ge {WAIT_S} ]; then
    echo "$1: missing for {WAIT_S} seconds; see the DaemonSets of NCCL plugins in kube-system" >&2
    exit 1
  fi
  sleep 2
done
"""
_LINK = """\
ln -sfn "$2"/* "$3"/
"""
_PROFILE = f"""\
set -a
source "$4" || exit 1
env | grep "^NCCL_" > {_FOLDER}/{_FILE}
"""


def waiting(plan: RunPlan, plugin: Plugin, resources: Body, context: Body) -> Body:
    """Return the init container; `resources` are the devices of the run's container."""
    script = _WAIT + (_LINK if plugin.linked else "") + (_PROFILE if plan.profile else "")
    amounts = {"cpu": "1", "memory": "1Gi"}
    devices = {key: value for key, value in resources["limits"].items() if key not in amounts}
    words = [plugin.installed, plugin.folder or "", plugin.linked or "", plan.profile or ""]
    words.append("paired" if plugin.paired else "")
    return {
        "name": CONTAINER,
        "image": plugin.image,
        "command": ["bash", "-c", script, "wait", *words],
        "env": [{"name": key, "value": value} for key, value in plan.env.items() if key == "LD_LIBRARY_PATH"],
        # Equal requests and limits, as those of the run: else the pod would lose whole processors.
        "resources": {**resources, "requests": {**amounts, **devices}, "limits": {**amounts, **devices}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": context,
        "volumeMounts": [
            *_links(plan),
            *([{"name": _VOLUME, "mountPath": _FOLDER}] if plan.profile else ()),
        ],
    }


def mounts(plan: RunPlan) -> list[Body]:
    """Return the mounts of the run's container."""
    if plan.plugin is None or not plan.profile:
        return _links(plan)
    # A file, which exists by then: what else an image has in /etc stays.
    configuration = {"name": _VOLUME, "mountPath": f"/etc/{_FILE}", "subPath": _FILE, "readOnly": True}
    return [*_links(plan), configuration]


def volumes(plan: RunPlan) -> list[Body]:
    """Return the volumes of the run's container and of the init container."""
    return [{"name": mount["name"], "emptyDir": {}} for mount in mounts(plan)]


def _links(plan: RunPlan) -> list[Body]:
    plugin = plan.plugin
    return [{"name": _LINKS, "mountPath": plugin.linked}] if plugin and plugin.linked else []
