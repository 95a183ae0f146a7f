"""Failed checks as the engine shows them."""

import pytest

from rehearsal.core.engine_messages import check_failures
from rehearsal.core.model import CheckFailure


@pytest.mark.parametrize(
    ("path", "shown"),
    [("name", "name"), ("size", ""), ("rules[0].port", ""), ("", "")],
)
def test_a_failure_names_only_a_property_whose_value_the_engine_can_show(path: str, shown: str) -> None:
    inputs = {"name": "n", "rules": [{"port": 70000}]}
    (made,) = check_failures([CheckFailure(path, "is wrong")], inputs, "web")
    assert made.property == shown
    assert (f"web.{path}" in made.reason) is (shown == "" and path != "")
