"""Invalid specs of load balancers by name: path of the change, value, path and code of the problem."""

from typing import Any

from tests.stacks.stack_files import LOAD_BALANCER

_BALANCER = ("on", "load_balancer")
_KEY = "arn:aws:kms:{}:{}:key/22222222-3333-4444-5555-666666666666"
_CERTIFICATE, _OIDC = LOAD_BALANCER["certificate_arn"], LOAD_BALANCER["oidc"]
BROKEN_LOAD_BALANCERS: dict[str, tuple[Any, ...]] = {
    "a load balancer open to the internet": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": ["10.0.0.0/8", "0.0.0.0/0"]},
        "on.load_balancer.allowed_cidrs[1]",
        "client-range-too-wide",
    ),
    "a load balancer for a range with host bits": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": ["10.20.0.1/16"]},
        "on.load_balancer.allowed_cidrs[0]",
        "not-an-ipv4-network",
    ),
    "a load balancer for a range twice": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": ["10.20.0.0/16", "10.20.0.0/16"]},
        "on.load_balancer.allowed_cidrs[1]",
        "client-range-repeated",
    ),
    "a load balancer without clients": (
        _BALANCER,
        {**LOAD_BALANCER, "allowed_cidrs": []},
        "on.load_balancer.allowed_cidrs",
        "too-short",
    ),
    "a host without a domain": (
        _BALANCER,
        {**LOAD_BALANCER, "host": "mlflow"},
        "on.load_balancer.host",
        "string-pattern-mismatch",
    ),
    "a certificate of another region": (
        _BALANCER,
        {**LOAD_BALANCER, "certificate_arn": _CERTIFICATE.replace("us-east-1", "us-west-2")},
        "on.load_balancer.certificate_arn",
        "arn-in-other-region",
    ),
    "a certificate of another account": (
        _BALANCER,
        {**LOAD_BALANCER, "certificate_arn": _CERTIFICATE.replace("123456789012", "210987654321")},
        "on.load_balancer.certificate_arn",
        "arn-in-other-account",
    ),
    "a key of disks in another region": (
        ("on", "disk_key_arn"),
        _KEY.format("us-west-2", "123456789012"),
        "on.disk_key_arn",
        "arn-in-other-region",
    ),
    "a key of disks in another account": (
        ("on", "disk_key_arn"),
        _KEY.format("us-east-1", "210987654321"),
        "on.disk_key_arn",
        "arn-in-other-account",
    ),
    "an alias of a key of disks": (
        ("on", "disk_key_arn"),
        "arn:aws:kms:us-east-1:123456789012:alias/disks",
        "on.disk_key_arn",
        "string-pattern-mismatch",
    ),
    "a certificate of IAM": (
        _BALANCER,
        {**LOAD_BALANCER, "certificate_arn": "arn:aws:iam::123456789012:server-certificate/ours"},
        "on.load_balancer.certificate_arn",
        "string-pattern-mismatch",
    ),
    "an identity provider without TLS": (
        _BALANCER,
        {**LOAD_BALANCER, "oidc": {**_OIDC, "token_endpoint": "http://id.example.com/token"}},
        "on.load_balancer.oidc.token_endpoint",
        "string-pattern-mismatch",
    ),
    "a secret in the stack file": (
        _BALANCER,
        {**LOAD_BALANCER, "oidc": {**_OIDC, "client_secret": "hunter2"}},
        "on.load_balancer.oidc.client_secret",
        "unknown-key",
    ),
    "a secret without its last characters": (
        _BALANCER,
        {**LOAD_BALANCER, "oidc": {**_OIDC, "client_secret_arn": _OIDC["client_secret_arn"][:-7]}},
        "on.load_balancer.oidc.client_secret_arn",
        "string-pattern-mismatch",
    ),
    "a secret of another region": (
        _BALANCER,
        {
            **LOAD_BALANCER,
            "oidc": {
                **_OIDC,
                "client_secret_arn": _OIDC["client_secret_arn"].replace("us-east-1", "eu-west-1"),
            },
        },
        "on.load_balancer.oidc.client_secret_arn",
        "arn-in-other-region",
    ),
    "a load balancer without a login": (
        _BALANCER,
        {key: value for key, value in LOAD_BALANCER.items() if key != "oidc"},
        "on.load_balancer.oidc",
        "required-key-missing",
    ),
}
