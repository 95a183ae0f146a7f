"""From where a tracking server is reached."""

from collections.abc import Iterator
from typing import Any

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.kubernetes.objects import metadata, spec
from policies.rules.walking import each
from policies.stack import Stack

_SERVICE, _INGRESS = "kubernetes:core/v1:Service", "kubernetes:networking.k8s.io/v1:Ingress"
_BALANCERS = ("aws:lb/loadBalancer:LoadBalancer", "aws:alb/loadBalancer:LoadBalancer")
_AWS = "service.beta.kubernetes.io/aws-load-balancer-"
_GOOGLE = ("networking.gke.io/load-balancer-type", "cloud.google.com/load-balancer-type")
# Balancers of the AWS Load Balancer Controller and of EKS Auto Mode are internal unless told otherwise;
# those of the cloud provider inside of Kubernetes, and of GKE, are public.
_INTERNAL_CLASSES = ("service.k8s.aws/nlb", "eks.amazonaws.com/nlb")
_INTERNAL_TYPES = ("external", "nlb-ip")


@CATALOGUE.rule_around(
    About(
        "MLS-TRK-01",
        "critical",
        (_SERVICE, _INGRESS, *_BALANCERS),
        "MLflow hands out every model and stores whatever it is sent; whoever finds it on the internet needs"
        " one flaw, or one password.",
        "Keep its Service of type ClusterIP, or annotate its load balancer as internal.",
    )
)
def tracking_is_not_on_the_internet(thing: Resource, stack: Stack) -> Iterator[Violation]:
    """Tracking servers have no public load balancer; whom they ask for a name is MLS-TRK-07."""
    words = stack.settings.tracking_words
    if not any(word in str(name).lower() for name in _names(thing) for word in words):
        raise NotApplicableError("it does not lead to a tracking server")
    if thing.kind in _BALANCERS:
        if thing.props.get("internal") is not True:
            yield Violation("it has public addresses", "internal")
    elif thing.kind == _INGRESS:
        # The controller of AWS makes internal ones by default.
        notes = metadata(thing).get("annotations") or {}
        if notes.get("alb.ingress.kubernetes.io/scheme") == "internet-facing":
            yield Violation("its load balancer is public", "metadata.annotations")
    elif _is_public(thing):
        yield Violation("its load balancer is not said to be internal", "spec.type")


def _names(thing: Resource) -> Iterator[Any]:
    """By what one tells to whom it leads."""
    yield thing.name
    if thing.kind in _BALANCERS:
        yield thing.props.get("name")
        return
    yield metadata(thing).get("name")
    yield from (metadata(thing).get("labels") or {}).values()
    if thing.kind == _SERVICE:
        yield from (spec(thing).get("selector") or {}).values()
    else:
        paths = each(spec(thing), "rules", "http", "paths", "backend", "service")
        yield from (one.get("name") for _, one in (*paths, *each(spec(thing), "defaultBackend", "service")))


def _is_public(service: Resource) -> bool:
    if spec(service).get("type") != "LoadBalancer":
        return False
    notes = metadata(service).get("annotations") or {}
    if any(str(notes.get(key)).lower() == "internal" for key in _GOOGLE):
        return False
    if str(notes.get(f"{_AWS}internal")).lower() in ("true", "0.0.0.0/0"):
        return False
    scheme = notes.get(f"{_AWS}scheme")
    if scheme:
        return bool(scheme != "internal")
    by_controller = notes.get(f"{_AWS}type") in _INTERNAL_TYPES
    return not by_controller and spec(service).get("loadBalancerClass") not in _INTERNAL_CLASSES
