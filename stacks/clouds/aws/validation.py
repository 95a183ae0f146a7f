"""Permissions and results folder of the pods of a validation on AWS."""

from typing import Any

import pulumi

from components.aws import iam
from components.aws.cluster.eks import AwsCluster
from components.aws.pod_role import AwsPodRole, pod_identity
from infra.stackspec import StackSpec
from stacks.clouds.aws.storage import AwsStore
from stacks.parts import Alerts, ServiceAccount, ValidationAccess
from stacks.validation import RESULTS


def validation_on_aws(
    spec: StackSpec,
    *,
    eks: AwsCluster,
    store: AwsStore,
    pods: ServiceAccount,
    topic: pulumi.Output[str] | None,
    opts: pulumi.ResourceOptions,
) -> ValidationAccess:
    """A folder for results; `topic` is for a schedule.

    FSx for Lustre copies what is written to it at once; without it, the pods copy results themselves.
    """
    copies = store.checkpoints is None
    wanted = dict[str, pulumi.Output[str]]()
    if copies:
        wanted |= {"bucket": store.tiers.checkpoint_bucket_arn, "key": store.tiers.kms_key_arn}
    if topic is not None:
        wanted["topic"] = topic
    ready = []
    if wanted:
        role = AwsPodRole(
            f"{spec.name}-smoke-role",
            {
                "cluster_name": eks.cluster_name,
                "cluster_arn": eks.cluster_arn,
                "namespace": pods.namespace,
                "service_account": pods.name,
                "policy": pulumi.Output.all(**wanted).apply(lambda known: _rights(spec.region, **known)),
            },
            opts,
        )
        ready.append(role)
    return ValidationAccess(
        environment=pod_identity(spec.region)["environment"],
        results=pulumi.Output.concat(store.checkpoint_uri, RESULTS),
        copies_results=copies,
        alerts=None if topic is None else Alerts(topic=topic, plan={"alert_topic_arn": topic}),
        ready=ready,
    )


def _rights(
    region: str, *, bucket: str | None = None, key: str | None = None, topic: str | None = None
) -> str:
    """The policy: write but not read results; use the key only through S3."""
    statements = list[dict[str, Any]]()
    if bucket is not None and key is not None:
        through = {"StringEquals": {"kms:ViaService": [f"s3.{region}.amazonaws.com"]}}
        statements.append(iam.allow(["s3:PutObject"], [f"{bucket}{RESULTS}/*"]))
        statements.append({**iam.allow(["kms:GenerateDataKey"], [key]), "Condition": through})
    if topic is not None:
        statements.append(iam.allow(["sns:Publish"], [topic]))
    return iam.document(*statements)
