"""The emulation's response to a sequence, through the provider's requests: Check, then Create or Update."""

import re

from rehearsal.core.model import CheckFailure, InitFailedError, Properties, RefusalError
from rehearsal.kubernetes.kinds import HELM_RELEASE, parse
from rehearsal.kubernetes.rules.book import NAMESPACE
from tests.cluster.differential.corpus import Sequence, Step
from tests.cluster.differential.verdicts import ACCEPTED, Verdict, fields
from tests.rehearsal.kubernetes.harness import Rehearsed, kubeconfig

_RULE = re.compile(r"\((K8S-[A-Z]+-\d+)\)(?:, |\]|$|\.)")
_ENDPOINT = "https://differential.example"
_CLUSTER = "aws:eks/cluster:Cluster"


class Emulation:
    """Runs sequences, each in a cluster of its own, without waiting."""

    def __init__(self, rehearsed: Rehearsed, version: str) -> None:
        self._rehearsed, self._version, self._made = rehearsed, version, 0
        rehearsed.cancelled.set()
        rehearsed.config["kubeconfig"] = kubeconfig(_ENDPOINT)

    def answer(self, sequence: Sequence) -> list[Verdict]:
        """The response to each step. Raises AssertionError when the world is not accepted."""
        self._made += 1
        name, version = f"c{self._made}", {"version": self._version}
        arn = f"arn:aws:eks:eu-central-1:123456789012:cluster/{name}"
        outputs = {"name": name, "arn": arn, "endpoint": _ENDPOINT, **version}
        cluster = self._rehearsed.aws(_CLUSTER, name, {"name": name, **version}, outputs)
        try:
            return self._answer(sequence, arn)
        finally:
            self._rehearsed.state.remove(cluster)

    def _answer(self, sequence: Sequence, arn: str) -> list[Verdict]:
        ids: dict[tuple[str, str, str], tuple[str, Properties]] = {}
        spaces = [Step("create", NAMESPACE, {"metadata": {"name": "lab"}})]
        if any(
            token == NAMESPACE and inputs["metadata"]["name"] == "lab" for token, inputs in sequence.world
        ):
            spaces = []
        for step in (*spaces, *(Step("create", token, inputs) for token, inputs in sequence.world)):
            if step.token == HELM_RELEASE:
                self._installed(arn, step.inputs)
                continue
            verdict = self._ask(step, ids)
            assert verdict.accepted, f"{sequence.name}: the emulation refuses the world: {verdict}"
        return [self._ask(step, ids) for step in sequence.steps]

    def _installed(self, scope: str, inputs: Properties) -> None:
        name = str(inputs["name"])
        self._rehearsed.state.insert(
            package="kubernetes", type=HELM_RELEASE, scope=scope, id=f"kueue-system/{name}", urn=name,
            name=name, inputs=inputs, outputs={**inputs, "metadata": {}},
        )  # fmt: skip

    def _ask(self, step: Step, ids: dict[tuple[str, str, str], tuple[str, Properties]]) -> Verdict:
        metadata = step.inputs.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        key = (step.token, str(metadata.get("namespace")), str(metadata.get("name")))
        # Two resources of a program may ask for the same object.
        call = self._rehearsed.call(step.token, f"{key}-{len(ids)}")
        cloud = self._rehearsed.cloud
        try:
            if step.verb == "delete":
                if key in ids:
                    cloud.delete(call, *ids[key])
                return ACCEPTED
            checked, failures = cloud.check(call, None, step.inputs)
            if failures:
                return _failed(failures)
            if step.verb == "create":
                ids[key] = cloud.create(call, checked, preview=False)
            else:
                own, outputs = ids[key]
                ids[key] = own, cloud.update(call, own, outputs, checked, preview=False)
        except InitFailedError as error:
            # It exists. Whether it is ready is another question; whether an update was refused is this one.
            ids[key] = error.id, error.outputs
            if isinstance(error.__cause__, RefusalError):
                return _refused(step, error.__cause__)
        except RefusalError as error:
            return _refused(step, error)
        return ACCEPTED


def _failed(failures: list[CheckFailure]) -> Verdict:
    paths = fields(failure.property for failure in failures)
    text = "; ".join(f"{failure.property}: {failure.reason}" for failure in failures)
    missing = fields(failure.property for failure in failures if failure.reason.endswith("is missing"))
    return Verdict(False, "Invalid", paths, True, text, missing)


def _refused(step: Step, error: RefusalError) -> Verdict:
    paths: frozenset[str] = frozenset()
    if error.code == "Invalid":
        listed = error.message.partition(" is invalid: ")[2].lstrip("[")
        parts = [part for part in _RULE.split(listed)[::2] if part]
        paths = fields(part.partition(": ")[0] for part in parts)
    return Verdict(False, error.code, paths, bool(paths), error.message)


def foreseen(step: Step, verdict: Verdict) -> bool:
    """Whether an error is about the pods that an accepted object will never get."""
    kind = parse(step.token).kind
    return verdict.reason == "Forbidden" and verdict.text.startswith('pods "') and kind != "Pod"
