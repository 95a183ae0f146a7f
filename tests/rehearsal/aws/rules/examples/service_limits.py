"""Limits of single values that services state: the last value that is accepted, and one beyond it."""

from tests.rehearsal.aws.rules.world import Example, limit

_BALANCER, _TARGETS = "lb/loadBalancer:LoadBalancer", "lb/targetGroup:TargetGroup"
_PLACEMENT = "ec2/placementGroup:PlacementGroup"
_VM, _ADDON, _TABLE = "ec2/instance:Instance", "eks/addon:Addon", "dynamodb/table:Table"
_RULE = "vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_SCHEDULE = "scheduler/schedule:Schedule"

EXAMPLES: dict[str, Example] = {
    "AWS-LIM-180": limit(_PLACEMENT, "partitionCount", 7, 8, strategy="partition"),
    "AWS-LIM-181": limit(_RULE, "ipProtocol", "6", "http"),
    "AWS-LIM-182": limit(_BALANCER, "loadBalancerType", "application", "classic"),
    "AWS-LIM-183": Example(
        _BALANCER, "idleTimeout", {"idleTimeout": 4001}, {"idleTimeout": 4001, "loadBalancerType": "network"}
    ),
    "AWS-LIM-184": limit(_TARGETS, "deregistrationDelay", 3600, 3601),
    "AWS-LIM-186": limit(_TABLE, "attributes[0].type", "B", "L"),
    "AWS-LIM-187": limit(_ADDON, "resolveConflictsOnCreate", "OVERWRITE", "PRESERVE"),
    "AWS-LIM-188": limit(_ADDON, "resolveConflictsOnUpdate", "PRESERVE", "KEEP"),
    "AWS-LIM-189": limit("rds/instance:Instance", "port", 1150, 1149),
    "AWS-LIM-190": limit("ebs/volume:Volume", "type", "standard", "gp4"),
    "AWS-LIM-191": limit(_VM, "tenancy", "dedicated", "private"),
    "AWS-LIM-192": limit(_VM, "creditSpecification.cpuCredits", "unlimited", "none"),
    "AWS-LIM-193": limit(_SCHEDULE, "scheduleExpression", "rate(5 minutes)", "every day"),
}
