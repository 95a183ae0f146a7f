"""`kubectl exec` into login pods of slurm-operator: a script runs in the real Slurm behind the objects.

The daemon accepts requests of its user alone, who has the access entry of the deployer; rights to `pods/exec`
are not emulated.
"""

from collections.abc import Sequence
from typing import Final

from infra.engine.golang import SetupError
from rehearsal.core.model import RefusalError
from rehearsal.dataplane.gcp.http import Answer, ApiCall, Method
from rehearsal.kubectl import PATH
from rehearsal.slurm.slinky import SlinkyClusters

_PLACE: Final = ["--namespace", "slurm", "exec", "-i", "deployment/login", "-c", "login", "--", "bash", "-s"]


class LoginPods:
    """See `http.Api`."""

    def __init__(self, clusters: SlinkyClusters) -> None:
        self._clusters = clusters

    def methods(self) -> Sequence[Method]:
        """See `http.Api`."""
        return (Method("POST", PATH, self._run),)

    def _run(self, call: ApiCall) -> Answer:
        words, text = [str(one) for one in call.body["words"]], str(call.body["input"])
        if words != _PLACE:
            return _answer(errors=f"error: kubectl {' '.join(words)} is not emulated", code=2)
        try:
            code, output = self._clusters.run(str(call.body["kubeconfig"]), text)
        except RefusalError as error:
            return _answer(errors=f"error: {error}", code=1)
        except SetupError as error:
            why = f"this rehearsal has no Slurm to run on ({error}); scripts of the login pod cannot run"
            return _answer(errors=why, code=1)
        return _answer(output, code=code)


def _answer(output: str = "", *, errors: str = "", code: int = 0) -> Answer:
    return {"output": output, "errors": errors, "code": code}
