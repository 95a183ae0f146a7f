"""Certificates of ACM and the records that validate them.

Sources: AWS Certificate Manager User Guide, "DNS validation" and "Email validation";
hashicorp/terraform-provider-aws internal/service/acm/certificate.go (flattenDomainValidations: options with a
resource record only).
"""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties

_MAILBOXES = ("admin", "administrator", "hostmaster", "postmaster", "webmaster")
_ZONE = "acm-validations.aws."


def _option(account: str, name: str) -> Properties:
    """The record of a name; a wildcard has that of its domain, and so has every certificate of an account."""
    domain = name.removeprefix("*.")
    seed = f"{account}/{domain}"
    value = f"_{draw(f'{seed}/value', 32)}.{draw(f'{seed}/zone', 10)}.{_ZONE}"
    return {
        "domainName": name,
        "resourceRecordName": f"_{draw(seed, 32)}.{domain}.",
        "resourceRecordType": "CNAME",
        "resourceRecordValue": value,
    }


def _certificate_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """One option for each name where DNS validates, addresses where e-mail does, none for others."""
    del seed
    none: Properties = {"domainValidationOptions": [], "validationEmails": []}
    first, more = outputs.get("domainName"), inputs.get("subjectAlternativeNames") or ()
    if not isinstance(first, str) or inputs.get("certificateBody") or inputs.get("certificateAuthorityArn"):
        return none
    names = [*dict.fromkeys(one for one in (first, *more) if isinstance(one, str))]
    found = {**none, "subjectAlternativeNames": names}
    if outputs.get("validationMethod") == "EMAIL":
        options = [one for one in inputs.get("validationOptions") or () if isinstance(one, Mapping)]
        domains = {one.get("domainName"): one.get("validationDomain") for one in options}
        hosts = dict.fromkeys(str(domains.get(one, one)).removeprefix("*.") for one in names)
        return {**found, "validationEmails": [f"{box}@{host}" for host in hosts for box in _MAILBOXES]}
    return {**found, "domainValidationOptions": [_option(site.account, one) for one in names]}


HOOKS: Mapping[str, Hooks[Site]] = {"acm/certificate:Certificate": Hooks(outputs=_certificate_outputs)}
