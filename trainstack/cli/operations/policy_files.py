"""Settings and waivers by which a stack is judged: the given ones, else those beside the stack files."""

from dataclasses import dataclass, replace
from pathlib import Path

from infra.places import CHECKOUT, CLIENT
from policies.configuration import environments
from trainstack.stamp.client import AUDIT, WAIVERS


@dataclass(frozen=True)
class PolicyFiles:
    """Files of the policies, as `audit` takes them."""

    config: Path | None = None
    environment: str | None = None
    waivers: Path | None = None


def of_stack(given: PolicyFiles, stack: str) -> PolicyFiles:
    """The given files; what is not given is that of a client's folder or checkout, where it names the stack.

    Raises UserError for settings that cannot be read.
    """
    found = given
    if given.config is None and (folder := CLIENT or CHECKOUT):
        path = folder / (AUDIT if CLIENT else "stacks/audit.yaml")
        if path.is_file() and (given.environment or stack) in environments(path):
            found = replace(found, config=path, environment=given.environment or stack)
    if given.waivers is None and CLIENT and (CLIENT / WAIVERS).is_file():
        found = replace(found, waivers=CLIENT / WAIVERS)
    return found
