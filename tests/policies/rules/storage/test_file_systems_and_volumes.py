"""File systems and volumes: variants that pass, fail or are undetermined."""

from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.kubernetes.test_pods import one, results

LUSTRE, EFS = "aws:fsx/lustreFileSystem:LustreFileSystem", "aws:efs/fileSystem:FileSystem"
POOL = "aws:eks/nodeGroup:NodeGroup"
SERVICES_KEY = "arn:aws:kms:us-east-1:123456789012:key/of-fsx"


def made(kind: str, name: str = "it", /, **props: Any) -> Resource:
    arn = f"arn:aws:x:us-east-1:123456789012:{name}"
    return Resource(kind, name, name, id=name, region="us-east-1", props={"arn": arn, **props}, asked=props)


def lustre(**props: Any) -> Resource:
    return made(LUSTRE, **{"deploymentType": "PERSISTENT_2", **props})


def test_a_key_that_the_service_filled_in_is_not_ours() -> None:
    assert results("MLS-STO-05", lustre(kmsKeyId=SERVICES_KEY)) == {"pass"}
    filled = Resource(LUSTRE, "it", "it", props={"deploymentType": "PERSISTENT_1", "kmsKeyId": SERVICES_KEY})
    assert results("MLS-STO-05", filled) == {"undetermined"}
    asked = Resource(LUSTRE, "it", "it", props=filled.props, asked={"deploymentType": "PERSISTENT_1"})
    assert results("MLS-STO-05", asked) == {"fail"}
    assert results("MLS-STO-05", made(LUSTRE)) == {"not-applicable"}


LINK = made("aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation", "link", fileSystemId="it")
SELECTION = "aws:backup/selection:Selection"
TAGGED = {"selectionTags": [{"type": "STRINGEQUALS", "key": "backup", "value": "daily"}]}
CONDITIONS = {"conditions": [{"stringEquals": [{"key": "aws:ResourceTag/a", "value": "b"}]}]}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([lustre(automaticBackupRetentionDays=7)], "pass"),
        ([lustre(automaticBackupRetentionDays=0)], "fail"),
        ([lustre(), LINK], "pass"),
        ([lustre(deploymentType="PERSISTENT_1", importPath="s3://data")], "pass"),
        ([made(LUSTRE), LINK], "pass"),
        ([made(LUSTRE, automaticBackupRetentionDays=7)], "fail"),
        ([lustre(), made(SELECTION, "plan", resources=["*"])], "pass"),
        ([lustre(), made(SELECTION, "plan", resources=["arn:aws:x:*:*:it"])], "pass"),
        ([lustre(), made(SELECTION, "plan", resources=["arn:aws:x:*:*:other"])], "fail"),
        ([lustre(), made(SELECTION, "plan", resources=["*"], notResources=["arn:aws:x:*"])], "fail"),
        ([lustre(), made(SELECTION, "plan", resources=["*"], **CONDITIONS)], "undetermined"),
        ([lustre(), made(SELECTION, "plan", **TAGGED)], "fail"),
        ([Resource(LUSTRE, "it", "it", props=lustre().props, tags={"backup": "daily"})], "fail"),
    ],
)
def test_lustre_has_a_second_copy(resources: list[Resource], expected: str) -> None:
    assert results("MLS-STO-06", *resources) == {expected}


def test_a_plan_may_select_by_tag() -> None:
    tagged = Resource(LUSTRE, "it", "it", props=lustre().props, tags={"backup": "daily"})
    assert results("MLS-STO-06", tagged, made(SELECTION, "plan", **TAGGED)) == {"pass"}


def test_what_has_no_backups_has_none_without_tags() -> None:
    assert results("MLS-STO-07", made(LUSTRE)) == {"not-applicable"}
    assert results("MLS-STO-07", lustre(), LINK) == {"not-applicable"}


def policy(status: str) -> Resource:
    kind = "aws:efs/backupPolicy:BackupPolicy"
    return made(kind, "backup", fileSystemId="it", backupPolicy={"status": status})


POINT = "aws:efs/accessPoint:AccessPoint"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([made(EFS, encrypted=True), policy("ENABLED")], {"pass"}),
        ([made(EFS), policy("ENABLED")], {"fail"}),
        ([made(EFS, encrypted=True)], {"fail"}),
        ([made(EFS, encrypted=True, availabilityZoneName="us-east-1a")], {"pass"}),
        ([made(EFS, encrypted=True, availabilityZoneName="us-east-1a"), policy("DISABLED")], {"fail"}),
        ([made(EFS, encrypted=True), made(SELECTION, "plan", resources=["*"])], {"pass"}),
        ([made(POINT, posixUser={"uid": 1, "gid": 1}, rootDirectory={"path": "/a"})], {"pass"}),
        ([made(POINT, posixUser={"uid": 1, "gid": 1}, rootDirectory={"path": "/"})], {"fail"}),
        ([made(POINT, rootDirectory={"path": "/a"})], {"fail"}),
    ],
)
def test_homes(resources: list[Resource], expected: set[str]) -> None:
    assert results("MLS-STO-08", *resources) == expected


TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
USUAL = made("aws:ebs/encryptionByDefault:EncryptionByDefault", "usual", enabled=True)


def disk(name: str = "/dev/xvda", **ebs: Any) -> dict[str, Any]:
    return {"deviceName": name, "ebs": ebs}


CLASS = "storage.k8s.io/v1:StorageClass"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([made(TEMPLATE, blockDeviceMappings=[disk(encrypted="true")])], "pass"),
        ([made(TEMPLATE, blockDeviceMappings=[disk(encrypted=True, deleteOnTermination="false")])], "fail"),
        ([made(TEMPLATE, blockDeviceMappings=[disk()])], "fail"),
        ([made(TEMPLATE, blockDeviceMappings=[disk()]), USUAL], "pass"),
        ([made(TEMPLATE, blockDeviceMappings=[disk(snapshotId="snap-1")])], "undetermined"),
        ([made(TEMPLATE, blockDeviceMappings=[disk("/dev/xvdb", encrypted="true")])], "fail"),
        (
            [made(TEMPLATE, imageId="ami-1", blockDeviceMappings=[disk("/dev/xvdb", encrypted="true")])],
            "undetermined",
        ),
        ([made(TEMPLATE)], "fail"),
        ([made(TEMPLATE), USUAL], "pass"),
        ([made("aws:ebs/volume:Volume", encrypted=True)], "pass"),
        ([made("aws:ebs/volume:Volume")], "fail"),
        ([made("aws:ec2/instance:Instance", ami="a", rootBlockDevice={"encrypted": True})], "pass"),
        (
            [
                made(
                    "aws:ec2/instance:Instance",
                    rootBlockDevice={"encrypted": True},
                    ebsBlockDevices=[{"encrypted": False}],
                )
            ],
            "fail",
        ),
        ([made("aws:eks/nodeGroup:NodeGroup")], "fail"),
        ([made("aws:eks/nodeGroup:NodeGroup"), USUAL], "pass"),
        ([made("aws:eks/nodeGroup:NodeGroup", launchTemplate={"id": "lt-1"})], "not-applicable"),
        ([one(CLASS, provisioner="ebs.csi.aws.com", parameters={"encrypted": "true"})], "pass"),
        ([one(CLASS, provisioner="ebs.csi.aws.com", parameters={"type": "gp3"})], "fail"),
        ([one(CLASS, provisioner="efs.csi.aws.com")], "not-applicable"),
    ],
)
def test_volumes(resources: list[Resource], expected: str) -> None:
    assert results("MLS-STO-09", *resources) == {expected}


RDS, GKE = "aws:rds/instance:Instance", "gcp:container/cluster:Cluster"


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (made("aws:s3/bucketV2:BucketV2"), "pass"),
        (made("gcp:storage/bucket:Bucket", forceDestroy=True), "fail"),
        (made(RDS, deletionProtection=True), "pass"),
        (made(RDS, deletionProtection=True, skipFinalSnapshot=True), "fail"),
        (made(RDS, deletionProtection=True, skipFinalSnapshot=True, replicateSourceDb="main"), "pass"),
        (made(EFS), "fail"),
        (Resource(EFS, "it", "it", protect=True), "pass"),
        (Resource(EFS, "it", "it", tags={"Environment": "dev"}), "not-applicable"),
        (Resource(EFS, "it", "it", tags={"Environment": "Prod"}), "fail"),
        (made(GKE), "pass"),
        (made(GKE, deletionProtection=False), "fail"),
        (made("aws:eks/cluster:Cluster"), "fail"),
    ],
)
def test_production_is_hard_to_delete(kept: Resource, expected: str) -> None:
    assert results("MLS-STO-10", kept) == {expected}


def test_a_team_may_say_that_it_has_no_production() -> None:
    assert results("MLS-STO-10", made(EFS), production=False) == {"not-applicable"}
    tagged = Resource(EFS, "it", "it", tags={"stage": "live"})
    assert results("MLS-STO-10", tagged, production=False) == {"fail"}


SUBNETS = [made("aws:ec2/subnet:Subnet", zone, availabilityZone=zone) for zone in "abc"]


def pool(*zones: str, image: str = "AL2023_x86_64_NVIDIA", **props: Any) -> Resource:
    return made(POOL, "pool", subnetIds=list(zones), amiType=image, **props)


def target(zone: str) -> Resource:
    return made("aws:efs/mountTarget:MountTarget", f"target-{zone}", fileSystemId="it", subnetId=zone)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([pool("a"), lustre(subnetIds="a")], "pass"),
        ([pool("a", "b"), lustre(subnetIds="a")], "pass"),
        ([pool("b"), lustre(subnetIds="a")], "fail"),
        ([pool("a"), made(EFS), target("a"), target("b")], "pass"),
        ([pool("a", "c"), made(EFS), target("a"), target("b")], "fail"),
        ([pool("a")], "not-applicable"),
        (
            [pool("b", image="AL2023_x86_64_STANDARD", instanceTypes=["m7i.large"]), lustre()],
            "not-applicable",
        ),
        ([pool("b", image="CUSTOM", instanceTypes=["p5.48xlarge"]), lustre(subnetIds="a")], "fail"),
        (
            [pool("b", image="CUSTOM", launchTemplate={"id": "lt-other"}), lustre(subnetIds="a")],
            "undetermined",
        ),
        ([pool("elsewhere"), lustre(subnetIds="a")], "undetermined"),
        # The groups of one pool, one in each zone.
        (
            [
                made("aws:ec2/launchTemplate:LaunchTemplate", "lt"),
                *(
                    made(
                        POOL, f"pool-{zone}", subnetIds=[zone], amiType="NVIDIA", launchTemplate={"id": "lt"}
                    )
                    for zone in "ab"
                ),
                lustre(subnetIds="a"),
            ],
            "pass",
        ),
    ],
)
def test_accelerators_are_beside_their_data(resources: list[Resource], expected: str) -> None:
    assert results("MLS-STO-11", *resources, *SUBNETS) == {expected}
