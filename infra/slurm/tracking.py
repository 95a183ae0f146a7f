"""MLflow on nodes: a service on the loopback, and variables of jobs and logins (pure).

Source: slurm.conf(5), TaskProlog: lines `export NAME=VALUE` of its output are set for the task, also of the
batch script; lines `print ...` go to the task's output.
"""

import shlex
from collections.abc import Iterable, Mapping
from typing import Final

from infra.catalog import slurm_names as names

PORT: Final = 955
"""Below 1024: no job can listen there in place of the service."""
ADDRESS: Final = f"http://127.0.0.1:{PORT}"
"""MLFLOW_TRACKING_URI of jobs: `agents.slurm.mlflow_proxy` on each node."""
USER: Final = "trainstack-mlflow"
UNIT: Final = "/etc/systemd/system/trainstack-mlflow.service"
SETTINGS: Final = "/opt/trainstack/slurm/mlflow.env"
PROFILE: Final = "/etc/profile.d/trainstack-mlflow.sh"
PROLOG: Final = "task-prolog.sh"
_PATIENCE_S: Final = 5


def task_prolog(teams: Mapping[str, str]) -> str:
    """task-prolog.sh: MLflow's variables; `teams`: names by account. It never fails a job.

    Where MLflow does not answer at the start of a task, its runs go to a file beside the job.
    """
    lines = ["#!/bin/sh", "# Lines of the output are variables of tasks.", f"address={ADDRESS}"]
    # Another server is the user's choice; ours may come from the shell of the login node.
    lines += ['case ${MLFLOW_TRACKING_URI:-} in "" | "$address") ;; *) exit 0 ;; esac']
    lines += ["case ${SLURM_JOB_ACCOUNT:-} in"]
    lines += [f"  {account}) team={shlex.quote(team)} ;;" for account, team in teams.items()]
    lines += ['  *) team="" ;;', "esac"]
    lines += [
        'if [ -n "$team" ] && [ -z "${MLFLOW_EXPERIMENT_NAME:-}" ]; then',
        '  echo "export MLFLOW_EXPERIMENT_NAME=$team"',
        "fi",
        f"curl --silent --fail --noproxy '*' --max-time {_PATIENCE_S} --output /dev/null $address/health",
        # 127: no curl, so not known.
        "case $? in 0 | 127) ;; *)",
        "  file=${SLURM_SUBMIT_DIR:-$HOME}/mlflow-${SLURM_JOB_ID:-0}-${SLURM_PROCID:-0}.db",
        '  echo "print MLflow does not answer: runs of this task go to $file"',
        "  address=sqlite:///$file ;;",
        "esac",
        'echo "export MLFLOW_TRACKING_URI=$address"',
        "exit 0",
    ]
    return "\n".join(lines) + "\n"


def accounts_of(teams: Iterable[str]) -> dict[str, str]:
    """Names of teams by account."""
    return {names.account(team): team for team in teams}


def files(settings: Mapping[str, str], program: str, teams: Mapping[str, str], folder: str) -> dict[str, str]:
    """Files of a node by path.

    `settings`: variables of the program; `program`: the command of a shell that writes it to standard output.
    """
    chosen = {"PORT": str(PORT), **settings}
    return {
        f"{folder}/{PROLOG}": task_prolog(teams),
        SETTINGS: "".join(f"{key}={value}\n" for key, value in chosen.items()),
        # Of a shell on the login node, for commands of MLflow there.
        PROFILE: f"export MLFLOW_TRACKING_URI=${{MLFLOW_TRACKING_URI:-{ADDRESS}}}\n",
        UNIT: "\n".join(
            [
                "[Unit]",
                "Description=MLflow for jobs of this node",
                "After=network-online.target",
                "[Service]",
                f"User={USER}",
                f"EnvironmentFile={SETTINGS}",
                "RuntimeDirectory=trainstack-mlflow",
                f"ExecStartPre=/bin/sh -c '{program} > /run/trainstack-mlflow/proxy.zip'",
                "ExecStart=/usr/bin/python3 /run/trainstack-mlflow/proxy.zip",
                "Restart=always",
                "RestartSec=15",
                "AmbientCapabilities=CAP_NET_BIND_SERVICE",
                "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
                "NoNewPrivileges=yes",
                "ProtectSystem=strict",
                "ProtectHome=yes",
                "PrivateTmp=yes",
                # Jobs of several teams may share the node: this program ends before one of them.
                "MemoryMax=1G",
                "TasksMax=64",
                "OOMScoreAdjust=1000",
                "[Install]",
                "WantedBy=multi-user.target",
                "",
            ]
        ),
    }


def add_user() -> list[str]:
    """Commands of root that add the user of the service; they may run again."""
    return [
        f"id {USER} > /dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin {USER}"
    ]


def start() -> list[str]:
    """Commands of root that start the service; they may run again."""
    return ["systemctl daemon-reload", "systemctl enable --now --no-block trainstack-mlflow.service"]
