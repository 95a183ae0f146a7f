"""Values that the engine reads from the states of stacks."""

import itertools
import time
from collections.abc import Mapping
from typing import Any

import pulumi

_MOST_READS, _BETWEEN_READS_S = 50, 0.1


def reference(name: str) -> str:
    """The name of a stack of this project, for the engine.

    Self-managed backends say `organization`. Those without projects refuse a name with slashes, and the
    others add the present project (pulumi v3.259.0 pkg/backend/diy/store.go, ParseReference).
    """
    organization = pulumi.get_organization()
    return name if organization == "organization" else f"{organization}/{pulumi.get_project()}/{name}"


def asked(function: str, arguments: Mapping[str, str]) -> Mapping[str, Any]:
    """The outputs that a function of the engine reads from the state, which the engine writes meanwhile.

    In a folder, attributes beside the state are written in place, and what reads them at that moment fails
    with EOF (gocloud.dev v0.46 blob/fileblob/attrs.go, setAttrs).
    """
    for attempt in itertools.count(1):
        try:
            found = pulumi.runtime.invoke(f"pulumi:pulumi:{function}", arguments).value["outputs"]
        except Exception as error:  # the SDK has no other type
            if attempt == _MOST_READS or "failed to load checkpoint" not in str(error):
                raise
            time.sleep(_BETWEEN_READS_S)
        else:
            return dict(found)
    raise AssertionError
