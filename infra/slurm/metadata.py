"""The keys of a node of AWS: root and the program of MLflow alone reach the metadata service (pure).

A job that reaches it can register nodes, read code and write results of validations; so can a member who is
root on the login node. Sources: systemd.special(7), network-pre.target; iptables(8), exit codes 1 (no such
rule) and 4 (lock); aws/amazon-ssm-agent, agent/session/utility/utility_unix.go: the agent writes the rights
of `ssm-user` where the file does not exist, since 2.3.634.0 only when it also makes the user.
"""

from typing import Final

from infra.slurm import tracking

ADDRESS: Final = "169.254.169.254"
NAME: Final = "trainstack-metadata"
SCRIPT: Final = "metadata.sh"
SUDOERS: Final = "/etc/sudoers.d/ssm-agent-users"
_LOCK_S: Final = 20
_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"


def script() -> str:
    """metadata.sh: sets the rules, exit code 1 if jobs reach the service; with `check` it changes nothing."""
    rule = f'iptables -w {_LOCK_S} "$1" OUTPUT -d {ADDRESS} -m owner'
    return "\n".join(
        [
            "#!/bin/sh",
            f"PATH=${{PATH:+$PATH:}}{_PATH}",  # slurmd gives its scripts none
            f"others() {{ {rule} ! --uid-owner 0 -j REJECT; }}",
            f"mlflow() {{ {rule} --uid-owner {tracking.USER} -j ACCEPT; }}",
            'if [ "${1:-}" != check ]; then',
            *(f"  {line}" for line in tracking.add_user()),
            # The first rule that matches counts: the exception stays above.
            "  others -C 2> /dev/null || { others -I; mlflow -D 2> /dev/null; }",
            "  mlflow -C 2> /dev/null || mlflow -I",
            # Sessions of Systems Manager: a file that exists is not written again.
            f"  echo '# no rights of root' > {SUDOERS} && chmod 440 {SUDOERS} || exit 1",
            "fi",
            "others -C 2> /dev/null",
            # 4: the lock of iptables is taken, so not known.
            'case "$?${1:-}" in 0* | 4check) exit 0 ;; esac',
            f'echo "jobs reach the keys of the node: iptables has no rule for {ADDRESS}"',
            "exit 1",
            "",
        ]
    )


def unit(folder: str) -> dict[str, str]:
    """The unit, by path: it runs the script at each boot, before there is a network.

    slurmd does not start where it fails.
    """
    return {
        f"/etc/systemd/system/{NAME}.service": "\n".join(
            [
                "[Unit]",
                "Description=Keys of this node are for root alone",
                "DefaultDependencies=no",
                "After=local-fs.target",
                "Wants=network-pre.target",
                "Before=network-pre.target sysinit.target slurmd.service ssh.service sshd.service",
                "Before=amazon-ssm-agent.service snap.amazon-ssm-agent.amazon-ssm-agent.service",
                "[Service]",
                "Type=oneshot",
                "RemainAfterExit=yes",
                f"ExecStart={folder}/{SCRIPT}",
                "[Install]",
                "WantedBy=sysinit.target",
                "RequiredBy=slurmd.service",
                "",
            ]
        )
    }


def first(folder: str) -> str:
    """Command of root, before files of cloud-init are written: installs the script and runs it."""
    path = f"{folder}/{SCRIPT}"
    return f"mkdir -p {folder}\ncat > {path} <<'END'\n{script()}END\nchmod 755 {path}\n{path}"


def start() -> list[str]:
    """Commands of root that let the unit run at each boot; they may run again."""
    return ["systemctl daemon-reload", f"systemctl enable --now --no-block {NAME}.service"]


def check(folder: str) -> str:
    """Command of sh that fails with a reason on the output where a node with the script has lost its rule."""
    return f"{{ [ ! -x {folder}/{SCRIPT} ] || {folder}/{SCRIPT} check; }}"
