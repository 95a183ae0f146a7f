"""Functions of an emulated cloud, which create no resource."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from rehearsal.core.emulation.columns import read_by
from rehearsal.core.emulation.site import S
from rehearsal.core.emulation.table import Table
from rehearsal.core.model import Call, Properties, ProviderInstance, Record, RefusalError
from rehearsal.core.rules.wording import unknown_function

Function = Callable[[S, Properties], Properties]
_PLACES = frozenset({"region", "project", "location", "zone"})
_TRUTHS = {"true": True, "false": False}


def asking(package: str, token: str, config: Mapping[str, Any]) -> Call:
    """A call for a function, without a resource."""
    return Call(ProviderInstance(package, config), token, "", threading.Event(), lambda *_: None)


def answer(
    table: Table,
    functions: Mapping[str, Function[S]],
    read: Callable[[S, str, Properties], Properties],
    site: S,
    args: Properties,
) -> Properties:
    """The result of the function that the site's call names, such as `aws:ec2/getVpc:getVpc`.

    `functions` are by service and name (`ec2/getVpc`); `read` returns an emulated resource of a type (without
    the package) for functions that only look one up. Raises RefusalError when a function is not emulated or
    its resource is missing.
    """
    token = site.call.type
    service, name = token.removeprefix(f"{table.package}:").partition("/")[0], token.rpartition(":")[2]
    # The SDK sends the arguments unchecked and checks the result.
    given = {
        key: _TRUTHS.get(value, value) if isinstance(value, str) else value for key, value in args.items()
    }
    function = functions.get(f"{service}/{name}")
    if function is not None:
        return function(site, given)
    found = read_by(token, table.rows)
    kept = None if found else _kept(site, token, given)
    if kept is not None:
        return {**given, **kept.outputs, "id": kept.id}
    if found is None:
        file = f"rehearsal/{table.package}/functions.py"
        raise unknown_function(token, f"{service}/{name}", functions, file)
    return read(site, found.removeprefix(f"{table.package}:"), given)


def _kept(site: S, token: str, args: Properties) -> Record | None:
    """The resource of a type without a row that a function reads: of `ecs/cluster` for `ecs/getCluster`.

    Each argument that is a text is its id, name or link, or the value of its own output. None: not exactly
    one.
    """
    service, kind = token.partition("/")[0], token.rpartition(":")[2].removeprefix("get")
    place = f"{service.partition(':')[2]}/{kind[:1].lower()}{kind[1:]}:{kind}"
    wanted = [(name, one) for name, one in args.items() if isinstance(one, str) and name not in _PLACES]
    found = [one for one in site.all(place) if all(_named(one, *pair) for pair in wanted)]
    return found[0] if len(found) == 1 else None


def _named(record: Record, name: str, value: str) -> bool:
    outputs = record.outputs
    return value in (record.id, record.name, *(outputs.get(one) for one in ("arn", "selfLink", "name", name)))


def absent(table: Table, token: str, value: object, usual: tuple[str, str]) -> RefusalError:
    """The refusal for a resource of a type (without the package) that does not exist."""
    row = table.rows.get(f"{table.package}:{token}")
    code, message = (row.missing if row else None) or usual
    return RefusalError(
        code, message.format(value=value), "Create it in the program, or in an earlier stack."
    )
