"""A program of `agents/` in a pod: its files, and the unprivileged pod around it."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
from pulumi_kubernetes import core, meta

ROOT = "/opt/trainstack"
ACCOUNT = "/var/run/trainstack/account"
_TREE = Path(__file__).parents[3]
_SHARED = "agents.shared.api_server"
_TOKEN_S = 3600  # the least that the API server gives; the kubelet renews it
_UNPRIVILEGED = 65534


@dataclass(frozen=True)
class Program:
    """Modules of this tree, which import only the standard library and each other."""

    module: str
    """The module that runs, such as `agents.waiting.watch`."""
    imports: Sequence[str] = ()
    """Modules that it imports besides the API server's."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Text of further modules that are not in this tree, by module."""
    data: Mapping[str, bytes] = field(default_factory=dict)
    """Other files in its folder, by name."""

    @property
    def texts(self) -> Mapping[str, str]:
        """The text of every module, by module; packages are empty."""
        own = (_SHARED, self.module, *self.imports)
        texts = {name: _path(name).read_text(encoding="utf-8") for name in own} | dict(self.files)
        packages = {name.rsplit(".", depth)[0] for name in texts for depth in range(1, name.count(".") + 1)}
        # With them a module of the pod has precedence over one of the image with the same name.
        return {**{f"{package}.__init__": "" for package in packages}, **texts}

    @property
    def digest(self) -> str:
        """Digest of the program's modules."""
        texts = self.texts
        parts = [part for name in sorted(texts) for part in (name, texts[name])]
        return digest(*parts, *(hashlib.sha256(self.data[name]).hexdigest() for name in sorted(self.data)))


def digest(*texts: str) -> str:
    """Digest of `texts`."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:10]


def config_data(program: Program) -> dict[str, str]:
    """Content of the program's ConfigMap: keys cannot have a slash."""
    return {f"{module}.py": text for module, text in program.texts.items()}


def config_map(
    name: str,
    program: Program,
    called: pulumi.Input[str],
    namespace: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> core.v1.ConfigMap:
    """The program's ConfigMap NAME-program, named `called` in its namespace."""
    return core.v1.ConfigMap(
        f"{name}-program",
        metadata=meta.v1.ObjectMetaArgs(name=called, namespace=namespace),
        data=config_data(program),
        binary_data={name: base64.b64encode(data).decode() for name, data in program.data.items()} or None,
        immutable=True,
        opts=opts,
    )


@dataclass(frozen=True)
class PodSettings:
    """Settings of a program's pod."""

    container: str
    """Name of the container."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""
    account: str
    """Its service account, whose token is in the folder `--account`, and nowhere else."""
    config: pulumi.Input[str]
    """Name of the program's ConfigMap."""
    arguments: Mapping[str, pulumi.Input[str]]
    """Given as `--key value`."""
    environment: Mapping[str, pulumi.Input[str]]
    memory_mib: int


def pod(program: Program, running: PodSettings, restart: str, **more: Any) -> dict[str, Any]:
    """An unprivileged pod with the program, and a token mounted here only; `more` of the container."""
    given = {**running.arguments, "account": ACCOUNT}
    token = {"service_account_token": {"path": "token", "expiration_seconds": _TOKEN_S}}
    # Kubernetes puts its own CA certificate into every namespace.
    authority = {"config_map": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    return {
        "restart_policy": restart,
        "service_account_name": running.account,
        "automount_service_account_token": False,
        "security_context": {
            "run_as_non_root": True,
            "run_as_user": _UNPRIVILEGED,
            "run_as_group": _UNPRIVILEGED,
            "fs_group": _UNPRIVILEGED,
            "seccomp_profile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": running.container,
                "image": running.image,
                "working_dir": ROOT,
                "command": ["python", "-m", program.module],
                "args": [word for key, value in given.items() for word in (f"--{key}", value)],
                "env": [{"name": name, "value": value} for name, value in running.environment.items()],
                "resources": {
                    "requests": {"cpu": "50m", "memory": f"{running.memory_mib // 2}Mi"},
                    "limits": {"memory": f"{running.memory_mib}Mi"},
                },
                "security_context": {
                    "allow_privilege_escalation": False,
                    "read_only_root_filesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volume_mounts": [
                    {"name": "program", "mount_path": ROOT, "read_only": True},
                    {"name": "account", "mount_path": ACCOUNT, "read_only": True},
                ],
                **more,
            }
        ],
        "volumes": [
            program_volume(program, running.config),
            {"name": "account", "projected": {"sources": [token, authority]}},
        ],
    }


def program_volume(program: Program, config: pulumi.Input[str]) -> dict[str, Any]:
    """The volume `program` of a pod: the modules in the folders of their packages."""
    files = [{"key": f"{name}.py", "path": f"{name.replace('.', '/')}.py"} for name in sorted(program.texts)]
    files += [{"key": name, "path": name} for name in sorted(program.data)]
    return {"name": "program", "config_map": {"name": config, "items": files}}


def _path(module: str) -> Path:
    return _TREE / f"{module.replace('.', '/')}.py"
