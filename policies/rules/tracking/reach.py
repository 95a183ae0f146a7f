"""From where a tracking server is reached."""

from collections.abc import Iterator
from typing import Any

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.kubernetes.objects import metadata, spec
from policies.rules.pools import is_auto_mode
from policies.rules.walking import each
from policies.stack import Stack

_SERVICE, _INGRESS = "kubernetes:core/v1:Service", "kubernetes:networking.k8s.io/v1:Ingress"
_CLASS = "kubernetes:networking.k8s.io/v1:IngressClass"
_EKS, _GKE = "aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster"
_BALANCERS = ("aws:lb/loadBalancer:LoadBalancer", "aws:alb/loadBalancer:LoadBalancer")
_AWS, _ALB = "service.beta.kubernetes.io/aws-load-balancer-", "alb.ingress.kubernetes.io/"
_GOOGLE = ("networking.gke.io/load-balancer-type", "cloud.google.com/load-balancer-type")
# Who makes balancers, and whether they are public where nobody says anything (sources read on 2026-11-24):
# - the AWS Load Balancer Controller: internal; the scheme of a class counts more than an annotation, and an
#   annotation `scheme` more than the older `internal`, which is public if false
#   (kubernetes-sigs/aws-load-balancer-controller@225f4456 docs/guide/service/annotations.md,
#   pkg/{service,ingress}/model_build_load_balancer.go);
# - EKS Auto Mode: its class is that of every Service without one, and knows no `internal`
#   (awsdocs/amazon-eks-user-guide@1eb6aa42 latest/ug/automode/auto-configure-{nlb,alb}.adoc). That its
#   balancers are internal by default, as those of the controller, is to be confirmed;
# - the cloud provider for AWS: public, unless `internal` is set and not `false`
#   (kubernetes/cloud-provider-aws pkg/providers/v1/aws.go, EnsureLoadBalancer);
# - GKE: public, unless an annotation or a class says internal; it serves an Ingress without any class, or
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
"""What both take for false (strconv.ParseBool)."""


@CATALOGUE.rule_around(
    About(
        "MLS-TRK-01",
        "critical",
        (_SERVICE, _INGRESS, *_BALANCERS),
        "MLflow hands out every model and stores whatever it is sent; whoever finds it on the internet needs"
        " one flaw, or one password.",
        "Keep its Service of type ClusterIP, or annotate its load balancer as internal.",
        (
            "AWS Load Balancer Controller, Service and Ingress annotations: scheme",
            "EKS User Guide, auto-configure-nlb, auto-configure-alb",
        ),
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
        if _is_fronted_publicly(thing, stack):
            yield Violation("its load balancer is public", "metadata.annotations")
    elif _is_public(thing, stack):
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


def _is_public(service: Resource, stack: Stack) -> bool:
    if spec(service).get("type") != "LoadBalancer":
        return False
    notes = metadata(service).get("annotations") or {}
    if any(str(notes.get(key)).lower() == "internal" for key in _GOOGLE):
        return False
    scheme, older = notes.get(f"{_AWS}scheme"), notes.get(f"{_AWS}internal")
    if scheme:
        return bool(scheme != "internal")
    usual = _AUTO_MODE if any(map(is_auto_mode, stack.told(_EKS))) else ""
    chosen = spec(service).get("loadBalancerClass") or usual
    if chosen == _AUTO_MODE or str(chosen).startswith(_GOOGLE_CLASS):
        return False
    if older:
        return str(older).lower() in _NOT
    by_controller = chosen == _CONTROLLER_CLASS or notes.get(f"{_AWS}type") in _CONTROLLER_TYPES
    return not by_controller


def _is_fronted_publicly(ingress: Resource, stack: Stack) -> bool:
    """Whether the balancer of an Ingress is public; UndeterminedError where another program decides."""
    notes = metadata(ingress).get("annotations") or {}
    named = notes.get("kubernetes.io/ingress.class") or spec(ingress).get("ingressClassName") or ""
    if str(named).startswith("gce"):
        return bool(named != "gce-internal")
    served = _served_by(named, stack)
    by_class = _scheme(served, stack) if served is not None else ""
    of_aws = served is not None or named == "alb" or any(str(key).startswith(_ALB) for key in notes)
    if of_aws or (not named and stack.told(_EKS) and not stack.told(_GKE)):
        return bool((by_class or notes.get(f"{_ALB}scheme")) == "internet-facing")
    if named or not stack.told(_GKE) or stack.told(_EKS):
        who = f"who serves its class {named}" if named else "who serves an Ingress without a class"
        raise UndeterminedError(f"{who} is not told, and so not who reaches it")
    return True


def _served_by(named: Any, stack: Stack) -> Resource | None:
    """The class of that name, or the one that counts where there is no name; None where no source has it."""
    for one in stack.told(_CLASS):
        usual = (metadata(one).get("annotations") or {}).get("ingressclass.kubernetes.io/is-default-class")
        if metadata(one).get("name") == named or (not named and str(usual) == "true"):
            controller = spec(one).get("controller")
            if controller not in _ALB_CONTROLLERS:
                raise UndeterminedError(
                    f"the Service of {controller} says who reaches it, and not the Ingress"
                )
            return one
    return None


def _scheme(served: Resource, stack: Stack) -> str:
    """What a class says in its parameters, if it has some."""
    parameters = (spec(served).get("parameters") or {}).get("name")
    if not parameters:
        return ""
    for one in stack.told(*_PARAMETERS):
        if metadata(one).get("name") == parameters:
            return str(spec(one).get("scheme") or "")
    raise UndeterminedError(f"the parameters {parameters} of its class are not in the stack")
