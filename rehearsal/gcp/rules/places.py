"""Regions, zones and locations of every type: a list that grows, and forms that do not."""

import difflib
import re
from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.properties import each
from rehearsal.core.rules.facts import of_values
from rehearsal.core.rules.model import EVERY, Violation
from rehearsal.core.rules.open_lists import ListVerdict
from rehearsal.gcp import provider
from rehearsal.gcp.rules.book import BOOK, ProjectView

_SOURCE = "gcloud compute zones list, as in {}"
_BUCKET = "gcp:storage/bucket:Bucket"
_REGION = re.compile(r"([a-z]+)-([a-z]+)(\d+)")
_ZONE = re.compile(r"(.+)-([a-z]|ai\d+[a-z])")
# Places of several regions: of buckets, keys, data sets, Firestore, Spanner, repositories, models.
_WIDE = re.compile(
    r"global|-|us|eu|asia|europe|africa|me|in|uk|ca|au|de|fr|it|jp|(nam|eur|asia|as|ca|in|au|us|eu|uk|me)\d+"
    r"|nam-eur-asia\d|us-central|europe-west"
)
# Places of other clouds, of sovereign clouds and of sites.
_ELSEWHERE = re.compile(r"(aws|azure|u)-.*|.*zone\d.*|.*[^a-zA-Z0-9-].*")
_LISTS = ("nodeLocations[]", "replicaZones[]", "distributionPolicyZones[]")
# How far the number of a region may be ahead of the highest one there.
_AHEAD = 2


def _of_region(value: str) -> ListVerdict:
    known, form = provider.zones(), _REGION.fullmatch(value)
    if value in known or _WIDE.fullmatch(value):
        return ListVerdict.KNOWN
    parts = [match for one in known if (match := _REGION.fullmatch(one))]
    if form is None or form[1] not in {one[1] for one in parts} or form[2] not in {one[2] for one in parts}:
        return ListVerdict.WRONG
    newest = max((int(one[3]) for one in parts if one.group(1, 2) == form.group(1, 2)), default=0)
    return ListVerdict.NEWER if newest < int(form[3]) <= newest + _AHEAD else ListVerdict.WRONG


def _of_zone(value: str) -> ListVerdict:
    form = _ZONE.fullmatch(value)
    if form is None:
        return ListVerdict.WRONG
    region, letters = _of_region(form[1]), provider.zones().get(form[1], ())
    if region is not ListVerdict.KNOWN or form[2] in letters:
        return region
    newer = len(form[2]) > 1 or form[2] == chr(ord(max(letters)) + 1)
    return ListVerdict.NEWER if newer else ListVerdict.WRONG


def _of_location(value: str) -> ListVerdict:
    if _WIDE.fullmatch(value.lower()):
        return ListVerdict.KNOWN
    plain = value.lower() if value.isupper() else value
    return _of_zone(plain) if _ZONE.fullmatch(plain) else _of_region(plain)


_JUDGES = {"region": _of_region, "zone": _of_zone, "location": _of_location}


_TIMED = (
    "gcp:cloudscheduler/job:Job",
    "gcp:compute/autoscaler:Autoscaler",
    "gcp:compute/regionAutoscaler:RegionAutoscaler",
    "gcp:compute/resourcePolicy:ResourcePolicy",
)
_TIME_ZONES = ("timeZone", "autoscalingPolicy.scalingSchedules.timeZone", "instanceSchedulePolicy.timeZone")


def _judged(inputs: Properties) -> Iterator[tuple[str, str, ListVerdict]]:
    """(path, value, verdict) of every place of a resource."""
    found = [(name, inputs.get(name), judge) for name, judge in _JUDGES.items()]
    found += [(here, value, _of_zone) for path in _LISTS for here, value in each(inputs, path)]
    for path, value, judge in found:
        plain = value.rpartition("/")[2] if isinstance(value, str) else ""
        if plain and not _ELSEWHERE.fullmatch(plain) and plain != "global":
            yield path, plain, judge(plain)


def _nearest(value: str) -> str:
    known = provider.zones()
    zones = [f"{region}-{letter}" for region, letters in known.items() for letter in letters]
    of_zone = re.search(r"\d-[a-z]$|-\d+[a-z]$", value) is not None
    return difflib.get_close_matches(value, zones if of_zone else list(known), n=1, cutoff=0)[0]


@BOOK.rule("GCP-PLACE-001", EVERY, source=_SOURCE.format(provider.lists_source()))
def _exists(inputs: Properties) -> Iterator[Violation]:
    """A region, zone or location has the name of one."""
    for path, value, verdict in _judged(inputs):
        if verdict is ListVerdict.WRONG:
            kind = path if path in _JUDGES else "zone"
            yield Violation(path, f"{value} is not a {kind}", f"Did you mean {_nearest(value)}?")


@BOOK.rule_around("GCP-PLACE-002", EVERY, source=_SOURCE.format(provider.lists_source()), advice=True)
def _newer(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A region or zone is one of the list, which may be older than it."""
    for path, value, verdict in _judged(inputs):
        if verdict is ListVerdict.NEWER:
            yield Violation(path, f"{value} may be newer than the list of zones, which does not have it")


@BOOK.rule("GCP-STORAGE-010", _BUCKET, source="Cloud Storage documentation, Bucket locations")
def _bucket_location(inputs: Properties) -> Iterator[Violation]:
    """A bucket is in a region, a dual-region or a multi-region, not in a zone, and not global."""
    location, plain = inputs.get("location"), str(inputs.get("location")).lower()
    if isinstance(location, str) and (
        plain == "global" or (_ZONE.fullmatch(plain) and not _REGION.fullmatch(plain))
    ):
        fix = f"Use {plain.rpartition('-')[0]}." if "-" in plain else "Use US, EU or ASIA."
        yield Violation("location", f"The specified location constraint is not valid: {location}", fix)


@BOOK.rule(
    "GCP-PLACE-003", *_TIMED, source="discovery documents cloudscheduler v1 (Job.timeZone) and compute v1"
)
def _time_zone(inputs: Properties) -> Iterator[Violation]:
    """A schedule is in a time zone of IANA's database."""
    yield from of_values({"form": dict.fromkeys(_TIME_ZONES, "zone")}, inputs)
