"""Access to the tracking server for browsers: an internal load balancer with a login."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws.network.connections import connect, tcp
from components.aws.network.security import EVERYWHERE
from components.aws.storage.access_log import BALANCER_PREFIX
from components.base import Component, Options
from components.ordering import after

# From the ports that Kubernetes does not assign automatically, 30000 to 30085 (Kubernetes documentation,
# "Reserve Nodeport Ranges for Collisions").
NODE_PORT = 30050
# Prefix of both names: at most six characters.
_PREFIX = "mlflow"
_HTTPS = 443
# TLS 1.3 and nothing older: its clients are browsers.
_TLS = "ELBSecurityPolicy-TLS13-1-3-2021-06"
# A working day; without a limit of its own a login is valid for a week.
_SESSION_S = 12 * 3600
# Seconds for requests to a node that is removed; then its group may end it.
_LEAVING_S = 60


class OidcArgs(TypedDict):
    """The identity provider, in the terms of its discovery document."""

    issuer: str
    """Issuer of the identity provider, an https URL."""
    authorization_endpoint: str
    """URL at which users log in."""
    token_endpoint: str
    """URL of the token endpoint."""
    user_info_endpoint: str
    """URL of the user info endpoint."""
    client_id: str
    """Id of the client registered for the load balancer."""
    client_secret_arn: str
    """Secret of Secrets Manager whose whole value is the client's secret."""


class AwsLoadBalancerArgs(TypedDict):
    """Clients of the load balancer, and the server's nodes."""

    vpc_id: pulumi.Input[str]
    """The VPC of the subnets."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Subnets of its own in at least two zones, with a route to the identity provider."""
    allowed_cidrs: Sequence[str]
    """Ranges that may connect."""
    node_security_group_id: pulumi.Input[str]
    """Security group of the nodes that run the server."""
    node_group: pulumi.Input[str]
    """Name of the Auto Scaling group of the nodes that run the server."""
    host: str
    """The host name in browsers."""
    certificate_arn: str
    """Certificate for that name, in the same region and account."""
    oidc: OidcArgs
    """The identity provider at which users log in."""
    log_bucket: pulumi.Input[str]
    """Bucket that accepts its log (`storage.access_log`)."""
    deletion_protection: NotRequired[bool]
    """Refuse to delete it. Default: yes."""


class AwsLoadBalancer(Component):
    """HTTPS on an internal load balancer, an OIDC login, then the server's port 30050 on its nodes.

    The server requires its own login afterwards: the identity at the provider grants nothing in
    experiments. Nodes without a server drop traffic to the port, so the health check finds those with one.

    The client's secret is read from Secrets Manager and passed to the listener: encrypted, it is in Pulumi's
    state, since no request of the service refers to a secret in another way.
    """

    url: pulumi.Output[str]
    """URL for browsers; reachable once the host's name points to `dns_name`."""
    dns_name: pulumi.Output[str]
    """The name of the load balancer, which resolves to private addresses."""

    def __init__(self, name: str, args: AwsLoadBalancerArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        group, openings = self._security_group(name, args)
        balancer = aws.lb.LoadBalancer(
            name,
            name_prefix=_PREFIX,
            internal=True,
            load_balancer_type="application",
            subnets=args["subnet_ids"],
            security_groups=[group.id],
            access_logs={"bucket": args["log_bucket"], "prefix": BALANCER_PREFIX, "enabled": True},
            drop_invalid_header_fields=True,
            # MLflow compares it with the host that the browser requested.
            preserve_host_header=True,
            enable_deletion_protection=args.get("deletion_protection", True),
            tags={"Name": name},
            opts=self.child(),
        )
        servers = self._servers(name, args)
        listener = self._listener(name, args, balancer, servers)
        nodes = aws.autoscaling.Attachment(
            f"{name}-nodes",
            autoscaling_group_name=args["node_group"],
            lb_target_group_arn=servers.arn,
            opts=self.child(),
        )
        self.dns_name = after(balancer.dns_name, [listener, nodes, *openings])
        self.url = self.dns_name.apply(lambda _: f"https://{args['host']}")
        self.register_declared()

    def _security_group(
        self, name: str, args: AwsLoadBalancerArgs
    ) -> tuple[aws.ec2.SecurityGroup, list[pulumi.Resource]]:
        """Ingress: HTTPS from the clients. Egress: the nodes' port, and HTTPS to the identity provider."""
        group = aws.ec2.SecurityGroup(
            f"{name}-group",
            description="Load balancer of the tracking server: HTTPS from its clients",
            vpc_id=args["vpc_id"],
            opts=self.child(),
        )
        clients = [
            aws.vpc.SecurityGroupIngressRule(
                f"{name}-from-{cidr.replace('/', '-')}",
                security_group_id=group.id,
                cidr_ipv4=cidr,
                ip_protocol="tcp",
                from_port=_HTTPS,
                to_port=_HTTPS,
                description="HTTPS from clients",
                opts=self.child(),
            )
            for cidr in args["allowed_cidrs"]
        ]
        provider = aws.vpc.SecurityGroupEgressRule(
            f"{name}-to-provider",
            security_group_id=group.id,
            cidr_ipv4=EVERYWHERE,
            ip_protocol="tcp",
            from_port=_HTTPS,
            to_port=_HTTPS,
            description="Token and user info endpoints of the identity provider",
            opts=self.child(),
        )
        nodes = connect(
            self,
            f"{name}-server",
            source=group.id,
            target=args["node_security_group_id"],
            traffic=tcp((NODE_PORT, NODE_PORT)),
        )
        return group, [*clients, provider, *nodes]

    def _servers(self, name: str, args: AwsLoadBalancerArgs) -> aws.lb.TargetGroup:
        """The nodes. `/health` needs neither a user nor a known host nor the database."""
        return aws.lb.TargetGroup(
            f"{name}-servers",
            name_prefix=_PREFIX,
            vpc_id=args["vpc_id"],
            target_type="instance",
            protocol="HTTP",
            port=NODE_PORT,
            deregistration_delay=_LEAVING_S,
            # Two checks detect a server on another node within ten seconds.
            health_check={
                "path": "/health",
                "matcher": "200",
                "interval": 5,
                "timeout": 4,
                "healthy_threshold": 2,
                "unhealthy_threshold": 2,
            },
            tags={"Name": f"{name}-servers"},
            opts=self.child(),
        )

    def _listener(
        self, name: str, args: AwsLoadBalancerArgs, balancer: aws.lb.LoadBalancer, servers: aws.lb.TargetGroup
    ) -> aws.lb.Listener:
        oidc = args["oidc"]
        secret = aws.secretsmanager.get_secret_version_output(
            secret_id=oidc["client_secret_arn"], opts=pulumi.InvokeOutputOptions(parent=self)
        ).secret_string
        return aws.lb.Listener(
            f"{name}-https",
            load_balancer_arn=balancer.arn,
            port=_HTTPS,
            protocol="HTTPS",
            ssl_policy=_TLS,
            certificate_arn=args["certificate_arn"],
            default_actions=[
                {
                    "type": "authenticate-oidc",
                    "order": 1,
                    "authenticate_oidc": {
                        "issuer": oidc["issuer"],
                        "authorization_endpoint": oidc["authorization_endpoint"],
                        "token_endpoint": oidc["token_endpoint"],
                        "user_info_endpoint": oidc["user_info_endpoint"],
                        "client_id": oidc["client_id"],
                        "client_secret": pulumi.Output.secret(secret),
                        "on_unauthenticated_request": "authenticate",
                        "scope": "openid",
                        "session_timeout": _SESSION_S,
                    },
                },
                {"type": "forward", "order": 2, "target_group_arn": servers.arn},
            ],
            opts=self.child(),
        )
