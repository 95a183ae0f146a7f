"""Custom resources and their definitions."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.kinds import parse
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import absent, at, mapping, name, rows, text, texts, unsure
from rehearsal.kubernetes.rules.book import BOOK, CUSTOM, ClusterView, existing, objects
from rehearsal.kubernetes.rules.objects import schema
from rehearsal.kubernetes.rules.violations import invalid, required, unsupported

DEFINITION = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
_SOURCE = (
    "kubernetes/kubernetes staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/"
    "validation.go"
)
_SCOPES = ("Cluster", "Namespaced")


@BOOK.rule("K8S-CRD-001", DEFINITION, source=_SOURCE)
def _definition_name(inputs: Properties) -> Iterator[Violation]:
    """A definition is named after the plural and the group of its objects."""
    own, plural, group = name(inputs), text(at(inputs, "spec.names.plural")), text(at(inputs, "spec.group"))
    sound = plural and group and not (grammar.label_1035(plural) or grammar.subdomain(group))
    if own and sound and own != f"{plural}.{group}":
        yield invalid("metadata.name", own, 'must be spec.names.plural+"."+spec.group')


@BOOK.rule("K8S-CRD-002", DEFINITION, source=_SOURCE)
def _one_stored(inputs: Properties) -> Iterator[Violation]:
    """Exactly one version of a definition is the one that is stored."""
    versions = at(inputs, "spec.versions")
    if isinstance(versions, list) and not unsure(versions):
        stored = [row.get("name") for _, row in rows(versions) if row.get("storage") is True]
        if len(stored) != 1:
            yield invalid("spec.versions", stored, "must have exactly one version marked as storage version")


@BOOK.rule("K8S-CRD-005", DEFINITION, source=_SOURCE)
def _has_schema(inputs: Properties) -> Iterator[Violation]:
    """Every version of a definition has a schema."""
    for index, row in rows(at(inputs, "spec.versions")):
        path, schema = f"spec.versions[{index}].schema.openAPIV3Schema", at(row, "schema.openAPIV3Schema")
        if schema is None:
            yield required(path)
        elif isinstance(schema, Mapping) and absent(schema.get("type")):
            yield required(f"{path}.type", "must not be empty at the root")
        elif isinstance(schema, Mapping) and schema.get("type") not in ("object", UNKNOWN):
            yield invalid(f"{path}.type", schema.get("type"), "must be object at the root")


@BOOK.rule("K8S-CRD-006", DEFINITION, source=_SOURCE)
def _spelt(inputs: Properties) -> Iterator[Violation]:
    """The group of a definition is a domain; the names of its kind and versions are DNS labels."""
    group, names = text(at(inputs, "spec.group")), mapping(at(inputs, "spec.names"))
    if group == "":
        yield required("spec.group")
    elif group and (wrong := grammar.subdomain(group)):
        yield invalid("spec.group", group, wrong)
    elif group and "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    found = [(f"spec.names.{key}", text(names.get(key)))
             for key in ("plural", "singular", "kind", "listKind")]  # fmt: skip
    for path, own in found:
        if own == "" and path in ("spec.names.plural", "spec.names.kind"):
            yield required(path)
        # Kinds may have capitals.
        elif own and (wrong := grammar.label_1035(own.lower() if path.lower().endswith("kind") else own)):
            yield invalid(path, own, wrong)
    others = [(f"spec.versions[{index}].name", text(row.get("name")))
              for index, row in rows(at(inputs, "spec.versions"))]  # fmt: skip
    for key in ("shortNames", "categories"):
        others += [(f"spec.names.{key}[{index}]", own) for index, own in texts(names.get(key))]
    for path, own in others:
        if own is not None and (wrong := grammar.label_1035(own)):
            yield invalid(path, own, wrong)
    if at(inputs, "spec.scope") not in (*_SCOPES, UNKNOWN):
        yield unsupported("spec.scope", at(inputs, "spec.scope"), _SCOPES)


@BOOK.rule_around("K8S-CRD-007", DEFINITION, source=_SOURCE)
def _stored_before(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """A version in which objects may have been stored remains in the definition."""
    before, versions = existing(world, inputs), at(inputs, "spec.versions")
    if before is None or unsure(versions):
        return
    names = [row.get("name") for _, row in rows(versions)]
    for _, row in rows(at(before.inputs, "spec.versions")):
        if row.get("storage") is True and row.get("name") not in names:
            own = row.get("name")
            detail = f"missing from spec.versions; {own} was previously a storage version"
            yield invalid("status.storedVersions", own, detail)


@BOOK.rule_around(
    "K8S-CRD-003",
    CUSTOM,
    source="kubernetes.io/docs/concepts/extend-kubernetes/api-extension/custom-resources",
)
def _served(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """A custom kind is served in the requested version, as far as the charts are known."""
    kind = parse(f"kubernetes:{inputs['apiVersion']}:{inputs['kind']}")
    crds = [crd for crd in world.crds() if (crd.group, crd.kind) == (kind.group, kind.kind)]
    if any(kind.version in crd.versions for crd in crds):
        return
    if not crds and any(chart is None for _, chart in world.releases()):
        return  # an unknown chart may bring it
    fix = "Install its CustomResourceDefinition, or the chart that brings it, and depend on that."
    served = sorted({version for crd in crds for version in crd.versions})
    if served:
        fix = f"The cluster serves it as {', '.join(f'{kind.group}/{version}' for version in served)}."
    message = f'no matches for kind "{kind.kind}" in version "{kind.api_version}".'
    yield Violation("kind", message, fix, "NoMatch")


@BOOK.rule_around("K8S-CRD-004", CUSTOM, source="kubernetes-sigs/kueue config/components/crd/bases (v0.19.2)")
def _fits(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """A custom object fits the schema of its definition."""
    found, created = definition(inputs, world), existing(world, inputs) is None
    for misfit in schema.misfits(found, inputs) if found is not None else ():
        # Kueue's webhook rewrites a new ClusterQueue with quantities of 0 where there are none; an
        # update is held against the schema before. source: pkg/webhooks/clusterqueue_webhook.go (v0.19.2)
        filled = created and inputs["kind"] == "ClusterQueue" and misfit.path.endswith(".nominalQuota")
        if not (filled and misfit.message == "Required value"):
            yield misfit


@BOOK.rule_around(
    "K8S-CRD-008",
    CUSTOM,
    source="kubernetes/kubernetes staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource",
)
def _hollow(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """A mapping with fields is not emptied: server-side apply would leave null."""
    before, found = existing(world, inputs), definition(inputs, world)
    for path in schema.hollow(found, before.inputs, inputs) if before and found else ():
        yield invalid(path, None, f"{path} in body must be of type object", "Leave it out, or keep a field.")


def definition(inputs: Mapping[str, Any], world: ClusterView) -> Mapping[str, Any] | None:
    """Schema of a custom object: from the cluster's own definitions, or the rehearsal's.

    None when it is unknown: then the object is not validated.
    """
    api_version, kind = str(inputs.get("apiVersion")), inputs.get("kind")
    group, _, version = api_version.rpartition("/")
    for record in objects(world, DEFINITION):
        spec = mapping(record.inputs.get("spec"))
        if (spec.get("group"), at(spec, "names.kind")) != (group, kind):
            continue
        for _, row in rows(spec.get("versions")):
            if row.get("name") == version:
                return mapping(at(row, "schema.openAPIV3Schema")) or None
    return schema.known().get(api_version, {}).get(str(kind))
