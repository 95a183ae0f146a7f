"""A Cloud Run function that runs modules of this tree, the tested ones."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.agents import EVENTARC, agent
from components.gcp.propagation import settled
from components.ordering import after
from infra.naming import sanitize

FOLDER: Final = "functions"
"""The folder of the bucket with the sources of functions, by their digest."""
RUNTIME: Final = "python313"
_NAME: Final = 55
_ROOT: Final = Path(__file__).resolve().parents[3]
_PUBLISHED: Final = "google.cloud.pubsub.topic.v1.messagePublished"
# The engine returns an asset without text as none.
_ABOVE: Final = '"""Parent of the packages."""\n'
# Permissions of an own account for builds. Source: Cloud Run functions documentation, "Custom service
# account for Cloud Build".
_BUILDS: Final = ("roles/logging.logWriter", "roles/artifactregistry.writer")
_READS: Final = "roles/storage.objectViewer"


class GcpFunctionArgs(TypedDict):
    """The code of the function, its account and its trigger."""

    project: str
    """Id of the project."""
    project_number: pulumi.Input[str]
    """Number of that project."""
    region: str
    """Region of the function."""
    packages: Sequence[str]
    """The packages whose modules are included; the first one's `function.handle` is called."""
    environment: Mapping[str, pulumi.Input[str]]
    """Variables of the function."""
    topic: pulumi.Input[str]
    """`projects/<project>/topics/<topic>`, whose messages trigger it."""
    source_bucket: pulumi.Input[str]
    """Name of the bucket with the source."""
    timeout_s: int
    """Time limit of one message, up to 540 seconds."""


class GcpFunction(Component):
    """A function with an account of its own, triggered by a topic, and reached by nothing else.

    One message at a time: two would act twice. A message that fails is delivered again. Cloud Build
    builds the function's image; it does so as an account that may read the source and write the image,
    because the default one may change the whole project. The source that it reads is a copy in a bucket of
    the service, which exists from the first function on (`gcf-v2-sources-<number>-<region>`); so that right
    is granted on the project, for that bucket alone. *Untested in a real project.*
    """

    member: pulumi.Output[str]
    """The function's account, as an IAM member."""
    service: pulumi.Output[str]
    """Name of its Cloud Run service, which is in its log entries."""

    def __init__(self, name: str, args: GcpFunctionArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        account = self._account(name, "runs", f"The function {name}")
        builder = self._account(name, "builds", f"Builds the function {name}")
        source, ready = self._source(name, args, builder)
        ready.append(self._triggers(name, args))
        function = self._function(name, args, (account, builder), source, ready)
        gcp.cloudrunv2.ServiceIamMember(
            f"{name}-wakes",
            location=args["region"],
            name=function.name,
            role="roles/run.invoker",
            member=account.member,
            opts=self.child(),
        )
        self.member = account.member
        self.service = after(function.name, [function])
        self.register_declared()

    def _account(self, name: str, what: str, title: str) -> gcp.serviceaccount.Account:
        return iam.service_account(self, f"{name}-{what}", f"{name}-{what}", title)

    def _source(
        self, name: str, args: GcpFunctionArgs, builder: gcp.serviceaccount.Account
    ) -> tuple[gcp.storage.BucketObject, list[pulumi.Resource]]:
        """The source, and the permissions of its builder to read the service's copy and write the image."""
        files = sources(args["packages"])
        rights: list[pulumi.Resource] = [self._right(name, args, role, builder, None) for role in _BUILDS]
        rights.append(
            self._right(name, args, _READS, builder, copies(args["project_number"], args["region"]))
        )
        made = gcp.storage.BucketObject(
            f"{name}-source",
            bucket=args["source_bucket"],
            # Another text is another object, and so another build.
            name=f"{FOLDER}/{name}/{digest(files)}.zip",
            source=pulumi.AssetArchive({path: pulumi.StringAsset(text) for path, text in files.items()}),
            opts=self.child(),
        )
        return made, rights

    def _triggers(self, name: str, args: GcpFunctionArgs) -> pulumi.Resource:
        """The role of Eventarc's agent: neither comes with the API in time (pulumi-gcp issue 1290).

        Triggers of others in the project need the same grant, so it stays.
        """
        own = agent(
            self,
            f"{name}-eventarc-agent",
            EVENTARC,
            project=args["project"],
            number=args["project_number"],
        )
        return gcp.projects.IAMMember(
            f"{name}-eventarc",
            project=args["project"],
            role="roles/eventarc.serviceAgent",
            member=own,
            opts=settled(self.child(pulumi.ResourceOptions(retain_on_delete=True)), own),
        )

    def _right(
        self,
        name: str,
        args: GcpFunctionArgs,
        role: str,
        builder: gcp.serviceaccount.Account,
        only: gcp.projects.IAMMemberConditionArgs | None,
    ) -> pulumi.Resource:
        what = role.rpartition("/")[2].partition(".")[0]
        return gcp.projects.IAMMember(
            f"{name}-builds-{what}",
            project=args["project"],
            role=role,
            member=builder.member,
            condition=only,
            opts=self.child(),
        )

    def _function(
        self,
        name: str,
        args: GcpFunctionArgs,
        accounts: tuple[gcp.serviceaccount.Account, gcp.serviceaccount.Account],
        source: gcp.storage.BucketObject,
        ready: list[pulumi.Resource],
    ) -> gcp.cloudfunctionsv2.Function:
        account, builder = accounts
        return gcp.cloudfunctionsv2.Function(
            sanitize(name, max_length=_NAME),
            location=args["region"],
            build_config={
                "runtime": RUNTIME,
                "entry_point": ENTRY,
                "service_account": builder.name,
                "source": {"storage_source": {"bucket": source.bucket, "object": source.name}},
            },
            service_config={
                "service_account_email": account.email,
                "available_memory": "256M",
                "max_instance_count": 1,
                "max_instance_request_concurrency": 1,
                "timeout_seconds": args["timeout_s"],
                "ingress_settings": "ALLOW_INTERNAL_ONLY",
                "environment_variables": dict(args["environment"]),
            },
            event_trigger={
                "event_type": _PUBLISHED,
                "pubsub_topic": args["topic"],
                "trigger_region": args["region"],
                "service_account_email": account.email,
                "retry_policy": "RETRY_POLICY_RETRY",
            },
            opts=settled(
                self.child(pulumi.ResourceOptions(depends_on=ready)), *(right.urn for right in ready)
            ),
        )


ENTRY: Final = "woken"
"""The function in `main.py`."""


def copies(number: pulumi.Input[str], region: str) -> gcp.projects.IAMMemberConditionArgs:
    """The service's bucket with its copies of sources, and what is in it.

    Source: terraform-provider-google resource_cloudfunctions2_function.go (name of the bucket); IAM
    documentation, "Resource attributes" (names of buckets and objects).
    """
    bucket = pulumi.Output.concat("projects/_/buckets/gcf-v2-sources-", number, f"-{region}")
    return gcp.projects.IAMMemberConditionArgs(
        title="Sources of functions",
        expression=pulumi.Output.concat('resource.name.startsWith("', bucket, '")'),
    )


def sources(packages: Sequence[str]) -> dict[str, str]:
    """The text of every file of the source, by path: modules at their own paths, and the entry point."""
    files = {
        "main.py": (
            "import functions_framework\n"
            f"from {packages[0]}.function import handle\n\n\n"
            "@functions_framework.cloud_event\n"
            f"def {ENTRY}(event):\n"
            "    handle(event)\n"
        ),
        # Cloud Run's builder includes it, and adds it where it is not named.
        "requirements.txt": "functions-framework>=3,<4\n",
    }
    for package in packages:
        folder = _ROOT.joinpath(*package.split("."))
        for above in folder.relative_to(_ROOT).parents:
            if above != Path():
                files.setdefault((above / "__init__.py").as_posix(), _ABOVE)
        for path in sorted(folder.glob("*.py")):
            files[path.relative_to(_ROOT).as_posix()] = path.read_text(encoding="utf-8")
    return files


def digest(files: Mapping[str, str]) -> str:
    """Digest of a source."""
    text = "\0".join(part for path in sorted(files) for part in (path, files[path]))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
