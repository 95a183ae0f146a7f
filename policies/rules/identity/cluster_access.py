"""Identities of a cluster, and encryption of its secrets."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, is_unknown
from policies.rules.encryption_keys import is_own_key
from policies.rules.properties import each, raw

_EKS, _GKE = "aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster"
_ENTRY = "aws:eks/accessEntry:AccessEntry"
_BINDINGS = tuple(
    f"kubernetes:rbac.authorization.k8s.io/v1:{kind}" for kind in ("ClusterRoleBinding", "RoleBinding")
)
_MAPS = ("kubernetes:core/v1:ConfigMap", "kubernetes:core/v1:ConfigMapPatch")
_MASTERS = "system:masters"


@CATALOG.rule(
    "MLS-IAM-06",
    "high",
    (_EKS, _ENTRY, *_BINDINGS, *_MAPS),
    "The aws-auth map breaks by one wrong space, and its changes are in no log of AWS; system:masters"
    " passes every check of Kubernetes and cannot be revoked.",
    "Set accessConfig.authenticationMode to API and use access entries with an access policy.",
    ("CIS EKS 4.1.7",),
)
def access_is_by_entries(source: Resource) -> Iterator[Violation]:
    """Access to a cluster is granted by access entries only, and system:masters has no members."""
    if source.kind == _EKS:
        # EKS API Reference, CreateAccessConfigRequest: CONFIG_MAP where nothing is said.
        mode = (source.props.get("accessConfig") or {}).get("authenticationMode") or "CONFIG_MAP"
        if mode != "API":
            message = f"{mode} lets the aws-auth map grant access"
            yield Violation(message, "accessConfig.authenticationMode")
    elif source.kind == _ENTRY:
        if _MASTERS in (source.props.get("kubernetesGroups") or ()):
            yield Violation(f"it is in {_MASTERS}", "kubernetesGroups")
    elif source.kind in _BINDINGS:
        for path, subject in each(source.props, "subjects"):
            if subject.get("kind") == "Group" and subject.get("name") == _MASTERS:
                yield Violation(f"it names {_MASTERS}", path)
    else:
        yield from _of_map(source)


def _of_map(source: Resource) -> Iterator[Violation]:
    if not _is_aws_auth(source.props.get("metadata") or {}):
        raise NotApplicableError("it is not the aws-auth map")
    data = source.props.get("data") or {}
    for key in ("mapRoles", "mapUsers"):
        if _MASTERS in (data.get(key) or ""):
            yield Violation(f"it puts an identity into {_MASTERS}", f"data.{key}")


def _is_aws_auth(about: Any) -> bool:
    """Return whether EKS reads the map (EKS User Guide, "Grant IAM users access with a ConfigMap").

    Without a namespace, its provider may set it.
    """
    namespace = dict.get(about, "namespace")
    if not is_unknown(namespace) and namespace not in (None, "", "kube-system"):
        return False
    return about.get("name") == "aws-auth" and about.get("namespace") in (None, "", "kube-system")


_KEY, _GOOGLE_KEY = "aws:kms/key:Key", "gcp:kms/cryptoKey:CryptoKey"


@CATALOG.rule(
    "MLS-IAM-07",
    "medium",
    (_EKS, _GKE, _KEY, _GOOGLE_KEY),
    "Each use of your own key is logged, and it can be revoked; a key that rotates every year decrypts"
    " less when it leaks.",
    "Set encryptionConfig (EKS) or databaseEncryption (GKE), and enable the rotation of the key.",
    ("FSBP EKS.3", "CKV_AWS_58", "CKV_AWS_7", "CIS EKS 5.3.1"),
)
def secrets_have_a_key_that_rotates(source: Resource) -> Iterator[Violation]:
    """Secrets of a cluster are encrypted with a key of KMS that you own, and keys rotate."""
    props = source.props
    if source.kind == _EKS:
        keys = [
            raw(one, "keyArn")
            for _, config in each(props, "encryptionConfig")
            if "secrets" in (config.get("resources") or ())
            for _, one in each(config, "provider")
        ]
        if not any(is_own_key(source, "encryptionConfig", key) for key in keys):
            yield Violation("secrets are encrypted with a key of EKS", "encryptionConfig")
    elif source.kind == _GKE:
        states = [one.get("state") for _, one in each(props, "databaseEncryption")]
        if not any(state in ("ENCRYPTED", "ALL_OBJECTS_ENCRYPTION_ENABLED") for state in states):
            yield Violation("secrets are encrypted with a key of GKE", "databaseEncryption.state")
    elif source.kind == _KEY:
        yield from _rotation(source)
    else:
        level = next((one.get("protectionLevel") for _, one in each(props, "versionTemplate")), None)
        purpose = props.get("purpose") or "ENCRYPT_DECRYPT"
        if purpose != "ENCRYPT_DECRYPT" or props.get("importOnly") is True:
            raise NotApplicableError("keys of this purpose, and imported ones, do not rotate by themselves")
        if level in ("EXTERNAL", "EXTERNAL_VPC"):
            raise NotApplicableError("it is kept outside of Google Cloud")
        if not props.get("rotationPeriod"):
            yield Violation("it never rotates", "rotationPeriod")


def _rotation(key: Resource) -> Iterator[Violation]:
    """KMS rotates symmetric keys for encryption that it made itself (KMS Developer Guide, "Rotate keys")."""
    props = key.props
    symmetric = (props.get("customerMasterKeySpec") or "SYMMETRIC_DEFAULT") == "SYMMETRIC_DEFAULT"
    if not symmetric or (props.get("keyUsage") or "ENCRYPT_DECRYPT") != "ENCRYPT_DECRYPT":
        raise NotApplicableError("KMS rotates symmetric keys for encryption only")
    if props.get("customKeyStoreId"):
        raise NotApplicableError("keys of a custom key store do not rotate by themselves")
    if props.get("enableKeyRotation") is not True:
        yield Violation("it never rotates", "enableKeyRotation")
