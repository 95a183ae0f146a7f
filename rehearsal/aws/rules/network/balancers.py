"""Load balancers, listeners and target groups."""

from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import all_known, items, number, subnets, text, vpcs, zones
from rehearsal.core.model import Properties
from rehearsal.core.properties import known
from rehearsal.core.rules.model import Violation

_BALANCER, _LISTENER = "aws:lb/loadBalancer:LoadBalancer", "aws:lb/listener:Listener"
_GROUP, _ATTACHMENT = "aws:lb/targetGroup:TargetGroup", "aws:autoscaling/attachment:Attachment"
_MODEL = "botocore 1.44.5 elbv2/2015-12-01"
_LOGINS = ("authenticate-oidc", "authenticate-cognito")
_ENDPOINTS = ("issuer", "authorizationEndpoint", "tokenEndpoint", "userInfoEndpoint")


@BOOK.rule_around("AWS-ELB-001", _BALANCER, source=f"{_MODEL} CreateLoadBalancerInput (Subnets)")
def two_zones(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """An Application Load Balancer is in at least two zones."""
    given = inputs.get("subnets") or []
    found = subnets(site, given)
    application = inputs.get("loadBalancerType", "application") == "application"
    if application and all_known(given) and len(found) == len(given) and len(zones(found)) < 2:
        yield Violation(
            "subnets",
            "At least two subnets in two different Availability Zones must be specified",
            f"All are in {', '.join(zones(found)) or 'none'}.",
            "ValidationError",
        )


@BOOK.rule_around("AWS-ELB-002", _BALANCER, source=f"{_MODEL} CreateLoadBalancerInput (Subnets)")
def one_subnet_per_zone(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A load balancer has one subnet in a zone."""
    taken: dict[str, str] = {}
    for subnet in subnets(site, inputs.get("subnets")):
        zone = str(subnet.outputs.get("availabilityZone"))
        if zone in taken:
            yield Violation(
                "subnets",
                "A load balancer cannot be attached to multiple subnets in the same Availability Zone",
                f"{taken[zone]} and {subnet.id} are in {zone}.",
                "InvalidConfigurationRequest",
            )
        taken[zone] = subnet.id


@BOOK.rule_around("AWS-ELB-003", _BALANCER, source=f"{_MODEL} InvalidSecurityGroupException")
def groups_of_its_network(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The security groups of a load balancer are of its VPC."""
    places = vpcs(subnets(site, inputs.get("subnets")))
    for index, value in enumerate(inputs.get("securityGroups") or ()):
        group = site.find(value, "ec2/securityGroup:SecurityGroup")
        if group is not None and places and group.outputs.get("vpcId") not in places:
            yield Violation(
                f"securityGroups[{index}]",
                f"Security group {value} does not belong to VPC {', '.join(sorted(places))}",
                "Use a group of the subnets' VPC.",
                "InvalidConfigurationRequest",
            )


@BOOK.rule("AWS-ELB-005", _LISTENER, source=f"{_MODEL} Action (AuthenticateOidcConfig: [HTTPS listeners])")
def logins_over_https_only(inputs: Properties) -> Iterator[Violation]:
    """Only listeners for HTTPS authenticate users."""
    protocol = inputs.get("protocol")
    for path, action in items(inputs, "defaultActions"):
        if action.get("type") in _LOGINS and known(protocol) and protocol != "HTTPS":
            yield Violation(
                f"{path}.type",
                f"Actions of type '{action['type']}' are supported only on HTTPS listeners",
                "Set protocol to HTTPS, with a certificate.",
            )


@BOOK.rule("AWS-ELB-006", _LISTENER, source=f"{_MODEL} AuthenticateOidcActionConfig")
def endpoints_are_full_addresses(inputs: Properties) -> Iterator[Violation]:
    """Endpoints of an identity provider are full URLs with HTTPS."""
    for path, action in items(inputs, "defaultActions"):
        provider = action.get("authenticateOidc")
        if not isinstance(provider, dict):
            continue
        for name in _ENDPOINTS:
            value = text(provider.get(name))
            if value is not None and not value.startswith("https://"):
                rule = "must be a full URL, including the HTTPS protocol, the domain, and the path"
                yield Violation(f"{path}.authenticateOidc.{name}", f"{name} {rule}")


@BOOK.rule("AWS-ELB-007", _LISTENER, source=f"{_MODEL} CreateListenerInput (DefaultActions), Action (Order)")
def last_action_is_not_a_login(inputs: Properties) -> Iterator[Violation]:
    """The last action forwards, redirects or responds."""
    actions = items(inputs, "defaultActions")
    if not actions or not all(known(action.get("order")) for _, action in actions):
        return
    path, last = max(actions, key=lambda one: number(one[1].get("order")) or 0.0)
    if last.get("type") in (*_LOGINS, "jwt-validation"):
        yield Violation(
            f"{path}.type",
            "The last action must be one of forward, redirect or fixed-response",
            "Add an action with a higher order.",
        )


@BOOK.rule("AWS-ELB-009", _GROUP, source="moto 5.2.5 moto/elbv2/models.py (create_target_group)")
def checks_end_before_the_next(inputs: Properties) -> Iterator[Violation]:
    """A health check over HTTP ends before the next one begins."""
    check = inputs.get("healthCheck")
    if not isinstance(check, dict) or inputs.get("protocol") not in ("HTTP", "HTTPS"):
        return
    timeout, interval = number(check.get("timeout")), number(check.get("interval"))
    if timeout is not None and interval is not None and timeout >= interval:
        yield Violation(
            "healthCheck.timeout",
            f"Health check timeout '{timeout:.0f}' must be smaller than the interval '{interval:.0f}'",
        )


@BOOK.rule_around(
    "AWS-ASG-001",
    _ATTACHMENT,
    source="moto 5.2.5 moto/autoscaling/models.py (attach_load_balancer_target_groups)",
)
def the_group_exists(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Targets are attached to an Auto Scaling group that exists."""
    name = text(inputs.get("autoscalingGroupName"))
    if name is None or site.preview:
        return
    made = {
        group["name"]
        for record in site.all("eks/nodeGroup:NodeGroup")
        for held in record.outputs.get("resources") or ()
        for group in held.get("autoscalingGroups") or ()
    }
    made |= {record.outputs.get("name") for record in site.all("autoscaling/group:Group")}
    if name not in made:
        message = f"AutoScalingGroup name not found - {name}"
        yield Violation("autoscalingGroupName", message, "Use the group of a node group.", "ValidationError")
