"""All files of a system."""

from infra.slurm import accounts, checks, conf, topology
from infra.slurm.system import SlurmSystem


def files(system: SlurmSystem) -> dict[str, str]:
    """Texts by file name: for `/etc/slurm` of every host, and scripts for sacctmgr and scontrol."""
    name, switches = topology.topology(system)
    more = system.options.node_check
    found = {
        "slurm.conf": conf.slurm_conf(system),
        "gres.conf": topology.gres_conf(system),
        "cgroup.conf": conf.cgroup_conf(),
        name: switches,
        "prolog.sh": checks.prolog(more),
        "epilog.sh": checks.prolog(more),
        "health.sh": checks.health(more),
        "accounts.sh": accounts.accounts_script(system),
        "add-user.sh": accounts.users_script(system),
    }
    if reservations := accounts.reservations_script(system):
        found["reservations.sh"] = reservations
    return found
