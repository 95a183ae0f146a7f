"""Load balancers. Source: botocore 1.44.5 elbv2/2015-12-01; moto 5.2.5 moto/elbv2/models.py (DNS names)."""

from collections.abc import Mapping

from rehearsal.aws.data_sources.places import known_in
from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import digits, draw
from rehearsal.core.model import Properties

# Type of a load balancer -> its part of an ARN.
_PLACES = {"network": "net", "gateway": "gwy"}


def _balancer_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """ARN and DNS name by type, with a prefix if internal; zone of the region, VPC of the subnets.

    Source: Elastic Load Balancing, "Network Load Balancers" (DNS name, ARN).
    """
    scheme = "internal-" if inputs.get("internal") is True else ""
    name, subnet = outputs.get("name"), next(iter(inputs.get("subnets") or ()), None)
    found = site.find(subnet, "ec2/subnet:Subnet")
    vpc = {"vpcId": found.outputs.get("vpcId") if found else None}
    kind = str(outputs.get("loadBalancerType"))
    zone = known_in("zones", "network" if kind == "network" else "application", site.region)
    if zone:
        vpc["zoneId"] = zone
    if kind not in _PLACES:
        host = f"{scheme}{name}-{digits(f'{seed}/dns', 10)}.{site.region}.elb.amazonaws.com"
        return {**vpc, "dnsName": host}
    suffix = str(outputs.get("arnSuffix")).replace("app/", f"{_PLACES[kind]}/", 1)
    arn = str(outputs.get("arn")).partition(":loadbalancer/")[0] + f":loadbalancer/{suffix}"
    host = f"{scheme}{name}-{suffix.rpartition('/')[2]}.elb.{site.region}.amazonaws.com"
    return {**vpc, "id": arn, "arn": arn, "arnSuffix": suffix, "dnsName": host}


def _listener_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """ARN: that of its load balancer with a suffix."""
    balancer = str(inputs.get("loadBalancerArn") or "")
    arn = f"{balancer.replace(':loadbalancer/', ':listener/')}/{draw(f'{seed}/listener', 16)}"
    return {"id": arn, "arn": arn}


HOOKS: Mapping[str, Hooks[Site]] = {
    "lb/loadBalancer:LoadBalancer": Hooks(outputs=_balancer_outputs),
    "lb/listener:Listener": Hooks(outputs=_listener_outputs),
}
