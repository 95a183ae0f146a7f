"""Facts of a type of Terraform's AWS provider by the names of the installed SDK, and by newer sources."""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal.core.rules.facts import of_values
from rehearsal.core.sdk_types import describe
from tools.aws_limits import newer_values
from tools.provider_source import spellings
from tools.sdk.defaults import arguments_of, documented, object_class

Facts = dict[str, Any]
# Names that Pulumi gives where a program gives none.
_NAMES = re.compile(r"(^|\.)(name|bucket|identifier|clusterIdentifier|\w+Name)$")


@functools.cache
def _texts(cls: type) -> dict[str, str]:
    """Property, in small letters, -> its documentation."""
    return {name.replace("_", "").lower(): text for name, text in documented(cls).items()}


# (type, kind of fact, path) that version 6 accepts: by the documentation of the SDK, or by other rules.
_ACCEPTED = {
    ("cloudwatch/internetMonitor:InternetMonitor", "some", "maxCityNetworksToMonitor"),
    ("costexplorer/anomalyMonitor:AnomalyMonitor", "conflicts", "monitorDimension"),
    ("ec2/amiLaunchPermission:AmiLaunchPermission", "exactly_one", "accountId"),
    ("quicksight/refreshSchedule:RefreshSchedule", "conflicts", "schedule.scheduleFrequency.interval"),
    ("sns/smsPreferences:SmsPreferences", "some", "defaultSenderId"),
}


class Naming:
    """Property paths of a type: the SDK's for the provider's, with their forms and documentation."""

    def __init__(self, token: str, terraform: str, judged: frozenset[str]) -> None:
        described = describe(f"aws:{token}")
        arguments: type | None = arguments_of(f"aws:{token}")
        assert described is not None and arguments is not None, token
        self._inputs, self._objects = described["inputs"], described["objects"]
        self._class: type | None = arguments
        self._judged = judged
        self._accepted = {(fact, path) for of, fact, path in _ACCEPTED if of == token}
        self.services = newer_values.services(token.partition("/")[0], terraform)

    def resolve(self, path: str) -> tuple[str, Any, str] | None:
        """(path of the SDK, its form, documentation) of a path; None if the SDK has none."""
        fields, cls, here, form, text = self._inputs, self._class, "", None, ""
        for part in path.removesuffix("[]").split("."):
            if fields is None or cls is None:
                return None
            name = next((one for one in spellings(part) if one in fields), None)
            if name is None:
                return None
            text = _texts(cls).get(name.lower(), "")
            here, form = f"{here}.{name}" if here else name, fields[name]["type"]
            inner = form["list"] if isinstance(form, dict) and "list" in form else form
            object_ = inner["object"] if isinstance(inner, dict) and "object" in inner else ""
            fields = self._objects[object_] if object_ else None
            cls = object_class("aws", object_) if object_ else None
        if path.endswith("[]") and isinstance(form, dict) and "list" in form:
            here, form = f"{here}[]", form["list"]
        return here, form, text

    def newer(self, group: Iterable[str], given: Iterable[str]) -> bool:
        """Return whether the object with a group's properties has one that the provider lacks."""
        parent = next(iter(group)).rpartition(".")[0]
        known = {one for name in given for one in spellings(name.rpartition(".")[2])}
        if not parent:
            return not set(self._inputs) <= known | {"region", "tagsAll", "id"}
        return True

    def facts(self, found: Mapping[str, Any], given: Iterable[str]) -> Facts:
        """The facts by the names of the SDK."""
        facts: Facts = {}
        blank = found.get("blank", {})
        # A number in a text has other spellings.
        plain = {
            path for path, wanted in found.get("pattern", {}).items() if not re.search(r"a-z|A-Z", wanted)
        }
        for fact in ("words", "words_any_case", "ranges", "pattern", "length", "form"):
            for path, wanted in found.get(fact, {}).items():
                place = None if path in plain and fact != "ranges" else self.resolve(path)
                if place and place[0] not in self._judged and (kept := self._kept(fact, wanted, *place)):
                    facts.setdefault(fact, {})[place[0]] = kept
                    if path in blank:
                        facts.setdefault("blank", {})[place[0]] = True
        for path, bounds in found.get("items", {}).items():
            place = self.resolve(path)
            listed = place is not None and isinstance(place[1], dict) and "list" in place[1]
            if place and listed and place[0] not in self._judged:
                facts.setdefault("items", {})[place[0]] = bounds
        return {**facts, **self._cross(found, set(given))}

    def _kept(self, fact: str, wanted: Any, path: str, form: Any, text: str) -> Any:
        """A fact with what newer sources accept; none if it is about a list that grows, or does not hold."""
        names = {name.lower() for name in self._inputs}
        if isinstance(form, dict) or ("words" in fact and newer_values.grows(path, wanted)):
            return None
        if "words" in fact:
            if not all(isinstance(one, str) for one in wanted):
                return None if form == "str" else self._listed(wanted, text)
            return newer_values.words(wanted, self.services, text, names)
        if fact == "ranges":
            return newer_values.ranges(wanted, path, self.services, text)
        if fact == "length":
            least, most = newer_values.length(wanted, text)
            return None if most is None and not least else [least or 0, most if most is not None else 10**6]
        broken = [
            word
            for word in newer_values.spelt(text, names)
            if [*of_values({fact: {"a": wanted}}, {"a": word})]
        ]
        return None if fact == "pattern" and broken else wanted

    def _listed(self, wanted: list[float], text: str) -> list[float]:
        said = {int(one) if one == int(one) else one for one in newer_values.numbers(text)}
        return sorted({*wanted, *said})

    def _cross(self, found: Mapping[str, Any], given: set[str]) -> Facts:
        facts: Facts = {}
        conflicts: dict[str, set[str]] = {}
        for fact, into in (("excludes", conflicts), ("needs", {})):
            for path, others in found.get(fact, {}).items():
                here = self._paths([path])
                against = self._paths(others)
                if here and against and (fact == "excludes" or len(against) == len(others)):
                    into.setdefault(here[0], set()).update(against)
            if fact == "needs" and into:
                facts["partners"] = {path: sorted(those) for path, those in sorted(into.items())}
        for fact in ("exactly_one", "some"):
            for group in found.get(fact, ()):
                paths = self._paths(group)
                within = {path.rpartition(".")[0] for path in paths}
                sure = len(paths) == len(group) and len(within) == 1 and not any(map(_NAMES.search, paths))
                accepted = (fact, min(paths, default="")) in self._accepted
                if sure and not accepted and not self.newer(paths, given):
                    facts.setdefault(fact, []).append({"of": sorted(paths), "within": within.pop()})
                elif fact == "exactly_one":
                    for path in paths:
                        conflicts.setdefault(path, set()).update({*paths} - {path})
        if conflicts:
            # One of a pair reports it.
            # A name beside a prefix is one that the rehearsal gives.
            pairs = {
                tuple(sorted((one, other)))
                for one, those in conflicts.items()
                for other in those
                if f"{one}Prefix" != other and f"{other}Prefix" != one
            }
            rows: dict[str, list[str]] = {}
            for one, other in sorted(pairs):
                rows.setdefault(one, []).append(other)
            facts["conflicts"] = {
                path: those for path, those in rows.items() if ("conflicts", path) not in self._accepted
            }
        return facts

    def _paths(self, group: Iterable[str]) -> list[str]:
        return [place[0].removesuffix("[]") for one in group if (place := self.resolve(one))]
