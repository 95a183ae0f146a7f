"""Pods that holders of GPUs had before; standard library only.

A member can replace the pods of a job again and again, and each new pod looks as if it were still starting.
"""

from collections.abc import Iterable
from dataclasses import replace

from agents.idle_gpus.holders import GpuPod, Holder


class PodHistory:
    """Pods of holders within a time; a program that starts anew knows only those that exist."""

    def __init__(self, kept_s: float) -> None:
        self._kept_s = kept_s
        self._seen: dict[tuple[str, str, str], dict[str, tuple[float, int, GpuPod]]] = {}
        """By holder, and by UID of the pod: when it was last seen, and the GPUs of the holder then."""
        self._stopped: dict[str, float] = {}
        """UIDs of pods that were stopped, and when: they are no past of what is started again."""

    def complete(self, found: Iterable[Holder], now: float) -> list[Holder]:
        """Add to holders the pods that they had before."""
        present = [*found]
        for holder in present:
            gpus = sum(pod.gpus for pod in holder.pods)
            rows = self._seen.setdefault(_key(holder), {})
            rows |= {pod.uid: (now, gpus, pod) for pod in holder.pods}
        self._stopped = {uid: at for uid, at in self._stopped.items() if now - at <= 2 * self._kept_s}
        for key, rows in [*self._seen.items()]:
            self._seen[key] = {uid: row for uid, row in rows.items() if now - row[0] <= self._kept_s}
            if not self._seen[key]:
                del self._seen[key]
        return [self._with_gone(holder) for holder in present]

    def withdraw(self, holder: Holder) -> None:
        """Forget the announcements to pods that are gone."""
        rows = self._seen.get(_key(holder), {})
        for uid, (at, gpus, pod) in rows.items():
            rows[uid] = at, gpus, replace(pod, stop_at=None)

    def stopped(self, holder: Holder, now: float) -> None:
        """Take the pods of a holder, also those that are gone, out of its past."""
        self._stopped |= {pod.uid: now for pod in (*holder.pods, *holder.gone)}

    def _with_gone(self, holder: Holder) -> Holder:
        rows = self._seen[_key(holder)]
        current = {pod.uid for pod in holder.pods}
        past = {uid: row for uid, row in rows.items() if uid in current or uid not in self._stopped}
        gone = tuple(pod for uid, (_, _, pod) in past.items() if uid not in current)
        return replace(holder, gone=gone, most_gpus=max(gpus for _, gpus, _ in past.values()))


def _key(holder: Holder) -> tuple[str, str, str]:
    return holder.namespace, holder.kind, holder.uid or holder.name
