"""What a stack file says, as values, and the problems that loading it gives."""

from typing import Any

import pytest

from infra import stackspec
from infra.errors import Problem, UserError

Values = dict[str, Any]


def problems(values: Values) -> list[Problem]:
    with pytest.raises(UserError) as caught:
        stackspec.load("dev", values, "Pulumi.dev.yaml")
    return list(caught.value.problems)


def paths(values: Values) -> set[str]:
    return {problem.path for problem in problems(values)}
