"""Examples of the rules about load balancers."""

from tests.rehearsal.aws.rules.world import DROP, Example

_BALANCER, _LISTENER = "lb/loadBalancer:LoadBalancer", "lb/listener:Listener"
_GROUP, _ATTACHMENT = "lb/targetGroup:TargetGroup", "autoscaling/attachment:Attachment"
_LOGIN = "defaultActions[0].authenticateOidc"

EXAMPLES = {
    "AWS-ELB-001": Example(
        _BALANCER, "subnets", {"subnets": ["$a"]}, {"subnets": ["$a"], "loadBalancerType": "network"}
    ),
    "AWS-ELB-002": Example(_BALANCER, "subnets", {"subnets": ["$a", "$b", "$a2"]}),
    "AWS-ELB-003": Example(_BALANCER, "securityGroups[0]", {"securityGroups": ["$other_group"]}),
    "AWS-ELB-004": Example(
        _LISTENER,
        "certificateArn",
        {"certificateArn": DROP},
        {"certificateArn": DROP, "protocol": "HTTP", "defaultActions": [{"type": "forward"}]},
    ),
    "AWS-ELB-005": Example(
        _LISTENER,
        "defaultActions[0].type",
        {"protocol": "HTTP"},
        {"defaultActions[0].type": "authenticate-cognito"},
    ),
    "AWS-ELB-006": Example(
        _LISTENER,
        f"{_LOGIN}.tokenEndpoint",
        {f"{_LOGIN}.tokenEndpoint": "http://id.example.com/token"},
        {f"{_LOGIN}.issuer": "https://id.example.com/realms/one"},
    ),
    "AWS-ELB-007": Example(
        _LISTENER,
        "defaultActions[0].type",
        {"defaultActions[0].order": 3},
        {"defaultActions[1].order": 50000},
    ),
    "AWS-ELB-008": Example(
        _GROUP,
        "vpcId",
        {"vpcId": DROP},
        {"vpcId": DROP, "port": DROP, "protocol": DROP, "targetType": "lambda"},
    ),
    "AWS-ELB-009": Example(
        _GROUP,
        "healthCheck.timeout",
        {"healthCheck": {"timeout": 5, "interval": 5}},
        {"healthCheck": {"timeout": 4, "interval": 5}},
    ),
    "AWS-ASG-001": Example(_ATTACHMENT, "autoscalingGroupName", {"autoscalingGroupName": "absent"}),
}
