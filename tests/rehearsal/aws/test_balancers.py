"""Load balancers: names, certificates and deletion."""

import re
from typing import Any

from rehearsal.aws.existing import seed
from tests.rehearsal.aws.harness import Driver
from tests.rehearsal.driver import refused

CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/0f0e0d0c-0b0a-0908-0706-050403020100"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:sso/mlflow-AbCd12"
BALANCER, LISTENER = "lb/loadBalancer:LoadBalancer", "lb/listener:Listener"


def balanced(aws: Driver, **changes: Any) -> tuple[str, str]:
    """A load balancer and its target group."""
    vpc, subnets = aws.network()
    inputs = {"namePrefix": "mlflow", "internal": True, "subnets": subnets, **changes}
    balancer = aws.create(BALANCER, "balancer", **inputs)["arn"]
    servers = aws.create("lb/targetGroup:TargetGroup", "servers", vpcId=vpc, port=30050, protocol="HTTP")
    return balancer, servers["arn"]


def listening(aws: Driver, balancer: str, servers: str, name: str = "https") -> dict[str, Any]:
    forward = {"type": "forward", "targetGroupArn": servers}
    return aws.create(
        LISTENER,
        name,
        loadBalancerArn=balancer,
        port=443,
        protocol="HTTPS",
        certificateArn=CERTIFICATE,
        defaultActions=[forward],
    )


def known_certificate(aws: Driver) -> None:
    seed(aws.state, [{"type": "aws:acm/certificate:Certificate", "id": CERTIFICATE}])


def test_names_and_addresses_have_the_format_of_the_service(aws: Driver) -> None:
    known_certificate(aws)
    balancer, servers = balanced(aws)
    made = aws.made["balancer"][3]
    assert re.fullmatch(r"mlflow[0-9a-f]{7}", made["name"])
    assert re.fullmatch(rf"internal-{made['name']}-\d{{10}}\.us-east-1\.elb\.amazonaws\.com", made["dnsName"])
    arn = f"arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/app/{made['name']}/"
    assert balancer.startswith(arn) and made["vpcId"].startswith("vpc-")
    listener = listening(aws, balancer, servers)
    assert listener["arn"].startswith(f"{balancer.replace(':loadbalancer/', ':listener/')}/")


def test_a_certificate_exists_before_it_is_used(aws: Driver) -> None:
    balancer, servers = balanced(aws)
    refused(r"CertificateNotFound.*trainstack rehearse seed", listening, aws, balancer, servers)
    known_certificate(aws)
    listening(aws, balancer, servers)
    refused("DuplicateListener", listening, aws, balancer, servers, "again")


def test_protection_and_listeners_block_the_deletion(aws: Driver) -> None:
    known_certificate(aws)
    balancer, servers = balanced(aws, enableDeletionProtection=True)
    listening(aws, balancer, servers)
    refused("deletion protection is enabled", aws.delete, "balancer")
    refused("ResourceInUse", aws.delete, "servers")
    refused("DependencyViolation", aws.delete, "subnet-a")
    aws.delete("https")
    aws.delete("servers")


def test_the_value_of_a_foreign_secret_can_be_registered(aws: Driver) -> None:
    read = "secretsmanager/getSecretVersion:getSecretVersion"
    secret = {"type": "aws:secretsmanager/secret:Secret", "id": SECRET}
    value = {"secretId": SECRET, "secretString": "of the client"}
    refused("trainstack rehearse seed", aws.invoke, read, secretId=SECRET)
    seed(aws.state, [secret])
    refused("has no value yet", aws.invoke, read, secretId=SECRET)
    token = "aws:secretsmanager/secretVersion:SecretVersion"
    seed(aws.state, [{"type": token, "id": f"{SECRET}|1", "outputs": value}])
    assert aws.invoke(read, secretId=SECRET)["secretString"] == "of the client"
