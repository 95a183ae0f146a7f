"""Types of which an account has none: what a program does with them shows as another type."""

_OLD = (
    *("bucket", "bucketLogging", "bucketVersioning", "bucketServerSideEncryptionConfiguration"),
    *("bucketLifecycleConfiguration", "bucketReplicationConfig", "bucketPublicAccessBlock"),
    "bucketWebsiteConfiguration",
)
ELSEWHERE = frozenset(
    (
        # Older names, and rules and attachments in another form.
        *(f"aws:s3/{name}V2:{name[0].upper()}{name[1:]}V2" for name in _OLD),
        "aws:alb/loadBalancer:LoadBalancer",
        "aws:dynamodb/tableReplica:TableReplica",
        "aws:ec2/securityGroupRule:SecurityGroupRule",
        "aws:iam/policyAttachment:PolicyAttachment",
        "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive",
        # What is left of a copy is a snapshot or an image, without a word of where it is from.
        "aws:ebs/snapshotCopy:SnapshotCopy",
        "aws:ec2/amiCopy:AmiCopy",
        "aws:rds/clusterSnapshotCopy:ClusterSnapshotCopy",
        "aws:rds/snapshotCopy:SnapshotCopy",
    )
)
BEYOND = {
    "kubernetes:": "an account of AWS does not tell what is in its clusters; audit a state, or a cluster",
    "aws:": "nothing asks an account for resources of this type",
}
