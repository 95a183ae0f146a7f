"""Run plans that the tests of the launchers share."""

from infra.launchers import pods
from infra.launchers.fabrics import on_nodes
from infra.launchers.gcp import gke
from infra.launchers.runplan import Mount, RunPlan, SageMakerOptions, SlurmOptions, VertexOptions

IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/train@sha256:" + "0a" * 32
LABELS = {"team": "research", "cost-center": "ml"}


def training() -> RunPlan:
    """Two whole p4d nodes of a team's run, with everything that most runs have."""
    return RunPlan(
        name="llama-7b",
        image=IMAGE,
        command=("train.py", "--config", "configs/7b.toml", "--note", "it's a $(HOME) test"),
        nodes=2,
        gpus_per_node=8,
        devices=pods.efa(4),
        cpu=80,
        memory_gib=900,
        env={"NCCL_DEBUG": "INFO", "MLFLOW_TRACKING_URI": "http://mlflow.mlflow.svc.cluster.local:5000"},
        mounts=(
            Mount(name="checkpoints", path="/checkpoints", claim="checkpoints", sub_path="llama-7b"),
            Mount(name="shared-memory", path="/dev/shm", memory_gib=450),
        ),
        namespace="team-research",
        service_account="training",
        queue="default",
        priority="production",
        labels=LABELS,
        node_labels={"trainstack.dev/pool": "a100"},
        timeout_s=86400,
        max_restarts=3,
        instance_type="p4d.24xlarge",
    )


def managed() -> RunPlan:
    """The same run where a service buys the machines and keeps the files."""
    from dataclasses import replace

    return replace(
        training(),
        mounts=(),
        sagemaker=SageMakerOptions(
            role_arn="arn:aws:iam::123456789012:role/training",
            output_uri="s3://acme-artifacts/runs",
            checkpoint_uri="s3://acme-checkpoints/llama-7b",
            subnets=("subnet-0123456789abcdef0",),
            security_groups=("sg-0123456789abcdef0",),
        ),
    )


def spot() -> RunPlan:
    """A run that brings its code, on a spot machine of the service."""
    from dataclasses import replace

    place = managed().sagemaker
    assert place is not None
    return replace(
        managed(),
        command=("python3", "/opt/ml/input/data/code/smoke_training.zip", "job"),
        command_per="node",
        nodes=1,
        gpus_per_node=0,
        instance_type="m7i.xlarge",
        sagemaker=replace(
            place,
            job_name="small-aws-ada-finetune-261126-153012",
            channels={"code": "s3://acme-artifacts/code/abc/", "data": "s3://acme-datasets/cats/"},
            code_channel="code",
            kms_key="arn:aws:kms:us-east-1:123456789012:key/12345678-1234-1234-1234-123456789012",
            volume_kms_key="arn:aws:kms:us-east-1:123456789012:key/12345678-1234-1234-1234-123456789012",
            spot=True,
            max_wait_s=172800,
        ),
    )


def vertex() -> RunPlan:
    """The same run on two A3 machines."""
    from dataclasses import replace

    return replace(
        training(),
        mounts=(),
        devices={},
        instance_type="a3-highgpu-8g",
        vertex=VertexOptions(
            accelerator_type="NVIDIA_H100_80GB",
            service_account="training@acme.iam.gserviceaccount.com",
            network="projects/12345/global/networks/training",
            output_uri="gs://acme-runs/llama-7b",
        ),
    )


def slurm() -> RunPlan:
    """The same run in a squash file on a partition."""
    from dataclasses import replace

    return replace(
        training(), slurm=SlurmOptions(partition="gpu", account="ml", image_file="/images/train.sqsh")
    )


def cpu() -> RunPlan:
    """Four CPU nodes that start their own ranks, as the validation does."""
    return RunPlan(
        name="validation",
        image=IMAGE,
        command=(
            "python",
            "/opt/trainstack/smoke_training.zip",
            "node",
            "--plan",
            "/opt/trainstack/plan.json",
        ),
        command_per="node",
        nodes=4,
        cpu=4,
        memory_gib=8,
        timeout_s=600,
    )


def _on_gke(instance_type: str, pool: str, devices: dict[str, str]) -> RunPlan:
    from dataclasses import replace

    return replace(
        training(),
        devices=devices,
        cpu=200,
        memory_gib=1700,
        node_labels={"trainstack.dev/pool": pool},
        instance_type=instance_type,
    )


def tcpxo() -> RunPlan:
    """The same run on two A3 Mega, with the networks of their GPUs."""
    networks = [f"mega-{index}" for index in range(8)]
    plan = _on_gke("a3-megagpu-8g", "mega", gke.network_requests(networks))
    return on_nodes(plan, gke.tcpxo(networks))


def tcpx() -> RunPlan:
    """The same run on two A3 High."""
    networks = [f"high-{index}" for index in range(4)]
    plan = _on_gke("a3-highgpu-8g", "high", gke.network_requests(networks))
    return on_nodes(plan, gke.tcpx(networks))


def gib() -> RunPlan:
    """The same run on two A3 Ultra, whose RDMA adapters it claims."""
    from dataclasses import replace

    plan = replace(_on_gke("a3-ultragpu-8g", "ultra", {}), device_claims={"rdma": "smoke-ultra"})
    return on_nodes(plan, gke.gib())


def gib_networks() -> RunPlan:
    """The same run on two A4, in RDMA networks that the stack made."""
    networks = [f"rdma-{index}" for index in range(8)]
    plan = _on_gke("a4-highgpu-8g", "b200", gke.network_requests(networks))
    return on_nodes(plan, gke.gib(networks))
