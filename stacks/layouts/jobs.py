"""A stack without a cluster: people, managed training jobs and notebooks, tracking, enforced budgets."""

from collections.abc import Mapping
from typing import Any

from infra.stackspec import StackSpec
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from stacks.job_validation import job_validation, validated_machine
from stacks.parts import JobCloud, JobPlaceT


def managed_jobs(cloud: JobCloud[JobPlaceT], spec: StackSpec, layout: SmallLayout) -> dict[str, Any]:
    """Declare the stack; its outputs are those of `infra.outputs.jobs.JobOutputs`."""
    place = cloud.place()
    notebooks = cloud.notebooks(place)
    tracking = cloud.tracking(place)
    people = cloud.people(place, tracking)
    budgets = cloud.budgets(place)
    smoke = None
    if (machine := validated_machine(spec, layout)) is not None:
        smoke = job_validation(
            spec,
            service=cloud.service,
            place=place,
            tracking=tracking,
            access=cloud.validation(place, tracking, machine),
            # The gate is last: other parts exist even if it fails.
            after=[place.store.ready, notebooks],
        )
    return {
        "stack": spec.name,
        "cloud": spec.cloud,
        "region": spec.region,
        "profile": spec.profile,
        "owner": spec.owner,
        "cost_center": spec.cost_center,
        "service": cloud.service,
        "tracking_uri": tracking,
        "code_uri": place.code_uri,
        "checkpoint_uri": place.store.checkpoint_uri,
        "dataset_uri": place.store.dataset_uri,
        "artifact_uri": place.store.artifact_uri,
        # The image of the validation is also that of jobs.
        "image": spec.smoke.image,
        "kms_key": place.kms_key,
        "subnets": list(place.subnets),
        "security_groups": list(place.security_groups),
        "machines": [_machine(one, cloud.price(one)) for one in layout.machines],
        "max_hours": layout.max_hours,
        "people": [
            {**_person(spec, layout, one.name), "role": one.role, "job_roles": one.job_roles}
            for one in people
        ],
        "budgets": [vars(one) for one in budgets],
        "smoke": smoke,
    }


def _machine(one: JobMachineSpec, usd_per_hour: float | None) -> Mapping[str, Any]:
    return {
        "name": one.name,
        "machine": one.machine,
        "purchase": one.purchase.kind,
        "reservation": one.reservation,
        "max_nodes": one.max_nodes,
        "usd_per_hour": usd_per_hour,
    }


def _person(spec: StackSpec, layout: SmallLayout, name: str) -> Mapping[str, Any]:
    one = next(person for person in layout.people if person.name == name)
    team = next(team for team in spec.teams if team.name == one.team)
    return {"name": one.name, "email": one.email, "team": one.team, "folder": team.data_folder}
