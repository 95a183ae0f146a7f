"""Instance metadata service, which returns the credentials of a machine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.pools import INSTANCE, template_of
from policies.rules.properties import each
from policies.stack import Stack

_MACHINES = (
    *("aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/instance:Instance"),
    "aws:ec2/launchConfiguration:LaunchConfiguration",
)


@CATALOG.rule_around(
    "MLS-IAM-05",
    "high",
    _MACHINES,
    "Otherwise a pod, or a server that can be made to fetch a URL, reads the credentials of its node.",
    "Set metadataOptions: httpTokens to required, httpPutResponseHopLimit to 1.",
    ("CKV_AWS_79",),
)
def metadata_is_for_the_node_alone(machine: Resource, stack: Stack) -> Iterator[Violation]:
    """Machines require IMDSv2 with a hop limit of one."""
    given = [_options(machine)]
    if machine.kind == INSTANCE and (template := _template(machine, given[0], stack)):
        given.append(_options(template))
    if _first("httpEndpoint", given) == "disabled":
        raise NotApplicableError("it has no metadata service")
    usual = [
        one.props
        for one in stack.all("aws:ec2/instanceMetadataDefaults:InstanceMetadataDefaults")
        if not one.region or not machine.region or one.region == machine.region
    ]
    tokens, hops = (_first(key, [*given, *usual]) for key in ("httpTokens", "httpPutResponseHopLimit"))
    # Unset, an image decides: it may leave IMDSv1 open, and those that require IMDSv2 make the limit 2
    # (EC2 API, Image.ImdsSupport and InstanceMetadataOptionsRequest).
    if tokens != "required":
        yield Violation("IMDSv1 answers without a token", "metadataOptions.httpTokens")
    if hops != 1:
        message = f"{hops} hops reach into pods" if hops else "the image decides the hop limit"
        yield Violation(message, "metadataOptions.httpPutResponseHopLimit")


def _options(machine: Resource) -> Mapping[str, Any]:
    return next((one for _, one in each(machine.props, "metadataOptions")), {})


def _template(machine: Resource, own: Mapping[str, Any], stack: Stack) -> Resource | None:
    """The launch template, for what an instance does not set itself (EC2 User Guide, launch templates)."""
    wanted = own.get("httpTokens") and own.get("httpPutResponseHopLimit")
    return None if wanted or own.get("httpEndpoint") == "disabled" else template_of(machine, stack)


def _first(key: str, given: Sequence[Mapping[str, Any]]) -> Any:
    """The value of the first that has one; the provider writes unset ones as empty or 0."""
    return next((found.get(key) for found in given if found.get(key) not in (None, "", 0)), None)
