"""Slurm in a Kubernetes cluster of the stack, by slurm-operator of SchedMD."""

from typing import Annotated, Final

from pydantic import Field

from infra.stackspec.model import FilePath, Image, KubernetesVersion, LdapBase, LdapsUri, Model

SYSTEM_NODES: Final = 2
"""Nodes of login, controller and accounting, in one zone as their disks: one may fail, and the other takes
its pods. The loss of the zone is an outage."""


class SlinkyImages(Model):
    """Images of the pods, each by digest: a tag may name another build tomorrow."""

    slurmctld: Image
    """Image of the controller, such as `ghcr.io/slinkyproject/slurmctld`, of `layout.slurm_version`."""

    slurmdbd: Image
    """Image of the accounting daemon."""

    slurmrestd: Image
    """Image of the REST API, by which the operator drains nodes before it deletes their pods."""

    slurmd: Image
    """Image of the nodes. Jobs run in it, unless pyxis starts an image of their own."""

    login: Image
    """Image of the login pod."""

    mariadb: Image
    """Image of MariaDB, the database of the accounting."""

    shell: Image
    """Small image with `sh`, such as Alpine: it copies configuration and follows log files."""

    python: Image
    """Image with Python, of the Job that generates keys and passwords."""


class DirectorySpec(Model):
    """The directory of members and keys; sssd of the login pod binds to it anonymously, nodes need none."""

    uri: LdapsUri
    """Address by LDAP over TLS, such as `ldaps://ldap.example.com`."""

    base: LdapBase
    """Base of searches, such as `dc=example,dc=com`."""


class SlinkySpec(Model):
    """Slurm as pods of a Kubernetes cluster of the stack, run by SchedMD's slurm-operator."""

    kubernetes_version: KubernetesVersion
    """Minor version of the cluster, such as `1.36`."""

    api_access: tuple[str, ...] = ()
    """Address ranges that may reach the Kubernetes API from the internet; empty: only from inside."""

    images: SlinkyImages
    """Images of the pods."""

    directory: DirectorySpec | None = None
    """Directory with the users; null: none, and only root can log in, by `kubectl exec`."""

    accounting_gib: Annotated[int, Field(ge=10, le=16384)] = 50
    """Encrypted disk of the accounting database, in GiB; it grows in place, and cannot shrink."""

    container: FilePath | None = None
    """Squash file of the validation's image on the shared file systems, run by pyxis; null: the validation
    uses `python` of the image `slurmd`, which needs PyTorch."""
