"""Cloud Run functions.

Source: Cloud Run functions documentation, "Compare functions" (a function is a Cloud Run service of the
same name, which is deleted with it).
"""

from collections.abc import Mapping

from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record
from rehearsal.gcp.rules.book import block
from rehearsal.gcp.site import Site

_SERVICE = "cloudrunv2/service:Service"


def _outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """The function's service and its trigger."""
    place = f"projects/{site.project}/locations/{outputs.get('location')}"
    name = outputs.get("name")
    service = {**block(inputs.get("serviceConfig")), "service": f"{place}/services/{name}"}
    trigger = block(inputs.get("eventTrigger"))
    more: Properties = {"serviceConfig": service}
    if trigger:
        more["eventTrigger"] = {**trigger, "trigger": f"{place}/triggers/{name}"}
    return more


def _created(site: Site, function: Record) -> None:
    location = function.outputs.get("location")
    key = f"projects/{site.project}/locations/{location}/services/{function.name}"
    outputs = {"name": function.name, "location": location, "project": site.project}
    site.hidden(function, _SERVICE, key, outputs, {key}, name=function.name)


HOOKS: Mapping[str, Hooks[Site]] = {
    "cloudfunctionsv2/function:Function": Hooks(outputs=_outputs, created=_created)
}
