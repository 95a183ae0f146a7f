"""Examples of the rules about SageMaker, and about what starts its jobs."""

from tests.rehearsal.aws.rules.world import DROP, Example, limit

_DOMAIN, _NOTEBOOK = "sagemaker/domain:Domain", "sagemaker/notebookInstance:NotebookInstance"
_TRACKING = "sagemaker/mlflowTrackingServer:MlflowTrackingServer"
_CLOSED = {"appNetworkAccessType": "VpcOnly", "defaultUserSettings.securityGroups": ["$efa"]}
_RSTUDIO = {"domainExecutionRoleArn": "$sage_role.arn"}
EXAMPLES: dict[str, Example] = {
    "AWS-SM-001": Example(_NOTEBOOK, "roleArn", {"roleArn": "$node_role.arn"}),
    "AWS-SM-002": Example(_DOMAIN, "subnetIds", {"subnetIds": ["$other_b"]}),
    "AWS-SM-003": Example(
        _NOTEBOOK,
        "subnetId",
        {"directInternetAccess": "Disabled"},
        {"directInternetAccess": "Disabled", "subnetId": "$a", "securityGroups": ["$efa"]},
    ),
    "AWS-SM-004": Example("sagemaker/model:Model", "primaryContainer", {"primaryContainer": DROP}),
    "AWS-SM-005": Example(
        _DOMAIN, "defaultUserSettings.securityGroups", {"appNetworkAccessType": "VpcOnly"}, _CLOSED
    ),
    "AWS-SM-006": Example(
        _DOMAIN,
        "appSecurityGroupManagement",
        {**_CLOSED, "domainSettings.rStudioServerProDomainSettings": _RSTUDIO},
        {
            **_CLOSED,
            "domainSettings.rStudioServerProDomainSettings": _RSTUDIO,
            "appSecurityGroupManagement": "Service",
        },
    ),
    "AWS-SM-007": Example(_DOMAIN, "retentionPolicy.homeEfsFileSystem", {"retentionPolicy": DROP}),
    "AWS-SCHED-001": Example(
        "scheduler/schedule:Schedule", "target.roleArn", {"target.roleArn": "$of_a_schedule.arn"}
    ),
    "AWS-LIM-140": limit(_NOTEBOOK, "name", "my-book", "-book"),
    "AWS-LIM-141": limit(_DOMAIN, "domainName", "lab", "lab_1"),
    "AWS-LIM-142": limit(_TRACKING, "trackingServerName", "mlflow-1", "mlflow_1"),
    "AWS-LIM-143": limit("sagemaker/featureGroup:FeatureGroup", "featureGroupName", "f_1", "_f"),
    "AWS-LIM-144": limit(_NOTEBOOK, "roleArn", "$sage_role.arn", "arn:aws:iam::1:user/a"),
    "AWS-LIM-145": limit(_NOTEBOOK, "volumeSize", 5, 4),
    "AWS-LIM-146": limit(_NOTEBOOK, "securityGroups", ["$efa"] * 5, ["$efa"] * 6),
    "AWS-LIM-148": limit(_TRACKING, "trackingServerSize", "Small", "Huge"),
    "AWS-LIM-149": limit(_DOMAIN, "subnetIds", ["$a"] * 16, ["$a"] * 17),
    "AWS-LIM-151": limit(_DOMAIN, "retentionPolicy.homeEfsFileSystem", "Delete", "Keep"),
    "AWS-LIM-153": limit(_DOMAIN, "defaultUserSettings.securityGroups", ["$efa"] * 5, ["$efa"] * 6),
}
