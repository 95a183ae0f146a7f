"""Policies of the API server for objects that users create (admissionregistration.k8s.io/v1)."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pulumi

from components.base import Component, Options
from components.kubernetes.manifest import Manifest
from components.ordering import after


class AdmissionPoliciesArgs(TypedDict):
    """Arguments of `AdmissionPolicies`."""

    objects: Sequence[Mapping[str, Any]]
    """ValidatingAdmissionPolicies, and ValidatingAdmissionPolicyBindings of these."""


class AdmissionPolicies(Component):
    """Policies with their bindings; a binding comes after all policies.

    API servers apply a policy a moment after its creation: objects under it must be created well after this.
    """

    policies: pulumi.Output[list[str]]
    """Names of the policies; dependents come after they are in force."""

    def __init__(self, name: str, args: AdmissionPoliciesArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        policies = [body for body in args["objects"] if body["kind"] == "ValidatingAdmissionPolicy"]
        bindings = [body for body in args["objects"] if body not in policies]
        made = [Manifest(_called(name, body), body, self.child()) for body in policies]
        bound = self.child(pulumi.ResourceOptions(depends_on=made))
        made += [Manifest(_called(name, body), body, bound) for body in bindings]
        names = [body["metadata"]["name"] for body in policies]
        self.policies = after(pulumi.Output.from_input(names), made)
        self.register_declared()


def _called(name: str, body: Mapping[str, Any]) -> str:
    part = "binding" if body["kind"].endswith("Binding") else "policy"
    return f"{name}-{body['metadata']['name']}-{part}"
