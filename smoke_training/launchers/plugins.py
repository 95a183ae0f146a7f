"""Wait of a pod for the NCCL plugin of its node, and the plugin's variables for any command (pure).

A new node accepts pods before the plugin is installed. NCCL without it would use sockets, at a tenth of the
rate and less. So an init container waits for the plugin, and fails when it does not come. It has the GPUs of
the run, because only containers with GPUs have the plugin's folder; the run gets the same ones afterwards.

Commands that the launcher does not render, as those of TrainJobs, do not read the profile of the fabric. The
init container writes its variables into a configuration file of NCCL (NCCL user guide, NCCL_CONF_FILE, since
2.23); those in the environment override them.
"""

from typing import Any

from smoke_training.launchers.runplan import Plugin, RunPlan

Body = dict[str, Any]
CONTAINER = "nccl-plugin"
WAIT_S = 600
_VOLUME, _LINKS = "nccl", "nccl-plugin"
_FOLDER = "/run/nccl"
_CONFIGURATION = f"{_FOLDER}/nccl.conf"
_WAIT = f"""\
until [ -e "$1" ]; do
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
env | grep "^NCCL_" > {_CONFIGURATION}
"""


def waiting(plan: RunPlan, plugin: Plugin, resources: Body, context: Body) -> Body:
    """Return the init container; `resources` are the devices of the run's container."""
    script = _WAIT + (_LINK if plugin.linked else "") + (_PROFILE if plan.profile else "")
    amounts = {"cpu": "1", "memory": "1Gi"}
    devices = {key: value for key, value in resources["limits"].items() if key not in amounts}
    words = [plugin.installed, plugin.folder or "", plugin.linked or "", plan.profile or ""]
    return {
        "name": CONTAINER,
        "image": plugin.image,
        "command": ["bash", "-c", script, "wait", *words],
        "env": [{"name": key, "value": value} for key, value in plan.env.items() if key == "LD_LIBRARY_PATH"],
        # Equal requests and limits, as those of the run: else the pod would lose whole processors.
        "resources": {**resources, "requests": {**amounts, **devices}, "limits": {**amounts, **devices}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": context,
        "volumeMounts": mounts(plan),
    }


def mounts(plan: RunPlan) -> list[Body]:
    """Return the mounts of the run's container and of the init container."""
    plugin = plan.plugin
    if plugin is None:
        return []
    linked = [{"name": _LINKS, "mountPath": plugin.linked}] if plugin.linked else []
    return [*linked, *([{"name": _VOLUME, "mountPath": _FOLDER}] if plan.profile else [])]


def volumes(plan: RunPlan) -> list[Body]:
    """Return the volumes of these mounts."""
    return [{"name": mount["name"], "emptyDir": {}} for mount in mounts(plan)]


def environment(plan: RunPlan) -> dict[str, str]:
    """Return the variables of the run's container."""
    return {"NCCL_CONF_FILE": _CONFIGURATION} if plan.plugin and plan.profile else {}
