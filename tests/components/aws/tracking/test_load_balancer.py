"""The load balancer before the tracking server: TLS, a login before anything, the nodes' one port."""

from typing import Any, cast

import pulumi

from components.aws.tracking.load_balancer import NODE_PORT, AwsLoadBalancer, AwsLoadBalancerArgs
from rehearsal.aws.rules import BOOK
from tests.components.graph import Graph, deploy_graph

SECRET = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:sso/mlflow-AbCd12"
OIDC = {
    "issuer": "https://id.example.com",
    "authorization_endpoint": "https://id.example.com/authorize",
    "token_endpoint": "https://id.example.com/token",
    "user_info_endpoint": "https://id.example.com/me",
    "client_id": "mlflow",
    "client_secret_arn": SECRET,
}
DEFAULTS = {
    "vpc_id": "vpc-1",
    "subnet_ids": ["subnet-a", "subnet-b"],
    "allowed_cidrs": ["10.20.0.0/16", "192.168.7.0/24"],
    "node_security_group_id": "sg-cluster",
    "node_group": "eks-system-1",
    "host": "mlflow.example.com",
    "certificate_arn": "arn:aws:acm:eu-central-1:111122223333:certificate/1",
    "oidc": OIDC,
    "log_bucket": "logs",
}
BALANCER, LISTENER = "aws:lb/loadBalancer:LoadBalancer", "aws:lb/listener:Listener"


def made(**changes: Any) -> Graph:
    def program() -> dict[str, pulumi.Output[Any]]:
        balancer = AwsLoadBalancer("dev-mlflow", cast(AwsLoadBalancerArgs, DEFAULTS | changes))
        return {"url": balancer.url, "target": balancer.dns_name}

    return deploy_graph(
        program,
        {
            BALANCER: lambda _: {"dnsName": "internal-mlflow-1.elb.amazonaws.com", "arn": "arn:balancer"},
            "aws:lb/targetGroup:TargetGroup": lambda _: {"arn": "arn:servers"},
        },
    )


def test_it_is_internal_keeps_a_log_and_may_not_be_deleted() -> None:
    balancer = made().cloud.one(BALANCER).properties
    assert (balancer["internal"], balancer["loadBalancerType"]) == (True, "application")
    assert balancer["accessLogs"] == {"bucket": "logs", "prefix": "load-balancer", "enabled": True}
    assert balancer["dropInvalidHeaderFields"] is True and balancer["enableDeletionProtection"] is True
    # MLflow compares the Host header with its list.
    assert balancer["preserveHostHeader"] is True
    # A name of 32 characters is the longest; that of a stack alone may have as many.
    assert balancer["namePrefix"] == "mlflow" and "name" not in balancer
    assert made(deletion_protection=False).cloud.one(BALANCER).properties["enableDeletionProtection"] is False


def test_nothing_is_answered_before_a_login_over_tls() -> None:
    cloud = made().cloud
    listener = cloud.one(LISTENER).properties
    assert (listener["port"], listener["protocol"]) == (443, "HTTPS")
    assert listener["sslPolicy"].startswith("ELBSecurityPolicy-TLS13-1-3-")
    assert listener["certificateArn"] == DEFAULTS["certificate_arn"]
    # The engine keeps the whole list secret, because a secret is in it.
    login, then = sorted(listener["defaultActions"]["value"], key=lambda action: action["order"])
    assert (login["type"], then["type"]) == ("authenticate-oidc", "forward")
    assert then["targetGroupArn"] == "arn:servers"
    asked = login["authenticateOidc"]
    assert (asked["issuer"], asked["tokenEndpoint"]) == (OIDC["issuer"], OIDC["token_endpoint"])
    assert asked["onUnauthenticatedRequest"] == "authenticate"
    assert asked["sessionTimeout"] <= 12 * 3600
    assert asked["clientSecret"] == f"value of {SECRET}"


def test_clients_come_in_by_https_and_it_reaches_one_port_of_the_nodes_and_the_identity_provider() -> None:
    cloud = made().cloud
    entrances = {
        (rule.properties["cidrIpv4"], rule.properties["fromPort"], rule.properties["toPort"])
        for rule in cloud.of_type("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
        if "cidrIpv4" in rule.properties
    }
    assert entrances == {(cidr, 443, 443) for cidr in ("10.20.0.0/16", "192.168.7.0/24")}
    group = cloud.one("aws:ec2/securityGroup:SecurityGroup").name
    of_nodes = [rule for rule in cloud.of_type("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
                if rule.properties["securityGroupId"] == "sg-cluster"]  # fmt: skip
    (rule,) = (one.properties for one in of_nodes)
    assert rule["referencedSecurityGroupId"].startswith(group)
    assert (rule["fromPort"], rule["toPort"]) == (NODE_PORT, NODE_PORT)
    exits = {
        (rule.properties.get("cidrIpv4"), rule.properties["fromPort"])
        for rule in cloud.of_type("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule")
    }
    assert exits == {("0.0.0.0/0", 443), (None, NODE_PORT)}


def test_the_service_would_refuse_nothing_that_a_rule_knows() -> None:
    cloud = made().cloud
    listener = dict(cloud.one(LISTENER).properties)
    listener["defaultActions"] = listener["defaultActions"]["value"]
    inputs = {asked.type: asked.properties for asked in cloud.asked} | {LISTENER: listener}
    about = ("aws:lb/", "aws:autoscaling/", "aws:vpc/")
    found = [[*BOOK.broken_alone(kind, {**row})] for kind, row in inputs.items() if kind.startswith(about)]
    assert found == [[]] * 6, "two kinds of rules of a group, four parts of the load balancer"
    listener["protocol"] = "HTTP"
    assert [rule.id for rule, _ in BOOK.broken_alone(LISTENER, listener)] == ["AWS-ELB-005"]


def test_servers_are_found_on_the_nodes_of_a_group_within_ten_seconds() -> None:
    graph = made()
    servers = graph.cloud.one("aws:lb/targetGroup:TargetGroup").properties
    assert (servers["targetType"], servers["port"], servers["protocol"]) == ("instance", NODE_PORT, "HTTP")
    check = servers["healthCheck"]
    assert check["path"] == "/health", "it needs no user, no known host and no database"
    assert check["interval"] * check["healthyThreshold"] <= 10
    nodes = graph.cloud.one("aws:autoscaling/attachment:Attachment").properties
    assert (nodes["autoscalingGroupName"], nodes["lbTargetGroupArn"]) == ("eks-system-1", "arn:servers")


def test_the_port_is_not_assigned_automatically_by_kubernetes() -> None:
    assert 30000 <= NODE_PORT <= 30085


def test_the_address_is_an_output_once_it_works() -> None:
    outputs = made().outputs
    assert outputs == {"url": "https://mlflow.example.com", "target": "internal-mlflow-1.elb.amazonaws.com"}
