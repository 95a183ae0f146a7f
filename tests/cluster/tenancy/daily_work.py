"""Requests of a member's daily work, all of which are accepted."""

from dataclasses import replace
from functools import partial

from infra.launchers import kubeflow, kubernetes
from rehearsal.controlplane.api import ApiError, Object
from tests.cluster.tenancy.attempt import KUEUE, PORTS, Send, body, call, create, delete, patch
from tests.cluster.tenancy.scene import Scene, job_set, job_spec, lasting, pod_spec
from tests.cluster.waiting import eventually
from tests.infra.launchers import plans

WITHIN = [{"from": [{"podSelector": {"matchLabels": {"app": "own"}}}], "ports": [{"port": 8888}]}]


def launched(form: str) -> Send:
    """A run as a launcher renders it."""
    plan = replace(plans.training(), max_restarts=0, service_account="", priority="production")
    made = kubeflow.train_job(plan) if form == "train_job" else getattr(kubernetes, form)(plan)

    def send(scene: Scene) -> None:
        for each in made:
            metadata = {**each["metadata"], "namespace": scene.own}
            scene.member.create({**each, "metadata": metadata}, dry_run=True)

    return send


def again(kind: str, version: str, name: str) -> Send:
    """PUT an object as it was read; controllers may change it in between."""

    def written(scene: Scene) -> Object | None:
        try:
            return scene.member.replace(scene.member.get(version, kind, name, scene.own), dry_run=True)
        except ApiError as error:
            if error.reason != "Conflict":
                raise
            return None

    return lambda scene: eventually(partial(written, scene), f"{kind} {name} is written")


def _with_bucket() -> Object:
    """A pod with a claim of a bucket, and what GKE's webhook adds within the request that creates it.

    Source: GoogleCloudPlatform/gcs-fuse-csi-driver v1.24.4 pkg/webhook/sidecar_spec.go.
    """
    own = ("gke-gcsfuse-tmp", "gke-gcsfuse-buffer", "gke-gcsfuse-cache")
    amounts = {"cpu": "250m", "memory": "256Mi", "ephemeral-storage": "5Gi"}
    sidecar = {
        "name": "gke-gcsfuse-sidecar",
        "image": "gke.gcr.io/gcs-fuse-csi-driver-sidecar-mounter:v1.24.4-gke.0",
        "restartPolicy": "Always",
        "args": ["--v=5"],
        "env": [{"name": "NATIVE_SIDECAR", "value": "TRUE"}],
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsGroup": 65534,
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": name, "mountPath": f"/{name.removeprefix('gke-')}"} for name in own],
    }
    claim = {"name": "datasets", "persistentVolumeClaim": {"claimName": "datasets", "readOnly": True}}
    spec = pod_spec(
        initContainers=[sidecar], volumes=[*({"name": name, "emptyDir": {}} for name in own), claim]
    )
    spec["containers"][0]["volumeMounts"] = [{"name": "datasets", "mountPath": "/data"}]
    return spec


def _with_sidecar() -> Object:
    """Such as GKE adds to fetch metadata of a bucket beforehand."""
    few = {"cpu": "10m", "memory": "10Mi"}
    side = {**pod_spec(few)["containers"][0], "name": "side", "restartPolicy": "Always"}
    return pod_spec(initContainers=[side])


WORK: dict[str, Send] = {
    "a Job": create(body("Job", spec=job_spec())),
    "a Job as the launcher renders it": launched("job"),
    "a JobSet as the launcher renders it": launched("jobset"),
    "a TrainJob as the launcher renders it": launched("train_job"),
    "a JobSet": create(body("JobSet", spec=job_set(job_spec()))),
    "a TrainJob of a runtime": create(
        body(
            "TrainJob",
            spec={
                "runtimeRef": {"name": "torch-cpu"},
                "trainer": {"numNodes": 2, "command": ["torchrun", "train.py"]},
            },
        )
    ),
    "a notebook": create(body("Pod", spec=pod_spec(), labels={f"{KUEUE}priority-class": "production"})),
    "a Deployment": create(body("Deployment", spec=lasting())),
    "a StatefulSet": create(body("StatefulSet", spec={**lasting(), "serviceName": "served"})),
    "a CronJob": create(body("CronJob", spec={"schedule": "0 4 * * *", "jobTemplate": {"spec": job_spec()}})),
    "a CronJob that is suspended": create(
        body(
            "CronJob",
            spec={
                "schedule": "0 4 * * *",
                "suspend": True,
                "jobTemplate": {"spec": job_spec()},
            },
        )
    ),
    "a Job with a queue, a class, a limit of time and a topology": create(
        body(
            "Job",
            labels={
                f"{KUEUE}queue-name": "default",
                f"{KUEUE}priority-class": "sweep",
                f"{KUEUE}max-exec-time-seconds": "600",
            },
            spec={
                **job_spec(),
                "template": {
                    "metadata": {"annotations": {f"{KUEUE}podset-preferred-topology": "rack"}},
                    "spec": pod_spec(),
                },
            },
        )
    ),
    "a Job that starts smaller": create(
        body(
            "Job",
            annotations={f"{KUEUE}job-min-parallelism": "1"},
            spec={**job_spec(), "parallelism": 2, "completions": 2},
        )
    ),
    "a Job with nodes requested at once": create(
        body("Job", annotations={"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "3600"}, spec=job_spec())
    ),
    "a Job that checkpoints in ten minutes": create(
        body("Job", spec=job_spec(terminationGracePeriodSeconds=600))
    ),
    "a Job that tolerates nodes that go": create(
        body(
            "Job",
            spec=job_spec(tolerations=[{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]),
        )
    ),
    "a pod with a bucket, to which GKE adds its sidecar": create(
        body(
            "Pod",
            annotations={"gke-gcsfuse/volumes": "true", "gke-gcsfuse/memory-limit": "0"},
            spec=_with_bucket(),
        )
    ),
    "pods that stay apart": create(
        body(
            "Pod",
            spec=pod_spec(
                affinity={
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "kubernetes.io/hostname",
                                "labelSelector": {"matchLabels": {"app": "own"}},
                            }
                        ]
                    }
                }
            ),
        )
    ),
    "a Service": create(body("Service", spec={"ports": PORTS})),
    "a headless Service": create(body("Service", spec={"clusterIP": "None", "ports": PORTS})),
    "a ConfigMap": create(body("ConfigMap", data={"config.yaml": "x"})),
    "a ConfigMap with a program of 900 KiB": create(body("ConfigMap", data={"train.py": "x" * 900 * 1024})),
    "a ConfigMap that goes with its Job": create(
        {
            **body("ConfigMap"),
            "metadata": {
                "name": "attempt",
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "running", "uid": "{job_uid}"}
                ],
            },
        }
    ),
    "a Secret": create(body("Secret", stringData={"key": "value"})),
    "a narrower network policy": create(body("NetworkPolicy", spec={"podSelector": {}, "ingress": WITHIN})),
    "a network policy against egress": create(
        body(
            "NetworkPolicy",
            spec={
                "podSelector": {},
                "policyTypes": ["Egress"],
                "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
            },
        )
    ),
    "an autoscaler": create(
        body(
            "HorizontalPodAutoscaler",
            spec={
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "notebook"},
                "maxReplicas": 2,
            },
        )
    ),
    "scale": patch("Deployment", "notebook", {"spec": {"replicas": 3}}, sub="scale"),
    "another image": patch(
        "Deployment",
        "notebook",
        [
            {
                "op": "replace",
                "path": "/spec/template/spec/containers/0/image",
                "value": "example.com/other:1",
            },
        ],
    ),
    "a rollout": patch(
        "Deployment",
        "notebook",
        {
            "spec": {
                "template": {
                    "metadata": {
                        "annotations": {
                            "kubectl.kubernetes.io/restartedAt": "2026-11-27T00:00:00Z",
                        }
                    }
                }
            }
        },
    ),
    "write a Deployment as it was read": again("Deployment", "apps/v1", "notebook"),
    "write a running Job as it was read": again("Job", "batch/v1", "running"),
    "write a waiting JobSet as it was read": again("JobSet", "jobset.x-k8s.io/v1alpha2", "waiting-set"),
    "a label for a running Job": patch("Job", "running", {"metadata": {"labels": {"mine": "yes"}}}),
    "a label for a pod of a Job": patch("Pod", "{job_pod}", {"metadata": {"labels": {"mine": "yes"}}}),
    "a note on a pod that waits": patch("Pod", "gated", {"metadata": {"annotations": {"mine": "yes"}}}),
    "another class for a waiting Job": patch(
        "Job", "waiting", {"metadata": {"labels": {f"{KUEUE}priority-class": "production"}}}
    ),
    "pause a Job": patch("Job", "running", {"spec": {"suspend": True}}),
    "delete a Job": delete("Job", "running", propagationPolicy="Background"),
    "delete a Job after its pods": delete("Job", "running", propagationPolicy="Foreground"),
    "delete a Job as kubectl 1.0 did": delete("Job", "running", orphanDependents=False),
    "delete a JobSet": delete("JobSet", "set", propagationPolicy="Background"),
    "delete a Deployment and keep its pods": delete("Deployment", "notebook", propagationPolicy="Orphan"),
    "delete a pod": delete("Pod", "{notebook_pod}"),
    "delete a pod at once": delete("Pod", "{notebook_pod}", gracePeriodSeconds=1),
    "delete a pod that waits by force": delete("Pod", "gated", gracePeriodSeconds=0),
    "a pod that ends at once": create(body("Pod", spec=pod_spec(terminationGracePeriodSeconds=0))),
    "a pod with a small sidecar": create(body("Pod", spec=_with_sidecar())),
    "an event": create(
        body(
            "Event",
            involvedObject={"apiVersion": "v1", "kind": "Pod", "name": "gated", "namespace": "{own}"},
            reason="Started",
            message="x" * 1000,
        )
    ),
    "evict a pod": call(
        "POST",
        "/api/v1/namespaces/{own}/pods/{notebook_pod}/eviction",
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "{notebook_pod}"},
        },
    ),
    "a token of a day": call(
        "POST",
        "/api/v1/namespaces/{own}/serviceaccounts/default/token",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 86400},
        },
    ),
    "the workloads of the team": call("GET", "/apis/kueue.x-k8s.io/v1beta2/namespaces/{own}/workloads"),
    "the events of the team": call("GET", "/api/v1/namespaces/{own}/events"),
    "the claims of the team": create(
        body(
            "Pod",
            spec=pod_spec(
                volumes=[
                    {"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}},
                    {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
                ]
            ),
        )
    ),
}

# Requests that reach a kubelet, which these nodes do not have.
CONNECTIONS: dict[str, Send] = {
    "logs": call("GET", "/api/v1/namespaces/{own}/pods/{job_pod}/log"),
    "a shell": call("POST", "/api/v1/namespaces/{own}/pods/{job_pod}/exec", command="sh", stdout="true"),
    "a shell in a named container": call(
        "POST", "/api/v1/namespaces/{own}/pods/{job_pod}/exec", container="main", command="sh", stdout="true"
    ),
    "a forward": call("POST", "/api/v1/namespaces/{own}/pods/{notebook_pod}/portforward", ports="8888"),
    "its own Service through the API server": call("GET", "/api/v1/namespaces/{own}/services/served/proxy/"),
}
