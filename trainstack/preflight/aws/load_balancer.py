"""Checks of the certificate and the client secret of a load balancer, which the stack does not create."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

_CERTIFICATE, _SECRET = "certificate", "client-secret"
_ABSENT = "ResourceNotFoundException"
_CURRENT = "AWSCURRENT"


def certificate(account: Account) -> Iterator[Answer]:
    """The certificate exists, is issued, and is valid for the host."""
    wanted = account.on.load_balancer
    if wanted is None:
        return
    arn = wanted.certificate_arn
    found = account.found("acm", "describe_certificate", _ABSENT, CertificateArn=arn)
    if found is None:
        fix = "Correct on.load_balancer.certificate_arn; `aws acm list-certificates` lists yours."
        yield Answer(_CERTIFICATE, State.SHORT, f"{arn} does not exist here", fix)
        return
    row = found["Certificate"]
    wrong = list(_differences(row, wanted.host))
    for text, fix in wrong:
        yield Answer(_CERTIFICATE, State.SHORT, f"{arn} {text}", fix)
    if not wrong:
        until = row.get("NotAfter")
        end = f" until {until:%Y-%m-%d}" if until else ""
        yield Answer(_CERTIFICATE, State.READY, f"the certificate of {wanted.host} is valid{end}")


def _differences(row: Mapping[str, Any], host: str) -> Iterator[tuple[str, str]]:
    if row["Status"] != "ISSUED":
        fix = "Complete its validation in ACM (the required DNS record), or name another one."
        yield f"is {row['Status']}", fix
    names = [row["DomainName"], *row.get("SubjectAlternativeNames", ())]
    if not any(covers(name, host) for name in names):
        fix = f"Request one for {host}, or change on.load_balancer.host."
        yield f"is for {', '.join(dict.fromkeys(names))}, not for {host}", fix


def covers(name: str, host: str) -> bool:
    """Return whether a name of a certificate covers a host; `*` is one whole label (RFC 6125, 6.4.3)."""
    first, _, rest = name.lower().partition(".")
    return host == name.lower() or (first == "*" and host.partition(".")[2] == rest)


def client_secret(account: Account) -> Iterator[Answer]:
    """The secret of the identity provider's client has a value, which is not read."""
    wanted = account.on.load_balancer
    if wanted is None:
        return
    arn = wanted.oidc.client_secret_arn
    found = account.found("secretsmanager", "describe_secret", _ABSENT, SecretId=arn)
    if found is None:
        fix = "Create it with the secret of the identity provider's client as its whole value."
        yield Answer(_SECRET, State.SHORT, f"{arn} does not exist here", fix)
    elif "DeletedDate" in found:
        fix = f"aws secretsmanager restore-secret --secret-id {arn}"
        yield Answer(_SECRET, State.SHORT, f"{arn} is being deleted", fix)
    elif not any(_CURRENT in stages for stages in found.get("VersionIdsToStages", {}).values()):
        fix = f"aws secretsmanager put-secret-value --secret-id {arn} --secret-string file://SECRET"
        yield Answer(_SECRET, State.SHORT, f"{arn} has no value yet", fix)
    else:
        yield Answer(_SECRET, State.READY, f"{found['Name']} has a value")
