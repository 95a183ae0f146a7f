"""Thirty resources of AWS and Kubernetes that depend on each other; only the core SDK, which starts fast."""

import json
from collections.abc import Mapping

import pulumi
from pulumi import ResourceOptions


class Thing(pulumi.CustomResource):
    def __init__(
        self, token: str, name: str, props: Mapping[str, object], opts: ResourceOptions | None = None
    ) -> None:
        known = ("arn", "endpoint", "name", "keyId", "bucket")
        super().__init__(token, name, {**dict.fromkeys(known), **props}, opts)


def get(thing: Thing, name: str) -> pulumi.Output[str]:
    return pulumi.Output.from_input(thing.__dict__[name])


def trust(service: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def network() -> list[Thing]:
    vpc = Thing("aws:ec2/vpc:Vpc", "vpc", {"cidrBlock": "10.0.0.0/16"})
    gateway = Thing("aws:ec2/internetGateway:InternetGateway", "igw", {"vpcId": vpc.id})
    route = {"cidrBlock": "0.0.0.0/0", "gatewayId": gateway.id}
    table = Thing("aws:ec2/routeTable:RouteTable", "routes", {"vpcId": vpc.id, "routes": [route]})
    subnets = []
    for index, zone in enumerate("abc"):
        props = {"vpcId": vpc.id, "cidrBlock": f"10.0.{index}.0/24", "availabilityZone": f"us-east-1{zone}"}
        subnets.append(Thing("aws:ec2/subnet:Subnet", f"subnet-{zone}", props))
        link = {"routeTableId": table.id, "subnetId": subnets[-1].id}
        Thing("aws:ec2/routeTableAssociation:RouteTableAssociation", f"link-{zone}", link)
    Thing("aws:ec2/securityGroup:SecurityGroup", "group", {"vpcId": vpc.id, "description": "d"})
    return subnets


def cluster(subnets: list[Thing]) -> pulumi.ProviderResource:
    role = Thing("aws:iam/role:Role", "cluster", {"assumeRolePolicy": trust("eks.amazonaws.com")})
    policy = {"role": get(role, "name"), "policyArn": "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"}
    attached = Thing("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "cluster", policy)
    props = {"roleArn": get(role, "arn"), "vpcConfig": {"subnetIds": [subnet.id for subnet in subnets]}}
    made = Thing("aws:eks/cluster:Cluster", "cluster", props, ResourceOptions(depends_on=[attached]))

    def config(endpoint: str) -> str:
        clusters = [{"name": "c", "cluster": {"server": endpoint}}]
        contexts = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
        users = [{"name": "u", "user": {"token": "t"}}]
        whole = {"clusters": clusters, "contexts": contexts, "users": users, "current-context": "c"}
        return json.dumps({"apiVersion": "v1", "kind": "Config", **whole})

    text = get(made, "endpoint").apply(config)
    return pulumi.ProviderResource("kubernetes", "inside", {"kubeconfig": text})


def storage() -> None:
    key = Thing("aws:kms/key:Key", "key", {"description": "d"})
    Thing("aws:kms/alias:Alias", "alias", {"targetKeyId": get(key, "keyId")})
    for name in ("a", "b"):
        bucket = Thing("aws:s3/bucket:Bucket", f"bucket-{name}", {"forceDestroy": True})
        versions = {"bucket": get(bucket, "bucket"), "versioningConfiguration": {"status": "Enabled"}}
        Thing("aws:s3/bucketVersioning:BucketVersioning", f"versions-{name}", versions)
        Thing("aws:cloudwatch/logGroup:LogGroup", f"logs-{name}", {"retentionInDays": 7})


def inside(provider: pulumi.ProviderResource) -> None:
    for team in ("red", "blue"):
        options = ResourceOptions(provider=provider)
        space = Thing("kubernetes:core/v1:Namespace", team, {"metadata": {"name": team}}, options)
        options = ResourceOptions(provider=provider, depends_on=[space])
        place = {"namespace": team}
        config = {"metadata": place, "data": {"team": team}}
        Thing("kubernetes:core/v1:ConfigMap", f"settings-{team}", config, options)
        Thing("kubernetes:core/v1:Secret", f"secret-{team}", {"metadata": {**place, "name": "s"}}, options)
        Thing("kubernetes:core/v1:ServiceAccount", f"user-{team}", {"metadata": place}, options)


inside(cluster(network()))
storage()
