"""SageMaker: roles, networks and variants; names are in `limits`."""

from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import is_set, subnets, trusts
from rehearsal.core.model import Properties
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation

_ROLES = {
    "aws:sagemaker/model:Model": "executionRoleArn",
    "aws:sagemaker/notebookInstance:NotebookInstance": "roleArn",
    "aws:sagemaker/pipeline:Pipeline": "roleArn",
    "aws:sagemaker/mlflowTrackingServer:MlflowTrackingServer": "roleArn",
    "aws:sagemaker/mlflowApp:MlflowApp": "roleArn",
    "aws:sagemaker/featureGroup:FeatureGroup": "roleArn",
    "aws:sagemaker/trainingJob:TrainingJob": "roleArn",
    "aws:sagemaker/domain:Domain": "defaultUserSettings.executionRole",
}
_DOMAIN = "aws:sagemaker/domain:Domain"
_API = "botocore 1.44.5 sagemaker/2017-07-24"


@BOOK.rule_around(
    "AWS-SM-001", *_ROLES, source="awslabs/predictive-maintenance-using-machine-learning issue 3"
)
def role_trusts_sagemaker(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The execution role lets SageMaker assume it."""
    for path in dict.fromkeys(_ROLES.values()):
        role = site.find(at(inputs, path), "iam/role:Role")
        if role and not trusts(role, "sagemaker.amazonaws.com"):
            yield Violation(
                path,
                f"Could not assume role {role.outputs.get('arn')}.",
                "Let sagemaker.amazonaws.com do sts:AssumeRole.",
                "ValidationException",
            )


@BOOK.rule_around("AWS-SM-002", _DOMAIN, source=f"{_API} CreateDomainRequest (SubnetIds: the VPC subnets)")
def domain_subnets_of_its_vpc(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A domain's subnets are in its VPC."""
    vpc = site.find(inputs.get("vpcId"), "ec2/vpc:Vpc")
    for subnet in subnets(site, inputs.get("subnetIds")) if vpc else []:
        if vpc and subnet.outputs.get("vpcId") != vpc.id:
            yield Violation(
                "subnetIds",
                f"{subnet.id} is not in {vpc.id}",
                "Use subnets of that VPC.",
                "ValidationException",
            )
            return


@BOOK.rule("AWS-SM-006", _DOMAIN, source=f"{_API} CreateDomainRequest (AppSecurityGroupManagement)")
def closed_rstudio_needs_managed_groups(inputs: Properties) -> Iterator[Violation]:
    """RStudio in a domain whose traffic stays in the VPC needs groups that SageMaker manages."""
    role = at(inputs, "domainSettings.rStudioServerProDomainSettings.domainExecutionRoleArn")
    managed = inputs.get("appSecurityGroupManagement")
    if inputs.get("appNetworkAccessType") == "VpcOnly" and is_set(role) and managed in (None, "Customer"):
        message = "RStudio in a VpcOnly domain needs the value Service"
        yield Violation("appSecurityGroupManagement", message, "Set it to Service.")


@BOOK.rule_around(
    "AWS-SM-007",
    _DOMAIN,
    source="hashicorp/terraform-provider-aws issue 20986 (the retained file system holds the subnet)",
    advice=True,
)
def retained_home_holds_its_subnets(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Subnets that the program makes cannot be deleted when a domain in them keeps its file system."""
    path = "retentionPolicy.homeEfsFileSystem"
    own = [subnet for subnet in subnets(site, inputs.get("subnetIds")) if subnet.urn]
    if own and at(inputs, path) in (None, "Retain"):
        yield Violation(
            path,
            f"the home file system outlives the domain, and {own[0].id} cannot be deleted while it exists",
            "Set it to Delete, unless its content is worth more than the subnets.",
        )
