"""Real process groups on loopback: sweeps, contents, and who corrupted them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smoke_training.formulae.bandwidth import COLLECTIVES

pytestmark = pytest.mark.alone

REPOSITORY = Path(__file__).resolve().parents[4]
RANKS = 3

# Checks the contents of every collective, first untouched, then with one word of what rank 1 sends altered.
CORRUPTED = """
import json, sys
from dataclasses import asdict
from smoke_training.probes.group import join, leave
from smoke_training.probes.network import operations, payloads

group = join(60, "cpu")
found = []
def tampered(original, mine):
    def call(*tensors):
        sent = tensors[-1]
        if group.rank == 1:
            sent[sent.numel() // 2] ^= 5 << 20
        original(*tensors)
    return call
for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
    found.append(asdict(payloads.check(group, name, (1024, 4096))))
    original = operations.CALLS[name]
    operations.CALLS[name] = tampered(original, group.rank)
    found.append(asdict(payloads.check(group, name, (1024, 65536))))
    operations.CALLS[name] = original
def large_only(*tensors):
    if tensors[-1].numel() * 8 > 8 << 20 and group.rank == 1:
        tensors[-1][-1] ^= 1 << 7
    original(*tensors)
original = operations.CALLS["all_reduce"]
operations.CALLS["all_reduce"] = large_only
found.append(asdict(payloads.check(group, "all_reduce", (1024, 12 << 20))))
operations.CALLS["all_reduce"] = original
bench = operations.Bench(group, "all_reduce", 4096)
def refused(size):
    raise RuntimeError("Backend gloo does not support reduce_scatter")
bench.operation = refused
missing = bench.missing(4096)
if group.rank == 0:
    print("FOUND", json.dumps([found, missing]), flush=True)
leave()
"""


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "SMOKE_DEVICE": "cpu"}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Any], str]]:
    script = tmp_path_factory.mktemp("group") / "script.py"
    script.write_text(CORRUPTED)
    done = ran("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}", str(script))
    line = next((line for line in done.stdout.splitlines() if line.startswith("FOUND ")), None)
    assert line is not None, done.stdout + done.stderr
    yield json.loads(line.removeprefix("FOUND "))


@pytest.mark.parametrize("name", COLLECTIVES)
def test_untouched_contents_are_right(checked: tuple[list[Any], str], name: str) -> None:
    clean = checked[0][2 * COLLECTIVES.index(name)]
    assert (clean["name"], clean["wrong"], clean["sizes"]) == (name, [], [1024, 4096])
    words = RANKS * (42 + 170)  # 1024 and 4096 bytes are 42 and 170 words of 8 bytes per rank
    assert clean["elements"] == words * (1 if name == "reduce_scatter" else RANKS)


def test_an_error_that_only_large_messages_have_is_found_and_its_rank_named(
    checked: tuple[list[Any], str],
) -> None:
    large = checked[0][-1]
    assert large["sizes"] == [1024, 12 << 20]
    assert {item["size"] for item in large["wrong"]} == {12 << 20}
    assert [item["accused"] for item in large["wrong"]] == [[1]] * RANKS


@pytest.mark.parametrize("name", COLLECTIVES)
def test_one_altered_word_names_its_sender_and_chunk(checked: tuple[list[Any], str], name: str) -> None:
    bad = checked[0][2 * COLLECTIVES.index(name) + 1]["wrong"]
    assert {item["size"] for item in bad} == {1024, 65536}
    assert all(item["elements"] == 1 and item["accused"] == [1] for item in bad)
    receivers = {item["rank"] for item in bad}
    if name in ("all_reduce", "all_gather"):
        assert receivers == {0, 1, 2}, "everybody receives what rank 1 spoilt"
    else:
        assert receivers == {1}, "the middle of what a rank sends goes to the rank in the middle"
    assert all(item["chunks"] == [1] for item in bad)


def test_a_backend_that_lacks_a_collective_says_so_by_name(checked: tuple[list[Any], str]) -> None:
    assert "gloo of torch" in checked[1]
    assert "has no all_reduce: Backend gloo does not support" in checked[1]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("run") / "result.json"
    done = ran("-m", "smoke_training", "run", "--ranks", "4", "--only", "collectives", "--out", str(out))
    assert out.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def test_all_collectives_are_swept_and_right(result: dict[str, Any]) -> None:
    checks = {item["id"]: item for item in result["checks"]}
    assert checks["collective.payload"]["status"] == "PASS"
    for name in COLLECTIVES:
        found = checks[f"collective.{name}"]
        assert (found["status"], found["required"]) == ("SKIPPED", False), found["message"]
        detail = found["measured"]["detail"]
        sizes = [row["size_bytes"] for row in detail["sweep"]]
        assert sizes == sorted(sizes)
        assert len(sizes) >= 2
        assert all(row["n"] >= 12 and row["busbw_gb_s"] > 0 for row in detail["sweep"])
        assert detail["latency_us"] is not None
        # Loopback has no wire, so there is no expectation; the reason states it.
        assert found["expected"]["kind"] == "unknown" and found["expected"]["reason"]
    assert result["verdict"] == "PASS"
