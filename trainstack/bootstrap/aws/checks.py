"""Preflight checks of what `trainstack bootstrap` prints: bucket of the state, trust, mails of the budget."""

import json
import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from botocore import session as aws_session
from botocore.exceptions import ClientError

from infra.stackspec import StackSpec
from trainstack.bootstrap import state
from trainstack.bootstrap.aws.account import AccountNames, login_of, short
from trainstack.bootstrap.aws.trusts import assumed, federated, of_guest
from trainstack.bootstrap.setup import ClientSetup
from trainstack.bootstrap.stacks import BootstrapPlace
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws import Check
from trainstack.preflight.aws.account import Account
from trainstack.preflight.aws.permissions import source
from trainstack.preflight.deployment import place_of, state_elsewhere

BUCKET: Final = "state-bucket"
TRUST: Final = "deployer-trust"
CONTACT: Final = "budget-contact"
_PUBLIC = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
_LOCKED = ("s3:DeleteObject", "s3:GetObject", "s3:PutObject")
"""Pulumi's lock is an object that is deleted (pulumi pkg/backend/diy/lock.go)."""
_ABSENT = ("404", "NoSuchBucket")
Document = Mapping[str, Any]


def checks_of(setup: ClientSetup) -> Mapping[str, Check]:
    """The checks for the stacks of a client."""
    return {
        BUCKET: partial(_bucket, setup),
        TRUST: partial(_trust, setup),
        CONTACT: partial(_contact, setup),
    }


def _names(setup: ClientSetup, account: Account) -> AccountNames:
    spec, on = account.spec, account.on
    place = BootstrapPlace("aws", on.account_id, spec.region, (spec,))
    return AccountNames(short(setup.client), place, setup.client)


def _bucket(setup: ClientSetup, account: Account) -> Iterator[Answer]:
    """The bucket of the state exists, is encrypted, versioned and private, and takes locks."""
    if account.manager:
        yield state_elsewhere(BUCKET, account.manager)
        return
    names = _names(setup, account)
    bucket = setup.bucket("s3", names.bucket)
    if setup.backend and not setup.backend.startswith("s3://"):
        text = f"the state is in {setup.backend.partition('?')[0]}, not in a bucket of the account"
        fix = f"pulumi login 's3://{names.bucket}?region={account.spec.region}'"
        yield Answer(BUCKET, State.NOTE, text, fix)
        return
    if account.found("s3", "head_bucket", *_ABSENT, Bucket=bucket) is None:
        text = f"the bucket {bucket} does not exist"
        yield Answer(BUCKET, State.SHORT, text, _apply(setup, account))
        return
    command = f"aws s3api {{}} --region {account.spec.region} --bucket {bucket} "
    wrong = [*_settings(names, account, bucket, command)]
    yield from wrong
    refused = _refused_locks(setup, account, bucket)
    if refused:
        text = f"no lock can be made in {bucket}: {', '.join(refused)} denied"
        yield Answer(BUCKET, State.SHORT, text, _apply(setup, account))
    elif not wrong:
        yield Answer(BUCKET, State.READY, f"{bucket} is encrypted, versioned and private, and takes locks")


def _settings(names: AccountNames, account: Account, bucket: str, command: str) -> Iterator[Answer]:
    encryption = account.found(
        "s3", "get_bucket_encryption", "ServerSideEncryptionConfigurationNotFoundError", Bucket=bucket
    )
    rules = encryption["ServerSideEncryptionConfiguration"]["Rules"] if encryption else ()
    defaults = [one.get("ApplyServerSideEncryptionByDefault") or {} for one in rules]
    if not any(one.get("SSEAlgorithm", "").startswith("aws:kms") for one in defaults):
        default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": names.alias}
        rule = {"Rules": [{"ApplyServerSideEncryptionByDefault": default, "BucketKeyEnabled": True}]}
        option = f"--server-side-encryption-configuration {shlex.quote(json.dumps(rule))}"
        text = f"{bucket} is not encrypted by a key of the account"
        yield Answer(BUCKET, State.SHORT, text, command.format("put-bucket-encryption") + option)
    if account.client("s3").get_bucket_versioning(Bucket=bucket).get("Status") != "Enabled":
        fix = command.format("put-bucket-versioning") + "--versioning-configuration Status=Enabled"
        yield Answer(BUCKET, State.SHORT, f"{bucket} keeps no versions: a lost state cannot be restored", fix)
    blocked = account.found(
        "s3", "get_public_access_block", "NoSuchPublicAccessBlockConfiguration", Bucket=bucket
    )
    on = blocked["PublicAccessBlockConfiguration"] if blocked else {}
    if not all(on.get(name) for name in _PUBLIC):
        option = f"--public-access-block-configuration {','.join(f'{name}=true' for name in _PUBLIC)}"
        text = f"{bucket} does not block public access"
        yield Answer(BUCKET, State.SHORT, text, command.format("put-public-access-block") + option)


def _refused_locks(setup: ClientSetup, account: Account, bucket: str) -> list[str]:
    """Actions on the lock of the stack that the caller lacks; none where IAM simulates no caller."""
    arn = source(account, account.client("sts").get_caller_identity()["Arn"])
    if arn is None:
        return []
    lock = f"arn:aws:s3:::{bucket}/{state.locks(setup.client, account.spec.name)}preflight.json"
    asked = {"PolicySourceArn": arn, "ActionNames": [*_LOCKED], "ResourceArns": [lock]}
    rows = account.pages("iam", "simulate_principal_policy", "EvaluationResults", **asked)
    return [str(row["EvalActionName"]) for row in rows if row["EvalDecision"] != "allowed"]


def _trust(setup: ClientSetup, account: Account) -> Iterator[Answer]:
    """The deployer trusts the stack's own deployments: one subject, or one role with an external id."""
    role = _names(setup, account).role(setup.large_stack(account.spec.name))
    found = account.found("iam", "get_role", "NoSuchEntity", RoleName=role)
    if found is None:
        fix = f"{_apply(setup, account)} --skip {TRUST} if it deploys as another role."
        yield Answer(TRUST, State.SHORT, f"the role {role} does not exist", fix)
        return
    if account.manager and not login_of(account.manager):
        yield _of_guest(account, account.manager, role, found["Role"]["AssumeRolePolicyDocument"])
        return
    answers = [
        answer
        for statement in _listed(found["Role"]["AssumeRolePolicyDocument"].get("Statement"))
        if statement["Effect"] == "Allow"
        for answer in _judged(setup, account, role, statement)
    ]
    if not answers:
        text = f"{role} trusts no one"
        answers = [Answer(TRUST, State.SHORT, text, _apply(setup, account))]
    yield from answers


def _of_guest(account: Account, manager: StackSpec, role: str, trusted: Document) -> Answer:
    """The deployer of a cluster in its own account is assumed by that of its large stack alone."""
    _, place = place_of(manager)
    deployer = f"arn:aws:iam::{place}:role/{role}"
    wanted = of_guest(deployer, (account.spec,))
    found = [one for one in _listed(trusted.get("Statement")) if one["Effect"] == "Allow"]
    if [_compared(one) for one in found] == [_compared(one) for one in wanted["Statement"]]:
        return Answer(TRUST, State.READY, f"{role} is assumed by {deployer}")
    return Answer(
        TRUST, State.SHORT, f"{role} is not assumed by {deployer} alone, as its stack file says",
        f"aws iam update-assume-role-policy --role-name {role} --policy-document "
        + shlex.quote(json.dumps(wanted)),
    )  # fmt: skip


def _compared(statement: Document) -> object:
    principal = {kind: sorted(_listed(one)) for kind, one in (statement.get("Principal") or {}).items()}
    return principal, sorted(_listed(statement.get("Action"))), _plain(statement.get("Condition") or {})


def _judged(setup: ClientSetup, account: Account, role: str, statement: Document) -> Iterator[Answer]:
    if "sts:AssumeRoleWithWebIdentity" in _listed(statement.get("Action")):
        yield from _judged_subject(setup, account, role, statement)
        return
    ids = _listed((statement.get("Condition") or {}).get("StringEquals", {}).get("sts:ExternalId"))
    principals = _listed((statement.get("Principal") or {}).get("AWS") if statement else None)
    mine = str(aws_session.Session().get_scoped_config().get("external_id") or "")
    update = f"aws iam update-assume-role-policy --role-name {role} --policy-document "
    exact = [one for one in principals if ":role/" in one and "*" not in one]
    fixed = assumed(exact[0] if exact else "ARN_OF_THE_AGENCY_ROLE", mine or "EXTERNAL_ID")
    fix = update + shlex.quote(json.dumps(fixed))
    if exact != principals or not exact:
        yield Answer(TRUST, State.SHORT, f"{role} trusts {', '.join(principals) or 'everyone'}", fix)
    elif len(ids) != 1 or (mine and ids != [mine]):
        wanted = f"the external id {mine}" if mine else "one external id"
        text = f"{role} does not ask {exact[0]} for {wanted}, but for {', '.join(ids) or 'none'}"
        yield Answer(TRUST, State.SHORT, text, fix)
    elif setup.pipeline:
        text = f"{role} trusts {exact[0]}; the pipelines of {setup.pipeline.repository} cannot assume it"
        yield Answer(TRUST, State.NOTE, text, _apply(setup, account))
    else:
        yield Answer(TRUST, State.READY, f"{role} asks {exact[0]} for an external id")


def _judged_subject(setup: ClientSetup, account: Account, role: str, statement: Document) -> Iterator[Answer]:
    condition = statement.get("Condition") or {}
    subjects = [
        subject
        for test in condition.values()
        for key, value in test.items()
        if key.endswith(":sub")
        for subject in _listed(value)
    ]
    shown = ", ".join(subjects) or "every subject"
    if setup.pipeline is None:
        if not subjects or any("*" in one or "?" in one for one in subjects):
            yield Answer(TRUST, State.SHORT, f"{role} trusts {shown}", _apply(setup, account))
            return
        text = f"{role} trusts {shown}; the repository of this folder is unknown"
        yield Answer(TRUST, State.NOTE, text, "git remote add origin URL, at github.com or gitlab.com")
        return
    pipeline = setup.trusted_as(subjects) or setup.pipeline
    subject = pipeline.subject(setup.large_stack(account.spec.name))
    wanted = federated(account.on.account_id, pipeline, (subject,))
    (own,) = wanted["Statement"]
    if _plain(own["Condition"]) == _plain(condition) and own["Principal"] == statement.get("Principal"):
        yield setup.matched(TRUST, f"{role} trusts {shown}", pipeline, setup.large_stack(account.spec.name))
        return
    text = f"{role} trusts {shown} with other conditions than {subject}, the subject of the pipeline"
    document = shlex.quote(json.dumps(wanted))
    fix = f"aws iam update-assume-role-policy --role-name {role} --policy-document {document}"
    yield Answer(TRUST, State.SHORT, text, fix if setup.form_known else _apply(setup, account))


def _contact(setup: ClientSetup, account: Account) -> Iterator[Answer]:
    """The budget of the client's stacks mails the addresses of the stack."""
    name, wanted = _names(setup, account).budget, account.spec.budget.alert_emails
    which = {"AccountId": account.on.account_id, "BudgetName": name}
    try:
        found = [*account.pages("budgets", "describe_notifications_for_budget", "Notifications", **which)]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise
        yield Answer(CONTACT, State.SHORT, f"the budget {name} does not exist", _apply(setup, account))
        return
    if not found:
        text = f"the budget {name} notifies no one"
        yield Answer(CONTACT, State.SHORT, text, _apply(setup, account))
        return
    missing = []
    for one in found:
        operation, key = "describe_subscribers_for_notification", "Subscribers"
        mailed = {
            row["Address"] for row in account.pages("budgets", operation, key, **which, Notification=one)
        }
        missing += [(one, address) for address in wanted if address not in mailed]
    for one, address in missing:
        notification = ",".join(
            f"{field}={value}" for field, value in one.items() if field != "NotificationState"
        )
        fix = (
            f"aws budgets create-subscriber --account-id {account.on.account_id} --budget-name {name} "
            f"--notification {notification} --subscriber SubscriptionType=EMAIL,Address={address}"
        )
        text = f"the notification {one['NotificationType']} of the budget {name} is not mailed to {address}"
        yield Answer(CONTACT, State.SHORT, text, fix)
    if not missing:
        yield Answer(CONTACT, State.READY, f"the budget {name} is mailed to {', '.join(wanted)}")


def _apply(setup: ClientSetup, account: Account) -> str:
    return f"Print it: `{setup.command()}`; the administrator of account {account.on.account_id} applies it."


def _listed(found: Any) -> list[Any]:
    return [found] if isinstance(found, str | dict) else [*(found or ())]


def _plain(condition: Document) -> dict[str, dict[str, list[Any]]]:
    """A condition with lists alone, in order."""
    return {
        test: {key: sorted(_listed(value)) for key, value in keys.items()} for test, keys in condition.items()
    }
