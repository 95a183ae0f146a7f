"""Types that an account never reports: their effect is part of another type."""

_OLD = (
    *("bucket", "bucketLogging", "bucketVersioning", "bucketServerSideEncryptionConfiguration"),
    *("bucketLifecycleConfiguration", "bucketReplicationConfig", "bucketPublicAccessBlock"),
    *("bucketWebsiteConfiguration", "bucketAcl", "bucketPolicy"),
)
ABSENT = frozenset(
    (
        # Older names, and other forms of rules and attachments.
        *(f"aws:s3/{name}V2:{name[0].upper()}{name[1:]}V2" for name in _OLD),
        "aws:alb/loadBalancer:LoadBalancer",
        "aws:applicationloadbalancing/loadBalancer:LoadBalancer",
        "aws:elasticloadbalancing/loadBalancer:LoadBalancer",
        # Blocks of public access and the logs of buckets, which are read, say what these allow.
        "aws:elb/loadBalancer:LoadBalancer",
        "aws:s3/bucketAcl:BucketAcl",
        "aws:s3/bucketPolicy:BucketPolicy",
        "aws:dynamodb/tableReplica:TableReplica",
        "aws:ec2/securityGroupRule:SecurityGroupRule",
        "aws:iam/policyAttachment:PolicyAttachment",
        "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive",
        "aws:iam/userPolicyAttachmentsExclusive:UserPolicyAttachmentsExclusive",
        "aws:iam/groupPolicyAttachmentsExclusive:GroupPolicyAttachmentsExclusive",
        # A permission set is a role in each account that it is assigned to.
        "aws:ssoadmin/managedPolicyAttachment:ManagedPolicyAttachment",
        "aws:ssoadmin/permissionSetInlinePolicy:PermissionSetInlinePolicy",
        # A copy is a snapshot or an image, without a reference to its source.
        "aws:ebs/snapshotCopy:SnapshotCopy",
        "aws:ec2/amiCopy:AmiCopy",
        "aws:rds/clusterSnapshotCopy:ClusterSnapshotCopy",
        "aws:rds/snapshotCopy:SnapshotCopy",
    )
)
# Rules about these are decided by a state or a preview; a live audit says that it did not read them.
_PLAIN = "plain variables and sizes of this service are not read from an account; audit a state"
_NOT_READ = (
    "aws:appautoscaling/target:Target",
    "aws:apprunner/service:Service",
    "aws:batch/jobDefinition:JobDefinition",
    "aws:codebuild/project:Project",
    "aws:ecs/taskDefinition:TaskDefinition",
    "aws:lambda/function:Function",
    "aws:redshift/cluster:Cluster",
    "aws:redshiftserverless/workgroup:Workgroup",
    "aws:sagemaker/endpointConfiguration:EndpointConfiguration",
    "aws:sagemaker/model:Model",
    "aws:sagemaker/notebookInstance:NotebookInstance",
    "aws:sagemaker/notebookInstanceLifecycleConfiguration:NotebookInstanceLifecycleConfiguration",
)
_RESOURCE_POLICIES = (
    "aws:ecr/repositoryPolicy:RepositoryPolicy",
    "aws:kms/keyPolicy:KeyPolicy",
    "aws:lambda/permission:Permission",
    "aws:secretsmanager/secretPolicy:SecretPolicy",
    "aws:sns/topic:Topic",
    "aws:sns/topicPolicy:TopicPolicy",
    "aws:sqs/queue:Queue",
    "aws:sqs/queuePolicy:QueuePolicy",
)
UNREPORTED = {
    **dict.fromkeys(_NOT_READ, _PLAIN),
    **dict.fromkeys(
        (
            "aws:ec2/managedPrefixList:ManagedPrefixList",
            "aws:ec2/managedPrefixListEntry:ManagedPrefixListEntry",
        ),
        "prefix lists are not read from an account; audit a state",
    ),
    **dict.fromkeys(_RESOURCE_POLICIES, "its policy is not read from an account; audit a state"),
    "aws:cloudcontrol/resource:Resource": "groups of PCS are not read from an account; audit a state",
    "kubernetes:": "an account of AWS does not report objects in its clusters; audit a state, or a cluster",
    "aws:": "resources of this type are not read from an account",
}
