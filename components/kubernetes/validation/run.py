"""The run that validates a deploy, as rendered by `infra.launchers`."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes import core, meta

from components.kubernetes.offers import claimed, devices
from components.kubernetes.slots import slot
from components.kubernetes.validation.args import SmokeTestArgs
from components.kubernetes.validation.smoke_home import SERVICE_ACCOUNT
from infra.launchers import validation as validations
from infra.launchers.bundle import Bundle
from infra.launchers.fabrics import on_nodes
from infra.launchers.runplan import RunPlan
from infra.launchers.validation import CODE_FILE, PLAN_FILE, ValidationFiles, validation

DIGEST_LENGTH = 10
# From admission to the first step: a new node boots and pulls a training image (Kueue itself gives up and
# queues again after `kueue_values.PODS_READY_TIMEOUT`).
STARTUP_TIMEOUT_S = 1200
# Slots for the name of the run's Job and of its ConfigMap, and for the digest of its code.
NAME, CONFIG, CODE = "name", "config", "code"
# There is no commit: the code is this checkout's sources, as one file.
CODE_VARIABLE = "CODE_SHA256"


def smoke_run(args: SmokeTestArgs, name: str) -> RunPlan:
    """The run, with placeholders for values that are known later (`slot_values`)."""
    node, fabric = args["node"], args["node"].get("fabric")
    run = RunPlan(
        name=name,
        image=slot("image"),
        command=(),  # filled in by `validation`
        nodes=args["nodes"],
        gpus_per_node=node["gpus"],
        devices=devices(fabric),
        device_claims={fabric["kind"]: claim_template_name(args)} if fabric and claimed(fabric) else {},
        cpu=node["cpu"],
        memory_gib=node["memory_gib"],
        env={**{key: slot(key) for key in _environment(args)}, CODE_VARIABLE: slot(CODE)},
        namespace=slot("namespace"),
        service_account=SERVICE_ACCOUNT,
        queue=slot("queue"),
        priority=slot("priority"),
        node_labels=args["pool_labels"],
        topology_level=args.get("topology_level"),
        timeout_s=args["timeout_s"],
        # A Job of a program that Kubernetes deleted would be made again by the next deploy.
        kept_s=None,
        startup_timeout_s=args.get("startup_timeout_s", STARTUP_TIMEOUT_S),
    )
    files = ValidationFiles(config_map=slot(CONFIG), login=slot("login_secret"))
    if "pvc_name" in args:
        files = dataclasses.replace(files, claim=slot("claim"), claim_folder=args.get("pvc_folder"))
    return on_nodes(validation(run, files), node.get("pod"))


def claim_template_name(args: SmokeTestArgs) -> str:
    """Name of the ResourceClaimTemplate for the devices of a node of the pool."""
    return f"smoke-{args['pool']}"


def slot_values(args: SmokeTestArgs, code: Bundle) -> dict[str, pulumi.Input[str]]:
    """Values of the placeholders of a run but for NAME and CONFIG."""
    return {
        **{key: args[key] for key in ("image", "namespace", "queue", "priority", "login_secret")},
        "claim": args.get("pvc_name", ""),
        CODE: code.sha256,
        **_environment(args),
    }


def _environment(args: SmokeTestArgs) -> dict[str, pulumi.Input[str]]:
    return {"MLFLOW_TRACKING_URI": args["tracking_url"], **args["environment"]}


def plan_text(args: SmokeTestArgs, code: Bundle, known: Mapping[str, Any]) -> str:
    """The plan as the pods read it; `known` are the values of its `plan` and `image`."""
    return validations.plan_text(
        known["plan"],
        nodes=args["nodes"],
        gpus_per_node=args["node"]["gpus"],
        timeout_s=args["timeout_s"],
        image=known["image"],
        code_sha256=code.sha256,
    )


def digest(plan: str, run: RunPlan | None = None) -> str:
    """Digest of a plan and of the definition of its run without the values of placeholders."""
    fields = dataclasses.asdict(run) if run else {}
    # How long it is kept does not change what it validates, nor does a field that its pods do not use.
    unused = {"kept_s", *(key for key in ("plugin",) if fields.get(key) is None)}
    body = {key: value for key, value in fields.items() if key not in unused}
    parts = [plan, json.dumps(body, sort_keys=True) if body else ""]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:DIGEST_LENGTH]


def code_and_plan(
    name: str,
    metadata: meta.v1.ObjectMetaArgs,
    code: Bundle,
    plan: pulumi.Output[str],
    opts: pulumi.ResourceOptions,
) -> core.v1.ConfigMap:
    """The ConfigMap with code and plan of a run's pods."""
    return core.v1.ConfigMap(
        name,
        metadata=metadata,
        binary_data={CODE_FILE: code.base64},
        data={PLAN_FILE: plan},
        immutable=True,
        opts=opts,
    )
