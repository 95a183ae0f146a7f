"""The validation workload as one zip: the same bytes for the same sources, on every machine.

The gate's pods read it from a ConfigMap, jobs of a managed service beside the code of their run; with the
program around their script in it.
"""

import base64
import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from smoke_training.reader import DocumentError

_ROOT = Path(__file__).resolve().parents[2]
SOURCES, WRAPPER = _ROOT / "smoke_training", _ROOT / "agents" / "managed_job"
NAME = "smoke_training.zip"
ENTRY = "__main__.py"
# The API server refuses a ConfigMap over 1 MiB, summed over its values with base64 decoded (ValidateConfigMap
# in k8s.io/kubernetes v1.34.1 pkg/apis/core/validation/validation.go); 64 KiB are left to the plan beside it.
MAX_BYTES = 1024 * 1024 - 64 * 1024
# Caches and editor files must not change the digest, which decides about a new validation.
_DATA_SUFFIXES = frozenset({".py", ".json", ".toml", ".txt", ".typed"})
_EPOCH = (1980, 1, 1, 0, 0, 0)
PLUGIN = {
    "METADATA": "Metadata-Version: 2.1\nName: smoke-training\nVersion: 0\n",
    "entry_points.txt": """\
[mlflow.request_auth_provider]
iap = smoke_training.record.gcp.iap:IapAuth
mlflow-app = smoke_training.record.aws.mlflow_plugin:AppAuth
[mlflow.run_context_provider]
job = smoke_training.record.run_context:JobContext
[mlflow.tracking_store]
arn = smoke_training.record.aws.mlflow_plugin:tracking_store
[mlflow.model_registry_store]
arn = smoke_training.record.aws.mlflow_plugin:registry_store
""",
}
"""Read by `importlib.metadata`: mlflow finds its plug-ins by it."""

JOB_ENTRY = """\
import sys

sys.path.insert(1, f"{sys.path[0]}/programs")
from agents.managed_job import program
from smoke_training.cli import COMMANDS, main

sys.exit(main(modules=(*COMMANDS, program)))
"""
"""Entry point with the command `job`. The zip is on the path of scripts, a folder in it is not: modules of
users and of packages are also called `agents`."""


class BundleError(DocumentError):
    """A package that cannot be shipped."""


@dataclass(frozen=True)
class Bundle:
    """A runnable zip: `python bundle.zip`."""

    content: bytes

    @cached_property
    def base64(self) -> str:
        """The zip in the encoding of a ConfigMap's `binaryData`."""
        return base64.b64encode(self.content).decode("ascii")

    @cached_property
    def sha256(self) -> str:
        """Digest of the zip, in hex: the identity of the code."""
        return hashlib.sha256(self.content).hexdigest()


@cache
def shipped() -> Bundle:
    """The bundle of `smoke_training`; built once per process. Raises BundleError."""
    return bundle()


@cache
def of_jobs() -> Bundle:
    """The bundle of managed jobs, with the command `job`; built once per process. Raises BundleError."""
    return bundle(wrapper=WRAPPER)


def bundle(sources: Path = SOURCES, wrapper: Path | None = None) -> Bundle:
    """Zip the package in folder `sources` under its own name, with its `__main__.py` also at the root.

    With the package of a `wrapper` in folder `programs`, and `JOB_ENTRY` at the root.

    Entries are sorted and carry one fixed time and mode; contents are stored compressed by a fixed method.
    Raises BundleError when the folder is not a runnable package or the zip does not fit a ConfigMap.
    """
    entry = sources / ENTRY
    if not entry.is_file():
        raise BundleError([f"{sources}: has no {ENTRY}; restore the folder from version control"])
    files = {ENTRY: entry.read_bytes()} | _files(sources, sources.name)
    if wrapper:
        package = f"programs/{wrapper.parent.name}"
        files |= {ENTRY: JOB_ENTRY.encode(), f"{package}/__init__.py": b""}
        files |= _files(wrapper, f"{package}/{wrapper.name}")
    files |= {f"{sources.name}-0.dist-info/{name}": text.encode() for name, text in PLUGIN.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, files[name])
    content = buffer.getvalue()
    if len(content) > MAX_BYTES:
        rule = f"zipped, it must fit a ConfigMap, at most {MAX_BYTES} bytes; move data files out of it"
        raise BundleError([f"{sources}: got {len(content)} bytes; {rule}"])
    return Bundle(content)


def _files(folder: Path, name: str) -> dict[str, bytes]:
    """Contents of sources and data in a folder, by their place in a zip that has it as `name`."""
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in _DATA_SUFFIXES and "__pycache__" not in path.parts
    }
