"""Examples of the rules about networks, machines and EKS."""

from tests.rehearsal.aws.rules.world import DROP, Example

_SUBNET, _ENDPOINT = "ec2/subnet:Subnet", "ec2/vpcEndpoint:VpcEndpoint"
_FLOW_LOG, _NAT, _ROUTE = "ec2/flowLog:FlowLog", "ec2/natGateway:NatGateway", "ec2/route:Route"
_RULE = "vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_TEMPLATE, _GROUP = "ec2/launchTemplate:LaunchTemplate", "eks/nodeGroup:NodeGroup"
_RESERVATION = "ec2/capacityReservation:CapacityReservation"
_CLUSTER, _ENTRY = "eks/cluster:Cluster", "eks/accessEntry:AccessEntry"
_ACCESS = "eks/accessPolicyAssociation:AccessPolicyAssociation"
_POD = "eks/podIdentityAssociation:PodIdentityAssociation"
_SERVICES = "kubernetesNetworkConfig.serviceIpv4Cidr"
_MARKET = "capacityType"
_NO_TEMPLATE = {"launchTemplate": DROP}
_EBS = "blockDeviceMappings[0].ebs"


def _with(template: str, **more: object) -> dict[str, object]:
    return {"launchTemplate.id": f"${template}", **more}


def _cards(count: int) -> list[dict[str, object]]:
    places = [(card, 1 if card else 0) for card in range(count)]
    return [
        {"networkCardIndex": c, "deviceIndex": d, "interfaceType": "efa-only" if c else "efa"}
        for c, d in places
    ]


EXAMPLES = {
    "AWS-VPC-001": Example("ec2/vpc:Vpc", "cidrBlock", {"cidrBlock": "10.9.0.1/16"}),
    "AWS-VPC-002": Example(_SUBNET, "cidrBlock", {"cidrBlock": "10.0.9.0/29"}, {"cidrBlock": "10.0.9.0/28"}),
    "AWS-VPC-003": Example(_SUBNET, "availabilityZone", {"availabilityZone": "us-east-1x"}),
    "AWS-VPC-004": Example(_SUBNET, "cidrBlock", {"cidrBlock": "10.77.0.0/24"}),
    "AWS-VPC-005": Example(_SUBNET, "cidrBlock", {"cidrBlock": "10.0.0.128/25"}),
    "AWS-VPC-006": Example(
        _ENDPOINT,
        "subnetIds",
        {"vpcEndpointType": "Gateway"},
        {"vpcEndpointType": "Gateway", "subnetIds": DROP},
    ),
    "AWS-VPC-007": Example(_ENDPOINT, "routeTableIds", {"routeTableIds": ["$table"]}),
    "AWS-VPC-008": Example(
        _ENDPOINT,
        "serviceName",
        {"serviceName": "com.amazonaws.eu-west-1.ec2"},
        {"serviceName": "com.amazonaws.eu-west-1.ec2", "serviceRegion": "eu-west-1"},
    ),
    "AWS-VPC-009": Example(
        _ENDPOINT,
        "privateDnsEnabled",
        {"serviceName": "com.amazonaws.us-east-1.sts", "privateDnsEnabled": True},
        {"serviceName": "com.amazonaws.us-east-1.sts"},
    ),
    "AWS-VPC-010": Example(_ENDPOINT, "subnetIds", {"subnetIds": ["$a", "$a2"]}),
    "AWS-VPC-023": Example(
        _ENDPOINT,
        "privateDnsEnabled",
        {"vpcId": "$bare", "subnetIds": ["$bare_a"], "privateDnsEnabled": True},
        {"privateDnsEnabled": True},
    ),
    "AWS-VPC-011": Example(_FLOW_LOG, "", {"subnetId": "$a"}, {"vpcId": DROP, "subnetId": "$a"}),
    "AWS-VPC-012": Example(
        _FLOW_LOG, "iamRoleArn", {"iamRoleArn": DROP}, {"iamRoleArn": DROP, "logDestinationType": "s3"}
    ),
    "AWS-VPC-013": Example("ec2/internetGateway:InternetGateway", "vpcId", {"vpcId": "$vpc"}),
    "AWS-VPC-014": Example(
        _NAT, "allocationId", {"allocationId": DROP}, {"allocationId": DROP, "connectivityType": "private"}
    ),
    "AWS-VPC-015": Example(
        _NAT, "allocationId", {"connectivityType": "private"}, {"connectivityType": "public"}
    ),
    "AWS-VPC-016": Example(_NAT, "subnetId", {"subnetId": "$bare_a"}),
    "AWS-VPC-017": Example(_ROUTE, "", {"destinationIpv6CidrBlock": "::/0"}),
    "AWS-VPC-018": Example(
        _ROUTE, "", {"gatewayId": DROP}, {"gatewayId": DROP, "natGatewayId": "nat-0123456789abcdef0"}
    ),
    "AWS-VPC-019": Example(_ROUTE, "destinationCidrBlock", {"destinationCidrBlock": "0.0.0.0/0"}),
    "AWS-VPC-020": Example(_ROUTE, "gatewayId", {"gatewayId": "$other_igw"}),
    "AWS-SG-001": Example(
        _RULE, "", {"cidrIpv6": "::/0"}, {"cidrIpv4": DROP, "referencedSecurityGroupId": "$efa"}
    ),
    "AWS-SG-002": Example(
        _RULE, "fromPort", {"ipProtocol": "-1"}, {"ipProtocol": "-1", "fromPort": DROP, "toPort": DROP}
    ),
    "AWS-SG-003": Example(_RULE, "toPort", {"toPort": DROP}),
    "AWS-SG-004": Example(_RULE, "toPort", {"toPort": 80}, {"toPort": 444}),
    "AWS-EC2-001": Example(
        _TEMPLATE,
        "vpcSecurityGroupIds",
        {"vpcSecurityGroupIds": ["$efa"]},
        {"vpcSecurityGroupIds": ["$efa"], "networkInterfaces": DROP},
    ),
    "AWS-EC2-002": Example(
        _TEMPLATE,
        "networkInterfaces[4].deviceIndex",
        {"networkInterfaces[4]": {"networkCardIndex": 3, "deviceIndex": 1, "interfaceType": "interface"}},
        {"networkInterfaces[4]": {"networkCardIndex": 3, "deviceIndex": 2, "interfaceType": "interface"}},
    ),
    "AWS-EC2-003": Example(
        _TEMPLATE,
        "networkInterfaces",
        {"networkInterfaces": [{"networkCardIndex": 1, "deviceIndex": 1}]},
        {"networkInterfaces": [{"networkCardIndex": 0, "deviceIndex": 0}]},
    ),
    "AWS-EC2-004": Example(
        _TEMPLATE,
        "networkInterfaces[0].associatePublicIpAddress",
        {"networkInterfaces[0].associatePublicIpAddress": "true"},
        {"networkInterfaces": [{"associatePublicIpAddress": "true"}]},
    ),
    "AWS-EC2-005": Example(
        _TEMPLATE,
        "networkInterfaces[0].interfaceType",
        {"networkInterfaces[0].interfaceType": "efa-only"},
        {"networkInterfaces[1].interfaceType": "efa-only"},
    ),
    "AWS-EC2-006": Example(
        _TEMPLATE,
        "networkInterfaces[0].interfaceType",
        {"instanceType": "g6.2xlarge", "networkInterfaces": [{"interfaceType": "efa"}]},
        {"instanceType": "g6.2xlarge", "networkInterfaces": [{"interfaceType": "interface"}]},
    ),
    "AWS-EC2-007": Example(
        _TEMPLATE,
        "networkInterfaces",
        {"instanceType": "p6-b300.48xlarge", "networkInterfaces": _cards(17)},
        {
            "instanceType": "p6-b300.48xlarge",
            "networkInterfaces": [{"interfaceType": "interface"}, *_cards(17)[1:]],
        },
    ),
    "AWS-EC2-008": Example(
        _TEMPLATE, "networkInterfaces[3].networkCardIndex", {"networkInterfaces[3].networkCardIndex": 4}
    ),
    "AWS-EC2-009": Example(
        _TEMPLATE,
        "networkInterfaces[3].networkCardIndex",
        {"networkInterfaces[3].networkCardIndex": 2, "networkInterfaces[3].deviceIndex": 2},
    ),
    "AWS-EC2-011": Example(
        _TEMPLATE,
        "instanceRequirements",
        {"instanceRequirements": {"vcpuCount": {"min": 1}, "memoryMib": {"min": 1}}},
        {"instanceType": DROP, "instanceRequirements": {"vcpuCount": {"min": 1}, "memoryMib": {"min": 1}}},
    ),
    "AWS-EC2-012": Example(_TEMPLATE, f"{_EBS}.volumeSize", {f"{_EBS}.volumeSize": 70000}),
    "AWS-EC2-013": Example(_TEMPLATE, f"{_EBS}.iops", {f"{_EBS}.iops": 2000}, {f"{_EBS}.iops": 3000}),
    "AWS-EC2-018": Example(
        "ebs/volume:Volume", "iops", {"size": 10, "iops": 20000}, {"size": 40, "iops": 20000}
    ),
    "AWS-EC2-019": Example(
        "ebs/volume:Volume", "iops", {"type": "gp2", "iops": 3000}, {"type": "io1", "iops": 3000}
    ),
    "AWS-EC2-020": Example(
        "ebs/volume:Volume",
        "multiAttachEnabled",
        {"multiAttachEnabled": True},
        {"multiAttachEnabled": True, "type": "io2", "iops": 3000},
    ),
    "AWS-EC2-021": Example("ebs/volume:Volume", "size", {"size": DROP}),
    "AWS-EC2-014": Example(
        _TEMPLATE,
        f"{_EBS}.throughput",
        {f"{_EBS}.throughput": 250, f"{_EBS}.volumeType": "gp2"},
        {f"{_EBS}.throughput": 250},
    ),
    "AWS-EC2-015": Example(
        _TEMPLATE,
        "capacityReservationSpecification.capacityReservationPreference",
        {
            "capacityReservationSpecification": {
                "capacityReservationPreference": "open",
                "capacityReservationTarget": {"capacityReservationId": "$reserved"},
            }
        },
        {
            "capacityReservationSpecification": {
                "capacityReservationTarget": {"capacityReservationId": "$reserved"}
            }
        },
    ),
    "AWS-EC2-016": Example(
        "ec2/placementGroup:PlacementGroup",
        "partitionCount",
        {"partitionCount": 2},
        {"partitionCount": 2, "strategy": "partition"},
    ),
    "AWS-EC2-017": Example(_RESERVATION, "endDate", {"endDateType": "limited"}, {"endDateType": "unlimited"}),
    "AWS-EKS-001": Example(_CLUSTER, "version", {"version": "1.12"}, {"version": "1.99"}),
    "AWS-EKS-002": Example(_CLUSTER, "version", {"version": "1.32"}, {"version": "1.34"}, as_="cluster"),
    "AWS-EKS-003": Example(
        _CLUSTER,
        "accessConfig.authenticationMode",
        {"accessConfig": {"authenticationMode": "CONFIG_MAP"}},
        {"accessConfig": {"authenticationMode": "API"}},
        as_="cluster",
    ),
    "AWS-EKS-004": Example(_CLUSTER, "roleArn", {"roleArn": "$node_role.arn"}),
    "AWS-EKS-005": Example(_ENTRY, "clusterName", {"clusterName": "$old_cluster"}),
    "AWS-EKS-006": Example(
        _ENTRY,
        "kubernetesGroups",
        {"type": "EC2_LINUX", "kubernetesGroups": ["g"]},
        {"kubernetesGroups": ["g"]},
    ),
    "AWS-EKS-007": Example(
        _ENTRY, "principalArn", {"principalArn": "arn:aws:sts::123456789012:assumed-role/worker/me"}
    ),
    "AWS-EKS-008": Example(
        _ENTRY,
        "principalArn",
        {"principalArn": "arn:aws:iam::123456789012:user/me", "type": "EC2_LINUX"},
        {"principalArn": "arn:aws:iam::123456789012:user/me"},
    ),
    "AWS-EKS-009": Example(
        _ACCESS,
        "policyArn",
        {"policyArn": "arn:aws:iam::aws:policy/AdministratorAccess"},
        {"policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonSagemakerHyperpodClusterPolicy"},
    ),
    "AWS-EKS-010": Example(
        _ACCESS,
        "accessScope.namespaces",
        {"accessScope": {"type": "namespace"}},
        {"accessScope": {"type": "namespace", "namespaces": ["n"]}},
    ),
    "AWS-EKS-011": Example(_ACCESS, "principalArn", {"principalArn": "$lonely.arn"}),
    "AWS-EKS-012": Example(_ACCESS, "principalArn", {"principalArn": "$node_role.arn"}),
    "AWS-EKS-013": Example(
        "eks/addon:Addon", "addonName", {"addonName": "coredn"}, {"addonName": "acme-tool"}
    ),
    "AWS-EKS-014": Example(
        _POD,
        "roleArn",
        {"roleArn": "$half_pod_role.arn"},
        {"roleArn": "$half_pod_role.arn", "disableSessionTags": True},
    ),
    "AWS-EKS-015": Example(
        "eks/addon:Addon",
        "podIdentityAssociations[0].roleArn",
        {"podIdentityAssociations": [{"roleArn": "$node_role.arn", "serviceAccount": "s"}]},
        {"podIdentityAssociations": [{"roleArn": "$pod_role.arn", "serviceAccount": "s"}]},
    ),
    "AWS-EKS-020": Example(_GROUP, "scalingConfig", {"scalingConfig.desiredSize": 3}),
    "AWS-EKS-021": Example(_GROUP, "diskSize", {"diskSize": 100}, {**_NO_TEMPLATE, "diskSize": 100}),
    "AWS-EKS-022": Example(
        _GROUP,
        "launchTemplate",
        {**_NO_TEMPLATE, _MARKET: "CAPACITY_BLOCK"},
        {**_with("lt_block"), _MARKET: "CAPACITY_BLOCK"},
    ),
    "AWS-EKS-023": Example(
        _GROUP,
        "amiType",
        {**_NO_TEMPLATE, "instanceTypes": ["g6.2xlarge"], "amiType": "AL2023_x86_64_STANDARD"},
        {**_NO_TEMPLATE, "instanceTypes": ["m7i.xlarge"], "amiType": "AL2023_x86_64_STANDARD"},
    ),
    "AWS-EKS-024": Example(
        _GROUP,
        "instanceTypes[0]",
        {**_NO_TEMPLATE, "instanceTypes": ["g6.2xlarge"], "amiType": "AL2023_ARM_64_NVIDIA"},
        {**_NO_TEMPLATE, "instanceTypes": ["g6.2xlarge"]},
    ),
    "AWS-EKS-025": Example(
        _GROUP,
        "updateConfig",
        {"updateConfig": {"maxUnavailable": 1, "maxUnavailablePercentage": 10}},
        {"updateConfig": {"maxUnavailable": 1}},
    ),
    "AWS-EKS-026": Example(
        _GROUP,
        "nodeRepairConfig",
        {
            "nodeRepairConfig": {
                "maxUnhealthyNodeThresholdCount": 1,
                "maxUnhealthyNodeThresholdPercentage": 10,
            }
        },
        {"nodeRepairConfig": {"enabled": True, "maxUnhealthyNodeThresholdCount": 1}},
    ),
    "AWS-EKS-027": Example(_GROUP, "launchTemplate", {"launchTemplate.name": "pool"}),
    "AWS-EKS-028": Example(
        _GROUP,
        "instanceTypes",
        {**_with("lt_plain"), "instanceTypes": ["g6.2xlarge"]},
        {**_with("lt_open"), "instanceTypes": ["g6.2xlarge"]},
    ),
    "AWS-EKS-029": Example(
        _GROUP, "launchTemplate", {"amiType": "AL2023_ARM_64_NVIDIA"}, {"amiType": "CUSTOM"}
    ),
    "AWS-EKS-016": Example(
        "eks/addon:Addon",
        "resolveConflictsOnCreate",
        {"resolveConflictsOnCreate": DROP},
        {"resolveConflictsOnCreate": "NONE", "clusterName": "$bare_cluster"},
    ),
    "AWS-EKS-030": Example(
        _GROUP, _MARKET, {**_with("lt_block"), _MARKET: "SPOT"}, {**_with("lt_plain"), _MARKET: "SPOT"}
    ),
    "AWS-EKS-031": Example(
        _GROUP,
        "launchTemplate",
        {**_with("lt_half"), _MARKET: "CAPACITY_BLOCK"},
        {**_with("lt_block"), _MARKET: "CAPACITY_BLOCK"},
    ),
    "AWS-EKS-032": Example(_GROUP, "launchTemplate", _with("lt_subnet"), _with("lt_plain")),
    "AWS-EKS-033": Example(_GROUP, "amiType", _with("lt_image"), {**_with("lt_image"), "amiType": "CUSTOM"}),
    "AWS-EKS-034": Example(_GROUP, "version", {"version": "1.32"}, {"version": "1.33"}),
    "AWS-EKS-035": Example(_GROUP, "nodeRoleArn", {"nodeRoleArn": "$eks_role.arn"}),
    "AWS-EKS-036": Example(_GROUP, "subnetIds", {"subnetIds": ["$closed"]}, {"subnetIds": ["$given"]}),
    "AWS-EKS-037": Example(_GROUP, "subnetIds", {"subnetIds": ["$public"]}, {"subnetIds": ["$given"]}),
    "AWS-EKS-038": Example(_GROUP, "nodeRoleArn", {"nodeRoleArn": "$lonely.arn"}),
    "AWS-EKS-039": Example(_GROUP, "launchTemplate", _with("lt_shut"), _with("lt_disk")),
    "AWS-EFA-002": Example(
        _GROUP,
        "subnetIds",
        {**_with("lt_placed"), "subnetIds": ["$a", "$b"]},
        {**_with("lt_plain"), "subnetIds": ["$a", "$b"]},
    ),
    "AWS-EFA-003": Example(_GROUP, "launchTemplate", _with("lt_no_in"), _with("lt_efa")),
    "AWS-EFA-004": Example(_GROUP, "launchTemplate", _with("lt_no_out"), _with("lt_efa")),
    "AWS-EKS-040": Example(
        _CLUSTER,
        "vpcConfig.endpointPrivateAccess",
        {"vpcConfig.endpointPublicAccess": False},
        {"vpcConfig.endpointPublicAccess": False, "vpcConfig.endpointPrivateAccess": True},
    ),
    "AWS-EKS-041": Example(_CLUSTER, "vpcConfig.subnetIds", {"vpcConfig.subnetIds": ["$a", "$a2"]}),
    "AWS-EKS-042": Example(_CLUSTER, "vpcConfig.subnetIds", {"vpcConfig.subnetIds": ["$a", "$other_b"]}),
    "AWS-EKS-043": Example(_CLUSTER, _SERVICES, {_SERVICES: "8.8.0.0/16"}, {_SERVICES: "172.20.0.0/16"}),
    "AWS-EKS-044": Example(_CLUSTER, _SERVICES, {_SERVICES: "10.0.0.0/12"}, {_SERVICES: "10.100.0.0/16"}),
    "AWS-EKS-045": Example(
        _CLUSTER,
        _SERVICES,
        {_SERVICES: "172.20.0.0/16", "kubernetesNetworkConfig.ipFamily": "ipv6"},
        {"kubernetesNetworkConfig": {"ipFamily": "ipv6"}},
    ),
    "AWS-EKS-046": Example(
        _CLUSTER,
        "vpcConfig.publicAccessCidrs[0]",
        {"vpcConfig.publicAccessCidrs": ["office"]},
        {"vpcConfig.publicAccessCidrs": ["203.0.113.7/32"]},
    ),
}
