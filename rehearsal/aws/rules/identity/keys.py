"""KMS keys and aliases, secrets."""

from collections.abc import Iterator

from rehearsal.aws.facts import DEPLOYER_ROLE
from rehearsal.aws.rules import documents
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import many, named, number, principals, text
from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation

_LOGS, _ANY_LOGS = "aws:cloudwatch/logGroup:LogGroup", "logs.amazonaws.com"
_LOGGING = ("kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey")
_KEY, _ALIAS = "aws:kms/key:Key", "aws:kms/alias:Alias"
_VAULT = "aws:secretsmanager/secret:Secret"
# Specs of keys that encrypt, by the beginnings of their names.
_ENCRYPTING = ("SYMMETRIC_DEFAULT", "RSA_", "SM2")
_CREATE_KEY = "botocore 1.44.5 kms/2014-11-01 CreateKeyRequest"


@BOOK.rule("AWS-KMS-001", _ALIAS, source="botocore 1.44.5 kms/2014-11-01 CreateAliasRequest")
def alias_name(inputs: Properties) -> Iterator[Violation]:
    """An alias begins with alias/, and not with alias/aws/."""
    name = text(inputs.get("name"))
    if name is not None and (not name.startswith("alias/") or name.startswith("alias/aws/")):
        yield Violation(
            "name", "must begin with alias/ and not with alias/aws/", f"Use alias/{name.split('/')[-1]}."
        )


@BOOK.rule(
    "AWS-KMS-004", _KEY, source=f"{_CREATE_KEY}; pulumi-aws 7.51.1 docstring of aws.kms.Key (key_usage)"
)
def usage_is_given(inputs: Properties) -> Iterator[Violation]:
    """A key that cannot encrypt needs a key usage: the provider requests ENCRYPT_DECRYPT by default."""
    kind = text(inputs.get("customerMasterKeySpec"))
    if kind and not kind.startswith(_ENCRYPTING) and "keyUsage" not in inputs:
        yield Violation(
            "keyUsage", f"a key of spec {kind} cannot ENCRYPT_DECRYPT", "Use for example SIGN_VERIFY."
        )


@BOOK.rule_around("AWS-KMS-005", _KEY, source=_CREATE_KEY)
def creator_can_change_the_key_policy(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A key policy allows its creator to change it: otherwise the key could not be managed any more."""
    allowed = [
        statement
        for _, _, statement in documents.statements(inputs)
        if str(statement.get("Effect")) == "Allow"
    ]
    if not allowed or inputs.get("bypassPolicyLockoutSafetyCheck") is True:
        return
    if not any(_manages(site, statement) for statement in allowed):
        yield Violation(
            "policy",
            "The new key policy will not allow you to update the key policy in the future.",
            f"Let arn:aws:iam::{site.account}:root do kms:*.",
            "MalformedPolicyDocumentException",
        )


@BOOK.rule_around(
    "AWS-KMS-006",
    _LOGS,
    source="Amazon CloudWatch Logs User Guide, encrypt-log-data-kms.md; "
    "hashicorp/terraform-provider-aws issue 29282",
)
def logs_may_use_the_key(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The key of a log group lets CloudWatch Logs of its region use it; the default policy does not."""
    key, service = site.find(inputs.get("kmsKeyId"), "kms/key:Key"), f"logs.{site.region}.amazonaws.com"
    if key and not any(
        documents.lets(site, key, "Service", name, *_LOGGING) for name in (service, _ANY_LOGS)
    ):
        yield Violation(
            "kmsKeyId",
            f"The specified KMS key does not exist or is not allowed to be used with LogGroup: {named(key)}",
            f"Let {service} do kms:Encrypt*, kms:Decrypt*, kms:ReEncrypt*, kms:GenerateDataKey* and "
            "kms:Describe* in the key's policy.",
            "AccessDeniedException",
        )


def _manages(site: AwsContext, statement: dict[str, object]) -> bool:
    """Return whether a statement allows kms:PutKeyPolicy to the account or the deploying role."""
    ours = {"*", site.account, f"arn:aws:iam::{site.account}:root"}
    ours.add(f"arn:aws:iam::{site.account}:role/{DEPLOYER_ROLE}")
    actions = {str(action).lower() for action in many(statement.get("Action"))}
    may = actions & {"*", "kms:*", "kms:put*", "kms:putkeypolicy"} or "NotAction" in statement
    return bool(may) and bool(ours & principals(statement, "AWS") or "NotPrincipal" in statement)


@BOOK.rule("AWS-SEC-001", _VAULT, source="pulumi-aws 7.51.1 docstring of aws.secretsmanager.Secret")
def recovery_window(inputs: Properties) -> Iterator[Violation]:
    """A secret's recovery window is 0 or 7 to 30 days."""
    days = number(inputs.get("recoveryWindowInDays"))
    if days is not None and days != 0 and not 7 <= days <= 30:
        yield Violation("recoveryWindowInDays", f"{days:.0f} is neither 0 nor between 7 and 30")
