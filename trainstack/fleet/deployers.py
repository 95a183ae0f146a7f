"""Names of deployers in the fleet file, which may have the name of the stack in them.

`trainstack bootstrap` makes a deployer for each stack and shortens its name to what the cloud allows. A name
in the fleet file is shortened in the same way. Account and project are always written in the fleet file: were
they taken from the files of a client, it could choose those of another client.
"""

from infra.errors import Problem, UserError
from infra.naming import sanitize
from trainstack.fleet.fleet_file import AwsCredentials, GoogleCredentials
from trainstack.fleet.stacks import FleetStack

STACK = "{stack}"
_ROLE_PART, _SERVICE_ACCOUNT = 55, 30
"""Characters of a stack in the name of a role (64 with `deployer-`), and of the id of a service account."""


def aws(login: AwsCredentials, stack: FleetStack) -> AwsCredentials:
    """The login of one stack. Raises UserError for a stack whose name no role can have."""
    role = login.role_arn or ""
    if STACK not in role:
        return login
    name = _label(stack, stack.name, _ROLE_PART)
    return login.model_copy(update={"role_arn": role.replace(STACK, name)})


def google(login: GoogleCredentials, stack: FleetStack) -> GoogleCredentials:
    """The login of one stack. Raises UserError for a stack whose name no service account can have."""
    name, at, project = (login.service_account or "").partition("@")
    if STACK not in name:
        return login
    name = _label(stack, name.replace(STACK, stack.name), _SERVICE_ACCOUNT)
    return login.model_copy(update={"service_account": f"{name}{at}{project}"})


def _label(stack: FleetStack, text: str, length: int) -> str:
    try:
        return sanitize(text, max_length=length)
    except ValueError:
        rule, fix = f"cannot be {STACK} in the name of a deployer", "Give the stack letters or digits."
        raise UserError([Problem(stack.id, stack.name, rule, fix, code="deployer-without-name")]) from None
