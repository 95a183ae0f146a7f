"""Readiness and liveness probes, performed on the pod's own address."""

import http.client
import socket
import time

from rehearsal.workloads.translate import Object


class Prober:
    """Performs the probes of one container when they are due; without a readiness probe it is ready at once.

    Until it is ready, `periodSeconds` counts as at most 0.2 s and `initialDelaySeconds` as at most 0.5 s:
    processes start here without pulling an image, so longer waits are useless.
    """

    def __init__(self, container: Object, address: str) -> None:
        self._readiness = container.get("readinessProbe")
        self._startup = container.get("startupProbe")
        self._liveness = container.get("livenessProbe")
        self._ports = {port.get("name"): int(port["containerPort"]) for port in container.get("ports") or ()}
        self._address = address
        self.problem = ""
        self._successes = self._failures = 0
        self._started = self._startup is None
        self._settled = False
        first = self._readiness or self._startup or {}
        self._next = time.monotonic() + min(float(first.get("initialDelaySeconds") or 0), 0.5)
        self._live_at = time.monotonic() + float((self._liveness or {}).get("initialDelaySeconds") or 0)
        self._dead = 0

    def due(self) -> bool:
        """Return whether a probe is due."""
        return time.monotonic() >= self._next

    def ready(self) -> bool:
        """Probe; returns whether the container counts as ready."""
        probe = self._startup if not self._started else self._readiness
        self._next = time.monotonic() + self._period(probe)
        if not self._started:
            self._started = self._probe(self._startup, "Startup")
            return False if not self._started else self._readiness is None
        if self._readiness is None:
            return True
        if self._probe(self._readiness, "Readiness"):
            self._successes, self._failures = self._successes + 1, 0
        else:
            self._successes, self._failures = 0, self._failures + 1
        if self._successes >= int(self._readiness.get("successThreshold") or 1):
            self._settled = True
        elif self._failures >= int(self._readiness.get("failureThreshold") or 3):
            self._settled = False
        return self._settled

    def is_dead(self) -> bool:
        """Return whether the liveness probe failed often enough for a restart; probes when due."""
        if self._liveness is None or not self._started or time.monotonic() < self._live_at:
            return False
        self._live_at = time.monotonic() + float(self._liveness.get("periodSeconds") or 10)
        self._dead = 0 if self._probe(self._liveness, "Liveness") else self._dead + 1
        return self._dead >= int(self._liveness.get("failureThreshold") or 3)

    def _period(self, probe: Object | None) -> float:
        period = float((probe or {}).get("periodSeconds") or 10)
        return period if self._settled else min(period, 0.2)

    def _probe(self, probe: Object | None, name: str) -> bool:
        assert probe is not None
        timeout = float(probe.get("timeoutSeconds") or 1)
        try:
            if probe.get("httpGet"):
                self._http(probe["httpGet"], timeout)
            elif probe.get("tcpSocket"):
                port = self._port(probe["tcpSocket"]["port"])
                socket.create_connection((self._address, port), timeout).close()
        except (OSError, http.client.HTTPException) as error:
            self.problem = f"{name} probe failed: {error}"
            return False
        self.problem = ""
        return True

    def _http(self, get: Object, timeout: float) -> None:
        port = self._port(get["port"])
        path = str(get.get("path") or "/")
        connection = http.client.HTTPConnection(str(get.get("host") or self._address), port, timeout=timeout)
        try:
            headers = {row["name"]: row["value"] for row in get.get("httpHeaders") or ()}
            connection.request("GET", path, headers={"User-Agent": "kube-probe/1.33", **headers})
            status = connection.getresponse().status
        finally:
            connection.close()
        if not 200 <= status < 400:
            raise http.client.HTTPException(f"HTTP probe failed with statuscode: {status}")

    def _port(self, port: str | int) -> int:
        return self._ports[port] if port in self._ports else int(port)
