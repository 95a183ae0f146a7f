"""EKS managed node groups."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.aws import facts
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.cluster.eks import assumable
from rehearsal.aws.rules.reading import given, is_set, items, number, template_of, text
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, known
from rehearsal.core.rules.model import Violation

_GROUP = "aws:eks/nodeGroup:NodeGroup"
_API = "botocore 1.44.5 eks/2017-11-01 CreateNodegroupRequest"
_TEMPLATES = "awsdocs/amazon-eks-user-guide latest/ug/nodes/launch-templates.adoc"
_BLOCKS = "awsdocs/amazon-eks-user-guide latest/ug/nodes/capacity-blocks-mng.adoc"
_INVALID = "InvalidParameterException"
_GPU_IMAGES = ("NVIDIA", "GPU")


@BOOK.rule("AWS-EKS-020", _GROUP, source="botocore 1.44.5 eks/2017-11-01 NodegroupScalingConfig")
def sizes_in_order(inputs: Properties) -> Iterator[Violation]:
    """MinSize <= desiredSize <= maxSize."""
    sizes = [number(at(inputs, f"scalingConfig.{name}")) for name in ("minSize", "desiredSize", "maxSize")]
    low, wanted, high = sizes
    if low is not None and wanted is not None and high is not None and not low <= wanted <= high:
        yield Violation(
            "scalingConfig",
            f"minSize {low:.0f} <= desiredSize {wanted:.0f} <= maxSize {high:.0f} does not hold",
        )


def _image_problem(ami: Any, types: list[tuple[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Reasons why an image lacks the driver ("driver") or the architecture ("machine")."""
    if not isinstance(ami, str) or ami == "CUSTOM":
        return
    for path, name in types:
        kind = facts.catalog().instance_types.get(name) if isinstance(name, str) else None
        if kind is None:
            continue
        if not any(word in ami for word in _GPU_IMAGES):
            yield "driver", "amiType", f"{name} has GPUs, but image {ami} has no NVIDIA driver"
        if ("ARM_64" in ami) != (kind.architecture == "arm64"):
            yield "machine", path, f"[{name}] is {kind.architecture}, image {ami} is not"


def _types(inputs: Properties) -> list[tuple[str, Any]]:
    types = inputs.get("instanceTypes")
    found = types if isinstance(types, list) else []
    return [(f"instanceTypes[{index}]", name) for index, name in enumerate(found)]


def _type_of_template(inputs: Properties, site: AwsContext) -> list[tuple[str, Any]]:
    template = template_of(site, inputs)
    return [("launchTemplate", template.inputs.get("instanceType"))] if template else []


@BOOK.rule_around("AWS-EKS-023", _GROUP, source=_API, advice=True)
def image_has_the_driver(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A GPU instance type goes with a GPU image, unless something on the cluster installs the driver."""
    types = [*_types(inputs), *_type_of_template(inputs, site)]
    for what, path, problem in _image_problem(inputs.get("amiType"), types):
        if what == "driver":
            yield Violation(path, problem, "Use a type that ends in NVIDIA.")


@BOOK.rule("AWS-EKS-024", _GROUP, source=_API)
def image_runs_on_the_machine(inputs: Properties) -> Iterator[Violation]:
    """The image has the architecture of the machine."""
    for what, path, problem in _image_problem(inputs.get("amiType"), _types(inputs)):
        if what == "machine":
            yield Violation(path, problem, "Choose an image of that architecture.")


@BOOK.rule("AWS-EKS-026", _GROUP, source="botocore 1.44.5 eks/2017-11-01 NodeRepairConfig")
def one_repair_limit(inputs: Properties) -> Iterator[Violation]:
    """A limit of node repair is a count or a percentage."""
    config = inputs.get("nodeRepairConfig")
    for start in ("maxUnhealthyNodeThreshold", "maxParallelNodesRepaired"):
        names = (f"{start}Count", f"{start}Percentage")
        if isinstance(config, Mapping) and len(given(config, *names)) > 1:
            yield Violation("nodeRepairConfig", f"{names[0]} and {names[1]} exclude each other")


@BOOK.rule_around("AWS-EKS-028", _GROUP, source=_API)
def types_in_one_place(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Instance types are given in the template or in the node group."""
    template = template_of(site, inputs)
    if template and is_set(inputs.get("instanceTypes")) and template.inputs.get("instanceType"):
        yield Violation(
            "instanceTypes",
            "Instance types must be given in the launch template or in the node group, not in both",
            "Leave them out here.",
            _INVALID,
        )


@BOOK.rule_around("AWS-EKS-029", _GROUP, source=_API)
def image_suits_the_template(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The image has the architecture of the launch template's machine."""
    for what, path, problem in _image_problem(inputs.get("amiType"), _type_of_template(inputs, site)):
        if what == "machine":
            yield Violation(path, problem, "Choose an image of that architecture.", _INVALID)


@BOOK.rule_around("AWS-EKS-030", _GROUP, source=_BLOCKS)
def market_of_the_capacity(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """CAPACITY_BLOCK and market type capacity-block go together."""
    template = template_of(site, inputs)
    market = at(template.inputs, "instanceMarketOptions.marketType") if template else None
    capacity = inputs.get("capacityType", "ON_DEMAND")
    if template and known(capacity) and (capacity == "CAPACITY_BLOCK") != (market == "capacity-block"):
        yield Violation(
            "capacityType",
            f"capacityType {capacity} does not go with market type {market}",
            "CAPACITY_BLOCK and instanceMarketOptions.marketType = capacity-block go together.",
            _INVALID,
        )


@BOOK.rule_around("AWS-EKS-031", _GROUP, source=_BLOCKS)
def block_names_its_reservation(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A capacity block needs its reservation's id and its instance type in the launch template."""
    template = template_of(site, inputs)
    if template is None or inputs.get("capacityType") != "CAPACITY_BLOCK":
        return
    target = "capacityReservationSpecification.capacityReservationTarget.capacityReservationId"
    for path in (target, "instanceType"):
        if at(template.inputs, path) is None:
            yield Violation(
                "launchTemplate",
                f"a capacity block needs {path} in the launch template",
                f"Set {path}.",
                _INVALID,
            )


@BOOK.rule_around("AWS-EKS-032", _GROUP, source=_TEMPLATES)
def template_leaves_it_to_eks(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A node group's template names no subnet, instance profile or hibernation: EKS decides them."""
    template = template_of(site, inputs)
    if template is None:
        return
    inner = [path for path, one in items(template.inputs, "networkInterfaces") if one.get("subnetId")]
    names = ("iamInstanceProfile", "hibernationOptions", "instanceInitiatedShutdownBehavior")
    for path in (*(f"{path}.subnetId" for path in inner), *given(template.inputs, *names)):
        yield Violation(
            "launchTemplate",
            f"the launch template of a node group may not have {path}",
            "Leave it out there; subnets and the node role belong in the node group.",
            _INVALID,
        )


@BOOK.rule_around("AWS-EKS-033", _GROUP, source=_API)
def own_image_says_it(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """With an image in the template, the node group gives no image type, version or release."""
    template = template_of(site, inputs)
    if template is None or not template.inputs.get("imageId"):
        return
    for name in given(inputs, "amiType", "version", "releaseVersion"):
        if (name, inputs[name]) != ("amiType", "CUSTOM"):
            yield Violation(name, "the launch template brings its own image", "Leave it out.", _INVALID)


@BOOK.rule_around("AWS-EKS-034", _GROUP, source=_API)
def version_of_the_cluster(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A new node group has the Kubernetes version of its cluster."""
    cluster = site.find(inputs.get("clusterName"), "eks/cluster:Cluster")
    version = text(inputs.get("version"))
    new = site.current("eks/nodeGroup:NodeGroup") is None
    if cluster and version and new and version != cluster.outputs.get("version"):
        yield Violation(
            "version",
            f"Nodegroup Kubernetes version {version} is not the cluster's {cluster.outputs.get('version')}",
            "Leave it out or use the cluster's.",
            _INVALID,
        )


@BOOK.rule_around("AWS-EKS-035", _GROUP, source="eksctl-io/eksctl issue 3290")
def node_role_trusts_ec2(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The node role lets EC2 assume it."""
    yield from assumable(inputs, site, "nodeRoleArn", "nodeRole", "ec2.amazonaws.com")
