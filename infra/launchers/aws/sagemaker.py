"""Requests of SageMaker's CreateTrainingJob (pure): checked against the service model only."""

from infra.launchers.managed import START, part_of, start, unpacked
from infra.launchers.pods import Body, given
from infra.launchers.rendezvous import joining_command, joining_environment
from infra.launchers.runplan import RunPlan, SageMakerOptions

CODE_FOLDER = "/opt/ml/code"  # where the archive of the code is unpacked
# `hosts` is the same list on every node, in no promised order (SageMaker developer guide, "Distributed
# Training Configuration").
_SAGEMAKER = (
    "import json;"
    'c=json.load(open("/opt/ml/input/config/resourceconfig.json"));'
    'h=sorted(c["hosts"]);'
    'print(h.index(c["current_host"]),h[0])'
)


def training_job(plan: RunPlan) -> Body:
    """The request for `boto3.client("sagemaker").create_training_job(**request)`.

    Raises RunPlanError for fields that the service does not support.
    """
    missing = "sagemaker: missing; must be an object with role_arn and output_uri"
    place = part_of(plan, "SageMaker", plan.sagemaker, missing)
    machines = {
        "InstanceType": f"ml.{plan.instance_type}",
        "InstanceCount": plan.nodes,
        "VolumeSizeInGB": place.volume_gib,
        "VolumeKmsKeyId": place.volume_kms_key,
        "KeepAlivePeriodInSeconds": place.keep_alive_s,
        "TrainingPlanArn": place.training_plan_arn or None,
    }
    network = {"Subnets": list(place.subnets), "SecurityGroupIds": list(place.security_groups)}
    # The service accepts MaxWaitTimeInSeconds only for spot jobs, and at least MaxRuntimeInSeconds
    # (StoppingCondition of its API).
    max_wait_s = max(place.max_wait_s or 0, plan.deadline_s) if place.spot else None
    request = {
        "TrainingJobName": place.job_name or plan.name,
        "AlgorithmSpecification": {
            "TrainingImage": plan.image,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["bash", "-c", f'eval "${START}"', "node"],
            "ContainerArguments": joining_command(plan),
        },
        "Environment": {**joining_environment(plan), START: start(_SAGEMAKER, _unpack(plan, place))},
        "RoleArn": place.role_arn,
        "InputDataConfig": [_channel(name, uri) for name, uri in place.channels.items()] or None,
        "OutputDataConfig": given({"S3OutputPath": place.output_uri, "KmsKeyId": place.kms_key}),
        "ResourceConfig": given(machines),
        "StoppingCondition": given(
            {"MaxRuntimeInSeconds": plan.deadline_s, "MaxWaitTimeInSeconds": max_wait_s}
        ),
        "EnableManagedSpotTraining": place.spot,
        "CheckpointConfig": {"S3Uri": place.checkpoint_uri} if place.checkpoint_uri else None,
        "VpcConfig": network if place.subnets else None,
        "Tags": [{"Key": key, "Value": value} for key, value in plan.labels.items()] or None,
    }
    return given(request)


def _channel(name: str, uri: str) -> Body:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}, "InputMode": "File"}


def _unpack(plan: RunPlan, place: SageMakerOptions) -> str:
    """Return the prefix of the node's command that unpacks the code from a channel."""
    if place.code_channel is None:
        return ""
    return unpacked(plan, f"/opt/ml/input/data/{place.code_channel}", CODE_FOLDER)
