"""CustomJobs of Vertex AI (pure): checked against the service's API description, not run against it."""

import re
import shlex

from infra.launchers.managed import START, part_of, start, unpacked
from infra.launchers.pods import Body, given
from infra.launchers.rendezvous import joining_command, joining_environment
from infra.launchers.runplan import RunPlan, RunPlanError, VertexOptions

# Folders of the code and of the work in a job.
VERTEX_CODE, VERTEX_FOLDER = "/tmp/trainstack/code", "/tmp/trainstack/run"  # noqa: S108 - the container's own
# Program that copies the objects below a gs://bucket/folder/ into a folder, with the permissions of the job's
# account; `agents.managed_job.gcp.folders` has the reason. The code is what brings everything else, so this
# is all that a request contains. No single quotes. Source: Cloud Storage JSON API v1, objects.list and
# objects.get.
FETCH = """
import json, os, sys, time, urllib.error, urllib.request
from urllib.parse import quote
uri, folder = sys.argv[1:]
bucket, _, prefix = uri[5:].partition("/")
api = (os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com").rstrip("/")
host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
def get(url, headers, left=5):
    try:
        request = urllib.request.Request(url, headers=headers)
        return urllib.request.urlopen(request, timeout=60).read()
    except (OSError, EOFError) as error:
        code = getattr(error, "code", 503)
        if not left or (code < 500 and code not in (408, 429)):
            why = error.read(500).decode(errors="replace") if hasattr(error, "read") else error
            sys.exit(f"trainstack: the code in {uri} cannot be read: {code}: {why}")
        time.sleep(2 ** (5 - left))
        return get(url, headers, left - 1)
account = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
token = json.loads(get(account, {"Metadata-Flavor": "Google"}))["access_token"]
own, objects = {"Authorization": f"Bearer {token}"}, f"{api}/storage/v1/b/{bucket}/o"
names = [one["name"] for one in json.loads(get(f"{objects}?prefix={quote(prefix)}", own)).get("items", ())]
os.makedirs(folder, exist_ok=True)
for name in names:
    content = get(f"{objects}/{quote(name, safe=str())}?alt=media", own)
    with open(os.path.join(folder, os.path.basename(name)), "wb") as file:
        file.write(content)
names or sys.exit(f"trainstack: {uri} has no objects")
"""
# A repeated request has the same name: only the service distinguishes its jobs, by an id in all replicas.
# Source: googleapis/python-aiplatform training_utils/environment_variables.py, and
# training_utils/cloud_profiler, where it is the id of the job's experiment. It is not documented, so the time
# replaces it if absent: results come from node 0 alone.
_FOLDER_EACH = 'export WORK_DIR="$WORK_DIR-${CLOUD_ML_JOB_ID:-$(date -u +%y%m%d%H%M%S)}"; '
_RESERVATION = "compute.googleapis.com/reservation-name"
# Vertex AI, "Distributed training", CLUSTER_SPEC: {"cluster": {"workerpool0": ["host:port"], ...},
# "task": {"type": "workerpool1", "index": 0}}.
_VERTEX = (
    "import json,os;"
    'c=json.loads(os.environ["CLUSTER_SPEC"]);p=c["cluster"];t=c["task"];'
    "h=[n for k in sorted(p) for n in p[k]];"
    'print(h.index(p[t["type"]][int(t["index"])]),h[0].rsplit(":",1)[0])'
)


def custom_job(plan: RunPlan) -> Body:
    """The CustomJob for `projects.locations.customJobs.create`; the first pool is node 0.

    Raises RunPlanError for fields that the service does not support.
    """
    place = part_of(plan, "Vertex AI", plan.vertex, "vertex: missing; must be an object, which may be empty")
    counts = [1] if plan.nodes == 1 else [1, plan.nodes - 1]
    # Spot machines are preempted during runs. Otherwise a job without restarts fails once.
    again = plan.max_restarts > 0 or place.spot
    scheduling = {
        "timeout": f"{plan.deadline_s}s",
        "strategy": "SPOT" if place.spot else None if place.flex_wait_s is None else "FLEX_START",
        "maxWaitDuration": None if place.flex_wait_s is None else f"{place.flex_wait_s}s",
        # A worker restarted alone could not rejoin the others.
        "restartJobOnWorkerRestart": again,
        "disableRetries": None if again else True,
    }
    spec = {
        "workerPoolSpecs": [_worker_pool(plan, place, count) for count in counts],
        "scheduling": given(scheduling),
        "serviceAccount": place.service_account or None,
        "network": place.network or None,
        "baseOutputDirectory": {"outputUriPrefix": place.output_uri} if place.output_uri else None,
    }
    job = {
        "displayName": place.job_name or plan.name,
        "jobSpec": given(spec),
        "labels": {label_key(key): label_value(value) for key, value in plan.labels.items()} or None,
        "encryptionSpec": {"kmsKeyName": place.kms_key} if place.kms_key else None,
    }
    return given(job)


def label_key(key: str) -> str:
    """Return a key in the form of Google Cloud labels: `trainstack:stack` is `trainstack-stack`.

    Resource Manager documentation, "Requirements for labels". Raises RunPlanError for one without a letter.
    """
    found = re.sub(r"[^a-z0-9_-]", "-", key.lower()).lstrip("-_0123456789")
    if not found:
        raise RunPlanError([f"labels.{key}: holds no letter"])
    return found[:63]


def label_value(value: str) -> str:
    """Return a value in the form of Google Cloud labels: `ml@example.com` is `ml_at_example_com`."""
    return re.sub(r"[^a-z0-9_-]", "_", value.lower().replace("@", "_at_"))[:63]


def _bring(plan: RunPlan, place: VertexOptions) -> str:
    """Return the prefix of the node's command that brings the code from a bucket.

    It is copied before its check: the bucket could change after it.
    """
    if place.code_uri is None:
        return ""
    source = shlex.quote(f"{place.code_uri.rstrip('/')}/")
    copy = f"set -e; mkdir -p {VERTEX_FOLDER}; python3 -c '{FETCH}' {source} {VERTEX_CODE}; "
    return f"{copy}{unpacked(plan, VERTEX_CODE, VERTEX_FOLDER)}" if place.packed else copy


def _worker_pool(plan: RunPlan, place: VertexOptions, count: int) -> Body:
    machine: Body = {"machineType": plan.instance_type}
    if place.accelerator_type:
        machine |= {"acceleratorType": place.accelerator_type, "acceleratorCount": plan.gpus_per_node}
    if place.reservation:
        affinity = {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": _RESERVATION}
        machine["reservationAffinity"] = {**affinity, "values": [place.reservation]}
    first = _bring(plan, place) + (_FOLDER_EACH if place.folder_each else "")
    env = {**joining_environment(plan), START: start(_VERTEX, first)}
    return {
        "machineSpec": machine,
        "replicaCount": count,
        "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": place.boot_disk_gb},
        "containerSpec": {
            "imageUri": plan.image,
            "command": ["bash", "-c", f'eval "${START}"', "node"],
            "args": joining_command(plan),
            "env": [{"name": name, "value": value} for name, value in env.items()],
        },
    }
