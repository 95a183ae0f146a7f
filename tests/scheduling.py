"""The distribution of files to the workers of xdist."""

from pathlib import Path

from typing_extensions import override
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_WAITING = str(Path("tests", "cluster")) + "/"
# Two workers: each has a control plane of its own, whose start and idling cost a minute of processor time.
_WAITERS = 2


class Files(LoadFileScheduling):  # type: ignore[misc]  # xdist has no type hints
    """Files in order, those with a real control plane by two workers, while others have what computes.

    Tests of a control plane wait: three workers that began with them left a third of the processors idle.
    """

    @override
    def _assign_work_unit(self, node: WorkerController) -> None:
        waits = node in self.nodes[:_WAITERS]
        mine = (file for file in self.workqueue if file.startswith(_WAITING) == waits)
        self.workqueue.move_to_end(next(mine, next(iter(self.workqueue))), last=False)
        super()._assign_work_unit(node)
