"""Stack files as people write them: scalars that YAML changes, and files with any fault."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from infra import stackspec
from infra.errors import Problem, UserError
from infra.stackspec.load import CONFIG
from tests.infra.stackspec.mutations import mutated
from tests.infra.stackspec.stack_files import Values, problems

FILES = sorted(CONFIG.glob("Pulumi.*.yaml"))


def problems_of(stack: str, content: bytes, folder: Path) -> Sequence[Problem]:
    (folder / f"Pulumi.{stack}.yaml").write_bytes(content)
    try:
        stackspec.load_file(stack, folder).explain("")
    except UserError as error:
        return error.problems
    return ()


def changed(old: str, new: str, folder: Path, shipped: str = "dev-aws") -> Sequence[Problem]:
    text = (CONFIG / f"Pulumi.{shipped}.yaml").read_text()
    assert text.count(old) == 1
    return problems_of(shipped, text.replace(old, new).encode(), folder)


@pytest.mark.parametrize(
    ("old", "new", "path", "value"),
    [
        (
            "    layout:\n",
            "    layout:\n      kubernetes_version: 1.36\n",
            "layout.kubernetes_version",
            "1.36",
        ),
        (
            "    layout:\n",
            "    layout:\n      kubernetes_version: 1.30\n",
            "layout.kubernetes_version",
            "1.30",
        ),
        ('account_id: "123456789012"', "account_id: 012345678901", "on.account_id", "012345678901"),
        ("cost_center: ml-research", "cost_center: 0x1F", "cost_center", "0x1F"),
        ("cost_center: ml-research", "cost_center: true", "cost_center", "true"),
        ("cost_center: ml-research", "cost_center: 1_000", "cost_center", "1_000"),
    ],
)
def test_text_that_yaml_takes_for_something_else_goes_into_quotes(
    old: str, new: str, path: str, value: str, tmp_path: Path
) -> None:
    (problem,) = changed(old, new, tmp_path)
    assert (problem.code, problem.path, problem.value) == ("text-without-quotes", path, value)
    assert f'"{value}"' in problem.fix and problem.origin.startswith("Pulumi.dev-aws.yaml:")


@pytest.mark.parametrize("day", ["2027-02-30", "2027-13-01", "2027-00-10"])
def test_a_day_that_does_not_exist_has_its_line(day: str, tmp_path: Path) -> None:
    (problem,) = changed("expires_on: never", f"expires_on: {day}", tmp_path)
    assert (problem.code, problem.path, problem.value) == ("no-such-day", "expires_on", day)
    assert problem.origin == "Pulumi.dev-aws.yaml:12"


@pytest.mark.parametrize("cidr", ["198.51.100.7", "198.51.100.0/255.255.255.0", "198.51.100.7/24"])
@pytest.mark.parametrize("shipped", ["dev-aws", "prod-aws"])
def test_a_range_of_clients_has_a_prefix_length(cidr: str, shipped: str, values: Values) -> None:
    values["spec"]["layout"]["api_access"] = [cidr]
    (problem,) = problems(values)
    assert (problem.code, problem.path) == ("not-an-ipv4-network", "layout.api_access[0]")


def test_an_address_alone_is_reported_as_a_range(values: Values) -> None:
    values["spec"]["layout"]["api_access"] = ["198.51.100.7"]
    (problem,) = problems(values)
    assert "198.51.100.7/32" in problem.fix


@pytest.mark.parametrize(("value", "code"), [(True, "boolean-for-number"), (float("inf"), "finite-number")])
def test_a_number_is_a_number(value: object, code: str, values: Values) -> None:
    values["spec"]["budget"]["monthly_usd"] = value
    (problem,) = problems(values)
    assert (problem.code, problem.path) == (code, "budget.monthly_usd")


def test_a_guarantee_is_a_number_and_other_problems_are_reported_beside_it(values: Values) -> None:
    values["spec"]["teams"][0]["gpus"] = {"a100": True}
    values["spec"]["owner"] = 3
    values["spec"]["data"]["shared_fs"] = {
        "capacity_gib": "1200",
        "throughput_mb_s_per_tib": 125,
        "zone": "x",
    }
    assert {(problem.code, problem.path) for problem in problems(values)} == {
        ("boolean-for-number", "teams[0].gpus.a100"),
        ("string-type", "owner"),
        ("zone-not-of-stack", "data.shared_fs.zone"),
    }


def test_an_empty_key_has_a_path(values: Values) -> None:
    values["spec"][""] = 1
    (problem,) = problems(values)
    assert (problem.code, problem.path) == ("unknown-key", '""')


@pytest.mark.parametrize(
    "text",
    [
        "config: [*a]",
        "config: &a [*a]",
        "config: !!bool maybe",
        "config: !!int [1]",
        "[" * 5000,
        "\0",
        "- - a",
    ],
)
def test_what_is_no_stack_file_is_refused(text: str, tmp_path: Path) -> None:
    (problem,) = problems_of("dev", text.encode(), tmp_path)
    assert problem.path == "Pulumi.dev.yaml"


def faulty(seeds: range, folder: Path) -> list[object]:
    """The seeds whose file ends otherwise than with problems that have a path, a rule, a fix and a code."""
    wrong: list[object] = []
    for seed in seeds:
        file = FILES[seed % len(FILES)]
        stack = file.stem.removeprefix("Pulumi.")
        try:
            found = problems_of(stack, mutated(file.read_text(), f"{stack} {seed}"), folder)
        except Exception as error:
            wrong.append((seed, repr(error)))
            continue
        wrong += [
            (seed, str(one))
            for one in found
            if not (one.path and one.rule and one.fix and one.code)
            or "tuple" in one.rule
            or "dict" in one.rule
        ]
    return wrong


@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
def test_files_with_any_fault_are_loaded_or_refused(tmp_path: Path) -> None:
    assert faulty(range(300), tmp_path) == []


@pytest.mark.more
@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
def test_many_files_with_any_fault_are_loaded_or_refused(tmp_path: Path) -> None:
    assert faulty(range(300, 5300), tmp_path) == []
