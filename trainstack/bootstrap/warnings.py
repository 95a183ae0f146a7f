"""Notes for the reader of the printed file: variables of pipelines, and what is left to judge."""

from collections.abc import Iterator, Sequence

from trainstack.bootstrap.stacks import BootstrapPlace
from trainstack.bootstrap.trust import GITHUB, Pipeline, Trust, environment, prefix, variable


def variables(stacks: Sequence[str], identities: Sequence[str], backend: str, **more: str) -> Iterator[str]:
    """Variables of the rendered pipelines: `identities` are deployers of the stacks, then the two readers."""
    *deployers, preview, nightly = identities
    values = {
        "PULUMI_BACKEND_URL": backend,
        "TRAINSTACK_PREVIEW_IDENTITY": preview,
        "TRAINSTACK_NIGHTLY_IDENTITY": nightly,
        **more,
    }
    for stack, deployer in zip(stacks, deployers, strict=True):
        yield f"Variable of the environment {environment(stack)}: TRAINSTACK_DEPLOY_IDENTITY={deployer}"
        for name, value in values.items():
            yield f"Variable of the repository: {variable(name, stack)}={value}"


def guests(place: BootstrapPlace) -> Iterator[str]:
    """Notes about clusters whose large stack, with the state, is in another place."""
    for one in place.deployed:
        if one.is_guest:
            names = ", ".join(spec.name for spec in one.specs)
            login = f"A deployment of {one.name} needs the logins of both places"
            if one.host:
                login = (
                    f"A deployment of {one.name} uses the login of its own place, whose deployer acts as the "
                    "one that is printed here: apply the file of that place first, or no trust can name it"
                )
            yield (
                f"The state of {names} is where that of {one.name} is: log in to that backend, and create "
                f"these stacks there. {login}; the bucket of this place has no state of them."
            )


def of(place: BootstrapPlace, trust: Trust, *, examples: Sequence[str], separable: bool) -> Iterator[str]:
    """Warnings of a place, one a line.

    `examples`: values of the shipped stack files that stand for the client's own. `separable`: whether the
    cloud can distinguish deployments of GitLab by their environment.
    """
    left = [*examples, *(one for one in place.emails if one.endswith("@example.com"))]
    if left:
        yield f"Examples of the shipped stack files are still in: {', '.join(left)}. Replace them first."
    if isinstance(trust, Pipeline) and trust.issuer == GITHUB:
        stacks = [environment(one.name) for one in place.deployed]
        yield (
            f"`{prefix(trust.path)}` must print repo:{trust.repository}, or no pipeline can log in. Subjects "
            "of repositories that were created, renamed or transferred since 2026-07-15 have ids: --github "
            f"OWNER@ID/REPOSITORY@ID, by `gh api repos/{trust.path} --jq '.owner.id,.id'`."
        )
        yield (
            f"Approvals are required reviewers of the environments {', '.join(stacks)}: GitHub has them for "
            "public repositories, and for private ones with GitHub Enterprise. Without them a member who can "
            f"push can deploy: limit the environments to the branch {trust.branch}, and protect it. A "
            "private repository has environments with GitHub Pro, Team or Enterprise, and none with Free."
        )
    if isinstance(trust, Pipeline) and not trust.by_environment and not separable:
        yield (
            f"Every job of {trust.repository} on {trust.branch} can log in as any of these deployers: AWS "
            "reads no environment in tokens of GitLab, so approvals delay a deployment, but do not limit the "
            "role. Protect the branch; give the stacks a project or an account each."
        )
