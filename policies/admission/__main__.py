"""Print the policies for `kubectl apply -f -`: `python -m policies.admission [Deny|Warn|Audit ...]`."""

import json
import sys
from typing import cast, get_args

from policies.admission.manifests import Action, manifests


def main(words: list[str]) -> int:
    """Write them as one List. Return 2 for an unknown action."""
    unknown = [word for word in words if word not in get_args(Action)]
    if unknown:
        print(f"{unknown[0]} is none of {', '.join(get_args(Action))}", file=sys.stderr)  # noqa: T201
        return 2
    items = manifests(actions=cast(list[Action], words) or ["Deny"])
    print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
