"""The gate of a stack without a cluster: the validation as a training job that `up` waits for.

`aws.sagemaker.TrainingJob` is no gate: the provider returns as soon as the job is accepted, and its outputs
do not include its end (hashicorp/terraform-provider-aws issue 46892; type hints of pulumi-aws 7.51). Vertex
AI has no such resource at all. So this is a dynamic resource, whose creation is the run (docs/adr/0038). One
that fails is in no state, so the next `up` runs it again; one that passed stays until code, plan or
machines change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NotRequired, TypedDict

import pulumi
from pulumi import dynamic

from components.base import Component, Options
from components.jobs.gate_provider import JobGateProvider
from components.jobs.services import SERVICES
from infra.launchers import bundle, runplan
from infra.launchers.runplan import RunPlan
from infra.launchers.validation import ValidationFiles, plan_text, validation
from smoke_training.names import RESULT_COPIES


class JobGateArgs(TypedDict):
    """The validation of a stack."""

    service: Literal["sagemaker", "vertex", "pcs", "director", "slinky"]
    stack: str
    account: str
    region: str
    run: RunPlan
    """Machines, image and variables of the run; its command, folders and place are set here."""
    environment: Mapping[str, pulumi.Input[str]]
    """Variables that are only known when parts of the stack exist."""
    place: pulumi.Input[Mapping[str, Any]]
    """The service's part of a run plan: role, output and the like (`SageMakerOptions`, `VertexOptions`)."""
    plan: Mapping[str, Any]
    """The smoke plan, without the fields that follow from the run and the code."""
    code_uri: pulumi.Input[str]
    """Folder for code and plan."""
    results_uri: pulumi.Input[str]
    """Folder for results; the job may write there."""
    accept: Sequence[str]
    """Verdicts that open the gate."""
    start_within_s: int
    """Seconds for which the service may wait for machines."""
    kubeconfig: NotRequired[pulumi.Input[str]]
    """Text of the kubeconfig of the cluster in which jobs run; another one validates nothing again. Default:
    they run in none."""
    alerts: Mapping[str, pulumi.Input[str]] | None
    """Further fields of the plan of a repetition, such as its topic; None: it is not repeated."""


class JobGate(Component):
    """A validation that passed."""

    job_name: pulumi.Output[str]
    result_uri: pulumi.Output[str]
    headline: pulumi.Output[str]
    scheduled: pulumi.Output[str]
    """The request of a repetition as JSON, with `gate_provider.SCHEDULED` as the placeholder of its name."""

    def __init__(self, name: str, args: JobGateArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        known = pulumi.Output.all(
            place=args["place"], environment=args["environment"], results=args["results_uri"]
        )
        code = bundle.shipped().sha256
        ended = _Run(
            JobGateProvider(),
            f"{name}-run",
            {
                "service": args["service"],
                "stack": args["stack"],
                "account": args["account"],
                "region": args["region"],
                "run": known.apply(lambda found: _document(args["service"], args["run"], code, **found)),
                "plan": _plan(args, code),
                # Pulumi leaves out what is None.
                "scheduled_plan": pulumi.Output.from_input(args["alerts"] or {}).apply(
                    lambda alerts: _plan(args, code, alerts) if alerts else ""
                ),
                "code_sha256": code,
                "code_uri": args["code_uri"],
                "results_uri": args["results_uri"],
                "accept": list(args["accept"]),
                "start_within_s": args["start_within_s"],
                **({"kubeconfig": args["kubeconfig"]} if "kubeconfig" in args else {}),
                # Known once it has run.
                **dict.fromkeys(("job", "result_uri", "verdict", "headline", "billed_s", "scheduled")),
            },
            self.child(),
        )
        self.job_name, self.result_uri, self.headline = ended.job, ended.result_uri, ended.headline
        self.scheduled = ended.scheduled
        self.register_outputs({"job_name": self.job_name, "result_uri": self.result_uri})


class _Run(dynamic.Resource, module="trainstack", name="JobGate"):
    job: pulumi.Output[str]
    result_uri: pulumi.Output[str]
    headline: pulumi.Output[str]
    scheduled: pulumi.Output[str]


def _plan(args: JobGateArgs, code: str, more: Mapping[str, Any] | None = None) -> str:
    run = args["run"]
    return plan_text(
        {**args["plan"], **(more or {})},
        nodes=run.nodes,
        gpus_per_node=run.gpus_per_node,
        timeout_s=run.timeout_s,
        image=run.image,
        code_sha256=code,
    )


def _document(
    service: str,
    run: RunPlan,
    code: str,
    *,
    place: Mapping[str, Any],
    environment: Mapping[str, str],
    results: str,
) -> str:
    """The run as a document; the provider sets the name of each try, and the folder of its code."""
    of_service = SERVICES[service]
    whole = validation(run, ValidationFiles(code=of_service.code_folder))
    variables = {**whole.env, **environment, "CODE_SHA256": code, RESULT_COPIES: results}
    del variables["TERMINATION_MESSAGE_PATH"]
    return runplan.render(
        replace(
            whole,
            env={**variables, **of_service.termination},
            # The image's own user, who may write below /opt/ml; there are no volumes.
            mounts=(),
            user_id=None,
            read_only_root=False,
            root_folder=None,
            work_root=of_service.work_root,
            **of_service.part({key: _plain(value) for key, value in place.items()}),
        )
    )


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
