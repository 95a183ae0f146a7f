"""Exposure of tracking servers to the internet."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.kubernetes.objects import metadata, spec
from policies.rules.pools import is_auto_mode
from policies.rules.properties import each
from policies.stack import Stack

_SERVICE, _INGRESS = "kubernetes:core/v1:Service", "kubernetes:networking.k8s.io/v1:Ingress"
_CLASS = "kubernetes:networking.k8s.io/v1:IngressClass"
_EKS, _GKE = "aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster"
_BALANCERS = ("aws:lb/loadBalancer:LoadBalancer", "aws:alb/loadBalancer:LoadBalancer")
_AWS, _ALB = "service.beta.kubernetes.io/aws-load-balancer-", "alb.ingress.kubernetes.io/"
_GOOGLE = ("networking.gke.io/load-balancer-type", "cloud.google.com/load-balancer-type")
# Controllers of load balancers, and their default exposure (sources read on 2026-11-24):
# - the AWS Load Balancer Controller: internal; the scheme of a class overrides an annotation,
#   and an annotation `scheme` the older `internal`, which is public if false
#   (kubernetes-sigs/aws-load-balancer-controller@225f4456 docs/guide/service/annotations.md,
#   pkg/{service,ingress}/model_build_load_balancer.go);
# - EKS Auto Mode: its class is that of every Service without one, and has no `internal`
#   (awsdocs/amazon-eks-user-guide@1eb6aa42 latest/ug/automode/auto-configure-{nlb,alb}.adoc). That its
#   balancers are internal by default, as those of the controller, is to be confirmed;
# - the cloud provider for AWS: public, unless `internal` is set and not `false`
#   (kubernetes/cloud-provider-aws pkg/providers/v1/aws.go, EnsureLoadBalancer);
# - GKE: public, unless an annotation or a class sets internal; it serves an Ingress without any class, or
#   with one of its own in the annotation (kubernetes/ingress-gce@154c8861 pkg/utils/utils.go, IsGCEIngress;
#   pkg/annotations, RegionalInternalLoadBalancerClass).
_GOOGLE_CLASS = "networking.gke.io/l4-regional-internal"
_AUTO_MODE = "eks.amazonaws.com/nlb"
_CONTROLLER_CLASS, _CONTROLLER_TYPES = "service.k8s.aws/nlb", ("external", "nlb-ip")
_ALB_CONTROLLERS = ("ingress.k8s.aws/alb", "eks.amazonaws.com/alb")
_PARAMETERS = (
    "kubernetes:elbv2.k8s.aws/v1beta1:IngressClassParams",
    "kubernetes:eks.amazonaws.com/v1:IngressClassParams",
)
_NOT = ("false", "f", "0")
"""Values for false in both (strconv.ParseBool)."""


@CATALOG.rule_around(
    "MLS-TRK-01",
    "critical",
    (_SERVICE, _INGRESS, *_BALANCERS),
    "MLflow serves every model and stores any upload; on the internet, one vulnerability or one password"
    " is enough for an attacker.",
    "Keep its Service of type ClusterIP, or annotate its load balancer as internal.",
    (
        "AWS Load Balancer Controller, Service and Ingress annotations: scheme",
        "EKS User Guide, auto-configure-nlb, auto-configure-alb",
    ),
)
def tracking_is_not_on_the_internet(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """Tracking servers have no public load balancer; MLS-TRK-07 is about authentication."""
    words = stack.settings.tracking_words
    if not any(word in str(name).lower() for name in _names(resource) for word in words):
        raise NotApplicableError("it does not route to a tracking server")
    if resource.kind in _BALANCERS:
        if resource.props.get("internal") is not True:
            yield Violation("it has public addresses", "internal")
    elif resource.kind == _INGRESS:
        if _is_fronted_publicly(resource, stack):
            yield Violation("its load balancer is public", "metadata.annotations")
    elif _is_public(resource, stack):
        yield Violation("its load balancer is not set to internal", "spec.type")


def _names(resource: Resource) -> Iterator[Any]:
    yield resource.name
    if resource.kind in _BALANCERS:
        yield resource.props.get("name")
        return
    yield metadata(resource).get("name")
    yield from (metadata(resource).get("labels") or {}).values()
    if resource.kind == _SERVICE:
        yield from (spec(resource).get("selector") or {}).values()
    else:
        paths = each(spec(resource), "rules", "http", "paths", "backend", "service")
        yield from (
            one.get("name") for _, one in (*paths, *each(spec(resource), "defaultBackend", "service"))
        )


def _is_public(service: Resource, stack: Stack) -> bool:
    if spec(service).get("type") != "LoadBalancer":
        return False
    notes = metadata(service).get("annotations") or {}
    if any(str(notes.get(key)).lower() == "internal" for key in _GOOGLE):
        return False
    scheme, older = notes.get(f"{_AWS}scheme"), notes.get(f"{_AWS}internal")
    if scheme:
        return bool(scheme != "internal")
    usual = _AUTO_MODE if any(map(is_auto_mode, stack.reported(_EKS))) else ""
    chosen = spec(service).get("loadBalancerClass") or usual
    if chosen == _AUTO_MODE or str(chosen).startswith(_GOOGLE_CLASS):
        return False
    if older:
        return str(older).lower() in _NOT
    by_controller = chosen == _CONTROLLER_CLASS or notes.get(f"{_AWS}type") in _CONTROLLER_TYPES
    return not by_controller


def _is_fronted_publicly(ingress: Resource, stack: Stack) -> bool:
    """Return whether the balancer of an Ingress is public; raises UndeterminedError for other controllers."""
    notes = metadata(ingress).get("annotations") or {}
    named = notes.get("kubernetes.io/ingress.class") or spec(ingress).get("ingressClassName") or ""
    if str(named).startswith("gce"):
        return bool(named != "gce-internal")
    served = _served_by(named, stack)
    by_class = _scheme(served, stack) if served is not None else ""
    of_aws = served is not None or named == "alb" or any(str(key).startswith(_ALB) for key in notes)
    if of_aws or (not named and stack.reported(_EKS) and not stack.reported(_GKE)):
        return bool((by_class or notes.get(f"{_ALB}scheme")) == "internet-facing")
    if named or not stack.reported(_GKE) or stack.reported(_EKS):
        target = f"its class {named}" if named else "an Ingress without a class"
        raise UndeterminedError(f"the controller of {target} is not known, and so not its exposure")
    return True


def _served_by(named: Any, stack: Stack) -> Resource | None:
    """The class of a name, or the default class; None if the source has none."""
    for one in stack.reported(_CLASS):
        usual = (metadata(one).get("annotations") or {}).get("ingressclass.kubernetes.io/is-default-class")
        if metadata(one).get("name") == named or (not named and str(usual) == "true"):
            controller = spec(one).get("controller")
            if controller not in _ALB_CONTROLLERS:
                raise UndeterminedError(f"the Service of {controller} sets the exposure, not the Ingress")
            return one
    return None


def _scheme(served: Resource, stack: Stack) -> str:
    """The scheme in the parameters of a class; empty without parameters."""
    parameters = (spec(served).get("parameters") or {}).get("name")
    if not parameters:
        return ""
    for one in stack.reported(*_PARAMETERS):
        if metadata(one).get("name") == parameters:
            return str(spec(one).get("scheme") or "")
    raise UndeterminedError(f"the parameters {parameters} of its class are not in the stack")
