"""Resources of the account in which the examples of rules are checked."""

import json
from typing import Any

from tests.rehearsal.aws.rules.world import ACCOUNT, World, policy, trust

SCALER = "aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
_GROUP = "ec2/securityGroup:SecurityGroup"
_TEMPLATE = "ec2/launchTemplate:LaunchTemplate"
_LINK = "fsx/dataRepositoryAssociation:DataRepositoryAssociation"


def furnish(world: World) -> None:
    """Create every resource that bases and examples refer to."""
    _networks(world)
    _taken_addresses(world)
    _roles(world)
    _keys(world)
    _clusters(world)
    _templates(world)
    _files(world)
    _others(world)
    _slurm(world)


def _networks(world: World) -> None:
    for name, block in (("vpc", "10.0.0.0/16"), ("other", "10.1.0.0/16"), ("bare", "10.2.0.0/16")):
        world.add("ec2/vpc:Vpc", name, cidrBlock=block, enableDnsHostnames=name != "bare")
    for name, vpc, block, zone in (
        ("a", "vpc", "10.0.0.0/24", "a"),
        ("a2", "vpc", "10.0.1.0/24", "a"),
        ("b", "vpc", "10.0.2.0/24", "b"),
        ("other_b", "other", "10.1.0.0/24", "b"),
        ("bare_a", "bare", "10.2.0.0/24", "a"),
        ("closed", "vpc", "10.0.3.0/24", "a"),
        ("public", "vpc", "10.0.4.0/24", "a"),
        ("given", "vpc", "10.0.5.0/24", "a"),
        ("narrow", "vpc", "10.0.6.0/28", "a"),
        ("crowded", "vpc", "10.0.6.16/28", "a"),
        ("halved", "vpc", "10.0.6.32/28", "a"),
    ):
        world.add(
            "ec2/subnet:Subnet", name, vpcId=f"${vpc}", cidrBlock=block, availabilityZone=f"us-east-1{zone}",
            mapPublicIpOnLaunch=name == "given",
        )  # fmt: skip
    for name, vpc in (("igw", "vpc"), ("other_igw", "other")):
        world.add("ec2/internetGateway:InternetGateway", name, vpcId=f"${vpc}")
    world.add("ec2/routeTable:RouteTable", "table", vpcId="$vpc")
    world.add(
        "ec2/route:Route", "out", routeTableId="$table", destinationCidrBlock="0.0.0.0/0", gatewayId="$igw"
    )
    world.add("ec2/routeTable:RouteTable", "shut", vpcId="$vpc")
    for name, table in (("closed", "shut"), ("public", "table"), ("given", "table")):
        association = {"subnetId": f"${name}", "routeTableId": f"${table}"}
        world.add("ec2/routeTableAssociation:RouteTableAssociation", f"{name}_table", **association)
    world.add(
        "ec2/vpcEndpoint:VpcEndpoint",
        "s3",
        vpcId="$vpc",
        serviceName="com.amazonaws.us-east-1.sts",
        vpcEndpointType="Interface",
        privateDnsEnabled=True,
        subnetIds=["$a"],
    )
    world.add(_GROUP, "other_group", vpcId="$other")
    for name, ways in (("efa", ("In", "E")), ("no_in", ("E",)), ("no_out", ("In",))):
        world.add(_GROUP, name, vpcId="$vpc")
        for way in ways:
            token = f"vpc/securityGroup{way}gressRule:SecurityGroup{way}gressRule"
            peer = {"securityGroupId": f"${name}", "referencedSecurityGroupId": f"${name}"}
            world.add(token, f"{name}_{way}", ipProtocol="-1", **peer)
    world.add(
        "vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        "wide",
        securityGroupId="$no_out",
        ipProtocol="-1",
        cidrIpv4="0.0.0.0/0",
    )


def _taken_addresses(world: World) -> None:
    for index in range(7):
        world.add("ec2/networkInterface:NetworkInterface", f"interface{index}", subnetId="$crowded")
    half = {"subnetId": "$halved", "cidrBlock": "10.0.6.40/29", "reservationType": "prefix"}
    world.add("ec2/subnetCidrReservation:SubnetCidrReservation", "half", **half)


_SCHEDULER = f"arn:aws:scheduler:*:{ACCOUNT}"


def _roles(world: World) -> None:
    both = ["sts:AssumeRole", "sts:TagSession"]
    for name, trusted in (
        ("eks_role", trust("eks.amazonaws.com")),
        ("node_role", trust("ec2.amazonaws.com")),
        ("pod_role", trust("pods.eks.amazonaws.com", actions=both)),
        ("admin", trust("ec2.amazonaws.com")),
        ("half_pod_role", trust("pods.eks.amazonaws.com")),
        ("lambda_role", trust("lambda.amazonaws.com")),
        ("vpc_lambda_role", trust("lambda.amazonaws.com")),
        ("sage_role", trust("sagemaker.amazonaws.com")),
        ("lonely", trust("ec2.amazonaws.com")),
        ("of_a_group", trust("scheduler.amazonaws.com", source=f"{_SCHEDULER}:schedule-group/*")),
        ("of_a_schedule", trust("scheduler.amazonaws.com", source=f"{_SCHEDULER}:schedule/*")),
    ):
        world.add("iam/role:Role", name, assumeRolePolicy=trusted)
    rights = policy(Action="ec2:*NetworkInterface*")
    world.add("iam/rolePolicy:RolePolicy", "makes_interfaces", role="$vpc_lambda_role", policy=rights)
    logs = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
    attached = {"role": "$lambda_role", "policyArn": logs}
    world.add("iam/rolePolicyAttachment:RolePolicyAttachment", "writes_logs", **attached)
    world.add("route53/zone:Zone", "zone", name="shop.test")
    worker = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
    for role in ("node_role", "eks_role"):
        attached = {"role": f"${role}", "policyArn": worker}
        world.add("iam/rolePolicyAttachment:RolePolicyAttachment", f"{role}_joins", **attached)


def _keys(world: World) -> None:
    root = f"arn:aws:iam::{ACCOUNT}:root"
    scaling = f"arn:aws:iam::{ACCOUNT}:role/{SCALER}"
    for name, principals in (
        ("disk_key", {"AWS": [root, scaling]}),
        ("log_key", {"AWS": root, "Service": "logs.us-east-1.amazonaws.com"}),
    ):
        world.add("kms/key:Key", name, policy=policy(Principal=principals, Action="kms:*"))
    world.add("kms/key:Key", "plain_key")


def _clusters(world: World) -> None:
    modes = {"cluster": "API", "old_cluster": "CONFIG_MAP", "bare_cluster": "API", "delegating": "API"}
    for name, mode in modes.items():
        world.add(
            "eks/cluster:Cluster",
            name,
            name=name.replace("_", "-"),
            roleArn="$eks_role.arn",
            version="1.33",
            vpcConfig={"subnetIds": ["$a", "$b"]},
            accessConfig={"authenticationMode": mode},
            bootstrapSelfManagedAddons=name != "bare_cluster",
        )
    env = {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "2"}
    world.add(
        "eks/addon:Addon",
        "delegating_cni",
        clusterName="$delegating",
        addonName="vpc-cni",
        configurationValues=json.dumps({"env": env}),
    )
    for name, principal, kind in (("entry", "admin", "STANDARD"), ("node_entry", "node_role", "EC2_LINUX")):
        entry = {"clusterName": "$cluster", "principalArn": f"${principal}.arn", "type": kind}
        world.add("eks/accessEntry:AccessEntry", name, **entry)


def _templates(world: World) -> None:
    block: dict[str, Any] = {"instanceMarketOptions": {"marketType": "capacity-block"}}
    target = {
        "capacityReservationSpecification": {
            "capacityReservationTarget": {"capacityReservationId": "$reserved"}
        }
    }
    world.add(
        "ec2/capacityReservation:CapacityReservation",
        "reserved",
        availabilityZone="us-east-1a",
        instanceCount=1,
        instancePlatform="Linux/UNIX",
        instanceType="p5.48xlarge",
    )
    world.add("ec2/placementGroup:PlacementGroup", "near", strategy="cluster")
    for name, group in (("lt_efa", "efa"), ("lt_no_in", "no_in"), ("lt_no_out", "no_out")):
        device = {"interfaceType": "efa", "securityGroups": [f"${group}"]}
        world.add(_TEMPLATE, name, instanceType="p4d.24xlarge", networkInterfaces=[device])
    world.add(_TEMPLATE, "lt_block", instanceType="p5.48xlarge", **block, **target)
    world.add(_TEMPLATE, "lt_half", instanceType="p5.48xlarge", **block)
    world.add(_TEMPLATE, "lt_subnet", instanceType="g6.2xlarge", networkInterfaces=[{"subnetId": "$a"}])
    world.add(_TEMPLATE, "lt_image", instanceType="g6.2xlarge", imageId="ami-0123456789abcdef0")
    world.add(_TEMPLATE, "lt_placed", instanceType="g6.2xlarge", placement={"groupName": "$near"})
    world.add(_TEMPLATE, "lt_plain", instanceType="g6.2xlarge")
    world.add(_TEMPLATE, "lt_open")
    for name, key in (("lt_disk", "disk_key"), ("lt_shut", "plain_key")):
        disk = {"deviceName": "/dev/xvda", "ebs": {"encrypted": "true", "kmsKeyId": f"${key}.arn"}}
        world.add(_TEMPLATE, name, instanceType="g6.2xlarge", blockDeviceMappings=[disk])


def _files(world: World) -> None:
    for name, bucket in (("bucket", "example-data"), ("fresh", "example-new"), ("owned", "example-owned")):
        world.add("s3/bucket:Bucket", name, bucket=bucket)
    world.add("s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "opened", bucket="$bucket")
    controls = {"bucket": "$owned", "rule": {"objectOwnership": "BucketOwnerPreferred"}}
    world.add("s3/bucketOwnershipControls:BucketOwnershipControls", "controls", **controls)
    world.add(
        "s3/bucketVersioning:BucketVersioning",
        "versioned",
        bucket="$bucket",
        versioningConfiguration={"status": "Enabled"},
    )
    lustre = {"subnetIds": "$a", "storageCapacity": 1200, "deploymentType": "SCRATCH_2"}
    for name in ("fs", "full"):
        world.add("fsx/lustreFileSystem:LustreFileSystem", name, **lustre)
    world.add("fsx/lustreFileSystem:LustreFileSystem", "first", **{**lustre, "deploymentType": "SCRATCH_1"})
    for system, name in (("fs", "taken"), *(("full", f"number{index}") for index in range(8))):
        link = {"fileSystemPath": f"/{name}", "dataRepositoryPath": f"s3://$bucket/{name}"}
        world.add(_LINK, name, fileSystemId=f"${system}", **link)
    world.add("efs/fileSystem:FileSystem", "homes")
    world.add("efs/fileSystem:FileSystem", "one_zone", availabilityZoneName="us-east-1b")
    world.add("efs/mountTarget:MountTarget", "in_a", fileSystemId="$homes", subnetId="$a")


def _others(world: World) -> None:
    database = {"engine": "aurora-postgresql", "engineVersion": "16.6", "manageMasterUserPassword": True}
    database |= {"masterUsername": "root1", "skipFinalSnapshot": True}
    capacity = {"serverlessv2ScalingConfiguration": {"minCapacity": 0.5, "maxCapacity": 1}}
    world.add("rds/cluster:Cluster", "aurora", **database, **capacity)
    world.add("rds/cluster:Cluster", "fixed", **database)
    stored: dict[str, Any] = {"identifier": "stored", "engine": "postgres", "instanceClass": "db.t4g.micro"}
    stored |= {"username": "root1", "password": "longenough", "allocatedStorage": 30}
    world.add("rds/instance:Instance", "stored", **stored)
    world.add("autoscaling/group:Group", "workers", minSize=0, maxSize=2)
    world.add(
        "costexplorer/anomalyMonitor:AnomalyMonitor",
        "services",
        monitorType="DIMENSIONAL",
        monitorDimension="SERVICE",
    )


def _slurm(world: World) -> None:
    """A cluster of AWS PCS without groups, and the identity of its nodes."""
    world.add("iam/role:Role", "pcs_role", assumeRolePolicy=trust("ec2.amazonaws.com"), path="/aws-pcs/")
    world.add("iam/instanceProfile:InstanceProfile", "pcs_profile", role="$pcs_role.name")
    scheduler = {"Type": "SLURM", "Version": "25.11"}
    state = {"Name": "train", "Size": "SMALL", "Scheduler": scheduler, "Networking": {"SubnetIds": ["$a"]}}
    cluster = {"typeName": "AWS::PCS::Cluster", "desiredState": json.dumps(state)}
    world.add("cloudcontrol/resource:Resource", "pcs", **cluster)
