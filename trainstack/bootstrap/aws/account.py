"""Resources of the account: their names and documents, whichever the form."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from infra.errors import Problem, UserError, raise_all
from infra.naming import TAG_PREFIX, sanitize
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from trainstack.bootstrap import state
from trainstack.bootstrap.aws import readers, rights, roles_boundary
from trainstack.bootstrap.aws.trusts import Document, assumed, document, federated, of_guest
from trainstack.bootstrap.stacks import BootstrapPlace, DeployedStacks
from trainstack.bootstrap.trust import RESERVED, AgencyRole, Pipeline, Trust

CONTEXT = "stack"
"""Key of the encryption context of a stack's secrets."""
SESSION_SECONDS = 4 * 3600
"""Of the deployer: the first `up` of a cluster with its validation takes more than the default hour."""
_ADDRESSES = 10  # subscribers of a notification (AWS Budgets user guide, "Creating a budget")
_PEOPLE = ("group", "mfa", "oidc-provider", "saml-provider", "user")
_ORGANIZATION = (
    "account:Accept*", "account:Close*", "account:Delete*", "account:Disable*", "account:Enable*",
    "account:Put*", "account:Start*", "organizations:Accept*", "organizations:Attach*",
    "organizations:Cancel*", "organizations:Close*", "organizations:Create*", "organizations:Decline*",
    "organizations:Delete*", "organizations:Deregister*", "organizations:Detach*", "organizations:Disable*",
    "organizations:Enable*", "organizations:Invite*", "organizations:Leave*", "organizations:Move*",
    "organizations:Put*", "organizations:Register*", "organizations:Remove*", "organizations:Tag*",
    "organizations:Untag*", "organizations:Update*",
)  # fmt: skip
"""Changes; `preflight` reads the organization."""
_STATE = (
    "s3:BypassGovernanceRetention", "s3:DeleteBucket", "s3:DeleteBucketPolicy", "s3:DeleteObjectVersion",
    "s3:PutBucketAcl", "s3:PutBucketOwnershipControls", "s3:PutBucketPolicy", "s3:PutBucketPublicAccessBlock",
    "s3:PutBucketVersioning", "s3:PutEncryptionConfiguration", "s3:PutLifecycleConfiguration",
)  # fmt: skip
_READ = (
    "s3:GetBucketPolicy", "s3:GetBucketPublicAccessBlock", "s3:GetBucketVersioning",
    "s3:GetEncryptionConfiguration",
)  # fmt: skip
"""Reads of the bucket's settings."""
_KEY = ("kms:CreateGrant", "kms:DisableKey", "kms:PutKeyPolicy", "kms:ScheduleKeyDeletion")


@dataclass(frozen=True)
class Role:
    """A role that a person of the agency or a pipeline assumes."""

    name: str
    trusted: Document
    policies: list[Document]


@dataclass(frozen=True)
class AccountNames:
    """Names of what an administrator creates in the account of a client's stacks."""

    client: str
    place: BootstrapPlace
    project: str
    """The project of Pulumi, which names of objects of the state have."""

    @property
    def bucket(self) -> str:
        """The bucket of the state, of at most 63 characters."""
        return f"trainstack-{self.client}-{self.place.name}"

    @property
    def alias(self) -> str:
        """The alias of the key of the state and of its secrets."""
        return f"alias/trainstack-{self.client}-state"

    @property
    def boundary(self) -> str:
        """The boundary of the deployers."""
        return f"trainstack-{self.client}-deployers"

    def roles_boundary_arn(self, spec: DeployedStacks) -> str:
        """The ARN of the boundary of roles of a stack, for `on.permissions_boundary`."""
        return f"arn:aws:iam::{self.place.name}:policy/{roles_boundary_name(spec)}"

    @property
    def bucket_arns(self) -> list[str]:
        """The bucket and its objects."""
        return [f"arn:aws:s3:::{self.bucket}", f"arn:aws:s3:::{self.bucket}/*"]

    @property
    def budget(self) -> str:
        """The budget of all stacks."""
        return f"trainstack-{self.client}"

    def role(self, name: str) -> str:
        """The deployer of a stack, or of a large one; no stack gives such a name."""
        return f"deployer-{sanitize(name, max_length=55)}"


@dataclass(frozen=True)
class ClientAccount(AccountNames):
    """Resources that an administrator creates in the account of a client's stacks."""

    trust: AgencyRole | Pipeline

    @property
    def unbounded(self) -> list[DeployedStacks]:
        """Stacks whose files name no boundary for roles, so that their deployers can create none."""
        return [one for one in self.place.deployed if not _of(one.specs[0]).permissions_boundary]

    @property
    def other_boundaries(self) -> list[tuple[DeployedStacks, str]]:
        """Stacks with the boundaries that their files name in place of the printed ones."""
        return [
            (one, arn)
            for one in self.place.deployed
            if (arn := _of(one.specs[0]).permissions_boundary) and arn != self.roles_boundary_arn(one)
        ]

    def roles(self, key: Any) -> list[Role]:
        """Deployers, and what previews and nightly checks of a pipeline log in as.

        `key`: reference to the ARN of the state's key.
        """
        made = [
            Role(self.role(one.name), self.trusted(one), self.rights(one, key)) for one in self.place.deployed
        ]
        if isinstance(self.trust, Pipeline):
            bucket, objects = self.bucket_arns
            read = [
                rights.allow([*_READ, "s3:ListBucket"], [bucket]),
                rights.allow(["s3:GetObject"], [objects]),
                rights.allow(["kms:Decrypt", "kms:DescribeKey"], [key]),
            ]
            subjects = {"preview": self.trust.previews, "nightly": (self.trust.main,)}
            for name, those in subjects.items():
                found = readers.statements(self.place.specs, audits=name == "nightly")
                documents = rights.policies([*read, *found])
                made.append(
                    Role(
                        f"trainstack-{self.client}-{name}",
                        federated(self.place.name, self.trust, those),
                        documents,
                    )
                )
        return made

    def trusted(self, one: DeployedStacks) -> Document:
        """The trust policy of a deployer."""
        if host := assuming(one):
            return of_guest(f"arn:aws:iam::{_of(host).account_id}:role/{self.role(one.name)}", one.specs)
        if isinstance(self.trust, AgencyRole):
            return assumed(self.trust.arn, self.trust.external_id)
        return federated(self.place.name, self.trust, (self.trust.subject(one.name),))

    def rights(self, one: DeployedStacks, key: Any) -> list[Document]:
        """Policies of a deployer; `key`: reference to the ARN of the state's key."""
        bucket, _ = self.bucket_arns
        names = [*one.states]
        own = [f"{bucket}/{start}*" for name in names for start in state.prefixes(self.project, name)]
        # Rights to the stack's own keys are rights to all of the account, which have ids in place of names.
        other = {
            "kms:ViaService": f"s3.{self.place.region}.amazonaws.com",
            f"kms:EncryptionContext:{CONTEXT}": names[0] if len(names) == 1 else names,
        }
        found = [
            rights.allow([*_READ, "s3:ListBucket"], [bucket]),
            # Locks are objects, which are deleted (pulumi pkg/backend/diy/lock.go).
            rights.allow(["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], own),
            rights.allow(["s3:GetObject", "s3:PutObject"], [f"{bucket}/{state.META}"]),
            rights.allow(["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey"], [key]),
            {**_deny(rights.SECRETS, [key]), "Condition": {"StringNotEquals": other}},
        ]
        if logins := sorted({role for spec in one.guests if (role := login_of(spec))}):
            found.append(rights.allow(["sts:AssumeRole"], logins))
        limit = _of(one.specs[0]).permissions_boundary or self.roles_boundary_arn(one)
        made = [
            statement
            for spec in one.specs
            for statement in rights.statements(spec, limit, guest=one.is_guest)
        ]
        return rights.policies([*found, *(rights.merged(made) if len(one.specs) > 1 else made)])

    def secrets_provider(self, stack: str) -> str:
        """The URL for `pulumi stack init --secrets-provider`; its context separates stacks of one key.

        Source: gocloud.dev secrets/awskms/kms.go v0.46, parameters `context_*`.
        """
        return f"awskms:///{self.alias}?region={self.place.region}&context_{CONTEXT}={stack}"

    def deployers_boundary(self, key: Any) -> Document:
        """Denials whatever their policies allow: own rights, users, the protection of the state."""
        account = self.place.name
        own = [f"arn:aws:iam::{account}:{kind}/{one}*" for kind in ("role", "policy") for one in RESERVED]
        own += sorted({arn for _, arn in self.other_boundaries})
        own += [f"arn:aws:iam::{account}:{kind}/*" for kind in _PEOPLE]
        return document(
            rights.allow(["*"], ["*"]),
            _deny(_ORGANIZATION, ["*"]),
            {
                "Effect": "Deny",
                "NotAction": ["iam:Generate*", "iam:Get*", "iam:List*", "iam:Simulate*"],
                "Resource": own,
            },
            *_KEPT_TAG,
            _other_accounts(account),
            _deny(_STATE, ["arn:aws:s3:::trainstack-*"]),
            _deny(_KEY, [key]),
            _other_states(key),
        )

    def created_roles_boundary(self, one: DeployedStacks, key: Any) -> Document:
        """Limits of the roles of a stack, or of a large one and its clusters."""
        no_state = [_deny(["s3:*"], self.bucket_arns), _deny(["kms:*"], [key]), _other_states(key)]
        found = [row for spec in one.specs for row in roles_boundary.statements(self.place.name, spec)]
        if not one.is_guest:
            found += roles_boundary.logins(self.place.name, one.name, one.clusters)
        found = rights.merged(found) if len(one.specs) > 1 else found
        return document(*found, *_KEPT_TAG, _other_accounts(self.place.name), *no_state)

    @property
    def bucket_policy(self) -> Document:
        """TLS only."""
        insecure = {"Condition": {"Bool": {"aws:SecureTransport": "false"}}}
        return document({**_deny(["s3:*"], self.bucket_arns), "Principal": "*", **insecure})

    @property
    def key_policy(self) -> Document:
        """IAM of the account decides who uses the key."""
        root = {"AWS": f"arn:aws:iam::{self.place.name}:root"}
        return document({**rights.allow(["kms:*"], ["*"]), "Principal": root})

    @property
    def contacts(self) -> tuple[str, ...]:
        """Addresses of the account's budget."""
        return self.place.emails[:_ADDRESSES]


def account(client: str, place: BootstrapPlace, trust: Trust) -> ClientAccount:
    """The account of a place.

    Raises UserError for a trust of another cloud, and for a boundary of roles that AWS or another account
    has, or that is printed for others.
    """
    if not isinstance(trust, AgencyRole | Pipeline):
        fix = "Give --agency-role and --external-id, --github, or --gitlab."
        rule = "is for stacks on Google Cloud"
        raise UserError(
            [Problem("--agency-member", trust.member, rule, fix, code="bootstrap-trust-of-other-cloud")]
        )
    made = ClientAccount(short(client), place, client, trust)
    raise_all([one for spec, arn in made.other_boundaries for one in _wrong_boundary(made, spec, arn)])
    raise_all([problem for one in place.deployed for problem in _too_long(made, one)])
    return made


def _wrong_boundary(made: ClientAccount, spec: DeployedStacks, arn: str) -> Iterator[Problem]:
    name, own = f"{spec.name}: on.permissions_boundary", made.roles_boundary_arn(spec)
    fix = f"Set on.permissions_boundary to {own}, which is printed here."
    if ":iam::aws:" in arn:
        rule = "is managed by AWS, which writes it for people: roles with it can reach what the account has"
        yield Problem(name, arn, rule, fix, code="bootstrap-boundary-of-aws")
    elif not arn.startswith(f"arn:aws:iam::{made.place.name}:policy/"):
        rule = f"is a policy of another account: IAM takes one of {made.place.name}"
        yield Problem(name, arn, rule, fix, code="bootstrap-boundary-of-others")
    elif arn.partition(":policy/")[2].startswith(RESERVED):
        rule = "is for deployers or for roles of another stack, by its name"
        yield Problem(name, arn, rule, fix, code="bootstrap-boundary-of-others")


def _too_long(made: ClientAccount, one: DeployedStacks) -> Iterator[Problem]:
    """A boundary is one policy, which grows with the clusters of a large stack."""
    key = f"arn:aws:kms:{made.place.region}:{made.place.name}:key/{'0' * 36}"
    length, most = rights.size(made.created_roles_boundary(one, key)["Statement"]), rights.MOST_CHARACTERS
    if length > most:
        rule = f"has too many clusters in {made.place.name}: their boundary has {length} characters"
        fix = f"IAM takes {most}: give some of its clusters an account of their own."
        yield Problem("stacks", one.name, rule, fix, code="bootstrap-boundary-too-long")


def assuming(one: DeployedStacks) -> StackSpec | None:
    """The large stack whose deployer assumes that of its clusters here.

    None where they have another deployer: the login that the large stack names is assumed by others, who
    then assume that of the clusters, too.
    """
    return None if one.host is None or login_of(one.host) else one.host


def login_of(spec: StackSpec) -> str:
    """The ARN of the role that a deployment assumes by the stack's file; empty without one."""
    login = spec.on.assume_role if isinstance(spec.on, AwsSpec) else None
    return login.role_arn if login else ""


def roles_boundary_name(spec: DeployedStacks) -> str:
    """The boundary of roles of a stack. Every stack has its own, as it limits them to names of that stack."""
    return f"trainstack-{spec.name}-roles"


def short(client: str) -> str:
    """The client in names of resources."""
    return sanitize(client, max_length=39)


def _of(spec: StackSpec) -> AwsSpec:
    assert isinstance(spec.on, AwsSpec)
    return spec.on


def _deny(actions: Any, resources: Any) -> Document:
    return {**rights.allow(actions, resources), "Effect": "Deny"}


def _other_accounts(account: str) -> Document:
    """Denial of buckets of other accounts: ARNs of buckets have none. Where it is unknown, none is denied."""
    other = {"StringNotEquals": {"aws:ResourceAccount": account}, "Null": {"aws:ResourceAccount": "false"}}
    return {**_deny(["s3:*"], ["*"]), "Condition": other}


def _other_states(key: Any) -> Document:
    """Denial of the keys of other clients' states in the account."""
    named = {"ForAnyValue:StringLike": {"kms:ResourceAliases": "alias/trainstack-*"}}
    return {"Effect": "Deny", "Action": ["kms:*"], "NotResource": [key], "Condition": named}


# The tag opens what is limited by it. In conditions, keys of tags have no case (IAM user guide, "Controlling
# access to AWS resources using tags").
_TEMPLATES: Final = "arn:aws:ec2:*:*:launch-template/*"
_NAMES_TAG: Final = {"ForAnyValue:StringEqualsIgnoreCase": {"aws:TagKeys": [f"{TAG_PREFIX}:stack"]}}
_KEPT_TAG: Final = [
    {**_deny([action], [arn]), "Condition": condition}
    for action, arn, condition in (
        ("ec2:CreateTags", _TEMPLATES, {"Null": {"ec2:CreateAction": "true"}, **_NAMES_TAG}),
        ("sagemaker:AddTags", "*", {"Null": {"sagemaker:TaggingAction": "true"}, **_NAMES_TAG}),
        ("ec2:DeleteTags", _TEMPLATES, _NAMES_TAG),
        ("sagemaker:DeleteTags", "*", _NAMES_TAG),
        # Without keys, EC2 deletes all tags (EC2 API reference, DeleteTags).
        ("ec2:DeleteTags", _TEMPLATES, {"Null": {"aws:TagKeys": "true"}}),
    )
]
"""A resource gets the tag of its stack at its creation alone, and keeps it."""
