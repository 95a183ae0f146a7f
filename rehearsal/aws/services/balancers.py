"""Load balancers. Source: botocore 1.44.5 elbv2/2015-12-01; moto 5.2.5 moto/elbv2/models.py (DNS names)."""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import digits, draw
from rehearsal.core.model import Properties


def _balancer_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """DNS name (with a prefix if internal), and zones and VPC of its subnets."""
    scheme = "internal-" if inputs.get("internal") is True else ""
    name, number = outputs.get("name"), digits(f"{seed}/dns", 10)
    subnet = next(iter(inputs.get("subnets") or ()), None)
    found = site.find(subnet, "ec2/subnet:Subnet")
    return {
        "dnsName": f"{scheme}{name}-{number}.{site.region}.elb.amazonaws.com",
        "vpcId": found.outputs.get("vpcId") if found else None,
    }


def _listener_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """ARN: that of its load balancer with a suffix."""
    balancer = str(inputs.get("loadBalancerArn") or "")
    arn = f"{balancer.replace(':loadbalancer/', ':listener/')}/{draw(f'{seed}/listener', 16)}"
    return {"id": arn, "arn": arn}


HOOKS: Mapping[str, Hooks[Site]] = {
    "lb/loadBalancer:LoadBalancer": Hooks(outputs=_balancer_outputs),
    "lb/listener:Listener": Hooks(outputs=_listener_outputs),
}
