"""Series of pairs of nodes as a run would deliver them."""

import itertools
import random
from collections.abc import Mapping
from typing import Any

from smoke_training.model import Cause, Check, Verdict
from smoke_training.statistics.links import Pair
from tests.smoke_training.samples import parsed, plan

VISITS = 8
SEGMENTS = 2200


def cell(pair: Pair, rate: float, seed: int, lost: float = 0.0, **changes: Any) -> dict[str, Any]:
    dice = random.Random(1000 * seed + 31 * pair[0] + pair[1])
    mean = SEGMENTS * lost
    again = [max(0, round(dice.gauss(mean, mean**0.5))) for _ in range(VISITS)]
    sent = [SEGMENTS * 1500] * VISITS
    return {
        "sender": pair[0],
        "receiver": pair[1],
        "gbit_s": [rate * dice.uniform(0.98, 1.0) for _ in range(VISITS)],
        "starved": [dice.uniform(0, 0.2) for _ in range(VISITS)],
        "segments": [SEGMENTS] * VISITS,
        "retransmitted": again,
        "spurious": [0] * VISITS,
        "sent_bytes": sent,
        "received_bytes": sent,
        **changes,
    }


def tournament(
    nodes: int,
    rates: Mapping[Pair, float] | None = None,
    lost: Mapping[Pair, float] | None = None,
    alone: Mapping[Pair, float] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """All pairs of a 1 Gb/s network; `rates`, `lost` and `alone` (serial visits) for the odd ones."""
    cells = []
    for pair in itertools.permutations(range(nodes), 2):
        serial = {} if pair not in (alone or {}) else {"serial_gbit_s": [(alone or {})[pair] * 0.99] * 10}
        rate = (rates or {}).get(pair, 0.957)
        cells.append(cell(pair, rate, nodes, (lost or {}).get(pair, 0.0), **serial))
    return {
        "kind": "tournament", "phase": "pairs", "nodes": list(range(nodes)), "interface": "eth0",
        "backend": "gloo", "streams": 1, "message_bytes": 1 << 20, "seconds": 3.0, "counter": "tcp",
        "cells": cells, "broken": [], **changes,
    }  # fmt: skip


def judge(rule: Any, *lines: dict[str, Any], **changes: Any) -> Check:
    wanted = {"nodes": 4, "rails": ["eth0"], "rail_gbit_s": 1.0, **changes}
    found = rule(plan(**wanted), parsed(list(lines)))
    assert isinstance(found, Check)
    if found.status is Verdict.FAIL:
        assert found.culprits
        assert found.next_action
    if found.status is not Verdict.PASS and found.status is not Verdict.SKIPPED:
        assert found.next_action
    return found


def accused(found: Check) -> list[tuple[str, str, Cause]]:
    return [(item.kind, item.id, item.cause) for item in found.culprits]


def line(node: int, nodes: int, value: float, sends: bool = True) -> dict[Pair, float]:
    others = [other for other in range(nodes) if other != node]
    return {(node, other) if sends else (other, node): value for other in others}
