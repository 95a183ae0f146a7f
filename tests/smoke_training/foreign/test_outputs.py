"""Published outputs of nccl-tests, whole files with their source in the first line, and what they are judged."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from smoke_training import cli
from smoke_training.model import EXIT_CODES, Verdict

OUTPUTS = Path(__file__).parent / "outputs"
PASS, FAIL, OPEN, REFUSED = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.ERROR
Judge = Callable[..., tuple[Verdict, str]]
HGX = "hgx-h100"


@pytest.fixture
def judge(capsys: pytest.CaptureFixture[str]) -> Judge:
    def run(path: Path | str, *words: str) -> tuple[Verdict, str]:
        code = cli.main(["judge", "--nccl-tests", str(path), *words])
        out, error = capsys.readouterr()
        return next(verdict for verdict, known in EXIT_CODES.items() if known == code), out + error

    return run


@pytest.mark.parametrize(
    ("number", "machine", "nodes", "expected"),
    [
        ("01", "p5.48xlarge", 2, (PASS, "7 of 32 sizes")),
        ("01", "P5.48xlarge", None, (PASS, "16 ranks on 2 nodes, inferred from the bus factor")),
        ("03", "p5.48xlarge", 1, (PASS, "8 ranks")),
        ("03", "p5.48xlarge", 2, (REFUSED, "busbw is 1.75")),  # the bus factor of 8 ranks
        ("04", "a4-highgpu-8g", 2, (PASS, "16 ranks")),
        ("05", "a3-highgpu-8g", 2, (OPEN, "512 MiB 49.9 INCONCLUSIVE")),
        ("07", HGX, 2, (PASS, "16 ranks")),
        ("08", "a3-megagpu-8g", 2, (PASS, "all-gather")),
        ("10", "Standard_ND96amsr_A100_v4", 2, (PASS, "not verified")),
        ("10", "STANDARD_nd96amsr_a100_V4", 2, (PASS, "not verified")),
        ("11", "hgx-a100", None, (PASS, "8 ranks on 1 node, by its own lines")),
        ("12", HGX, None, (PASS, "2 nodes, by its own lines")),
        ("12", HGX, 4, (REFUSED, "ranks run on 2 nodes, --nodes is 4")),
        ("14", HGX, None, (OPEN, "NCCL_MIN_CTAS=24")),  # default settings, which the output does not say
        ("15", HGX, 8, (PASS, "64 ranks")),
        ("18", HGX, 2, (REFUSED, "one rank to a world")),
        ("19", HGX, 2, (PASS, "16 ranks")),
        ("22", HGX, None, (FAIL, "256 MiB 163.8 FAIL")),  # its peak is healthy
        ("23", None, None, (OPEN, "no_reference")),
        ("23", "hgx-h100", None, (REFUSED, "'NVIDIA RTX 6000D'; --machine hgx-h100 has H100")),
        ("24", None, None, (FAIL, "from 512 MiB on the rate falls")),
        ("26", "BM.GPU.H100.8", 2, (PASS, "5 of 5 sizes")),
        ("29", "p5.48xlarge", 2, (REFUSED, "RCCL")),
        ("30", "p4d.24xlarge", 1, (PASS, "3 rows contradict 8 ranks")),
        ("30", "p4d.24xlarge", 2, (OPEN, "57.1")),
        ("30", "p4d.24xlarge", 5, (REFUSED, "not of 40 ranks")),
        ("31", HGX, 2, (REFUSED, "several worlds")),
        ("32", HGX, 2, (REFUSED, "no table")),
    ],
)
def test_every_published_file_has_its_verdict(
    judge: Judge, number: str, machine: str | None, nodes: int | None, expected: tuple[Verdict, str]
) -> None:
    path = next(OUTPUTS.glob(f"{number}-*.txt"))
    words = ["--machine", machine] if machine else []
    found, text = judge(path, *words, *(["--nodes", str(nodes)] if nodes else []))
    assert found is expected[0], text
    assert expected[1] in text


def entries(text: str) -> list[dict[str, str]]:
    """Entries as `gcloud logging read --format=json` prints them."""
    times = (f"2026-11-28T10:00:00.{n:06}Z" for n in range(10**6))
    return [{"textPayload": row, "timestamp": at} for row, at in zip(text.splitlines(), times, strict=False)]


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "".join(f"2026-11-28T10:00:00.123456789Z {line}\n" for line in text.splitlines()),
        lambda text: "".join(f"\x1b[32m[1,0]<stdout>:{line}\x1b[0m\n" for line in text.splitlines()),
        lambda text: "".join(f"worker-0: | {'  '.join(line.split())} |\n" for line in text.splitlines()),
        lambda text: text.replace("12.90    0.00", "12,90    0,00").replace(
            "15791  271.98", "15,791  271.98"
        ),
        lambda text: text + "\xff\x00 not a line",
        lambda text: "".join(
            json.dumps({"jsonPayload": {"message": line}}) + "\n" for line in text.splitlines()
        ),
        lambda text: json.dumps(entries(text)[::-1]),
        lambda text: json.dumps(entries(text), indent=2),
    ],
    ids=["CRLF", "timestamps", "colours", "table", "commas", "binary", "jsonPayload", "array", "pretty"],
)
def test_what_launchers_and_collectors_add_changes_no_verdict(
    judge: Judge, tmp_path: Path, changed: Callable[[str], str]
) -> None:
    text = next(OUTPUTS.glob("03-*.txt")).read_text()
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(changed(text).encode("latin-1")))
    found, said = judge(path, "--machine", "p5.48xlarge", "--nodes", "1")
    assert found is PASS, said
    assert "7 of 32 sizes" in said


def test_a_file_that_powershell_wrote_is_read(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(next(OUTPUTS.glob("03-*.txt")).read_text().encode("utf-16"))
    found, said = judge(path, "--machine", "p5.48xlarge", "--nodes", "1")
    assert found is PASS and "7 of 32 sizes" in said, said


def test_a_cut_file_is_judged_by_what_is_there_and_says_so(judge: Judge, tmp_path: Path) -> None:
    text = next(OUTPUTS.glob("03-*.txt")).read_text()
    path = tmp_path / "cut.txt"
    path.write_text(text[: text.index("276.03")])
    found, said = judge(path, "--machine", "p5.48xlarge", "--nodes", "1")
    assert found is OPEN, said
    assert "the last whole row is of 8 GiB" in said and "the file is cut" in said and "1 rows are cut" in said


def test_a_contradicting_row_is_named_and_leaves_the_rest_in_doubt(judge: Judge, tmp_path: Path) -> None:
    text = next(OUTPUTS.glob("01-*.txt")).read_text()
    path = tmp_path / "edited.txt"
    path.write_text(text.replace("255.62  479.28", "255.62  497.28"))
    found, said = judge(path, "--machine", "p5.48xlarge", "--nodes", "2")
    assert found is OPEN, said
    assert "8 GiB, time 33605 us, algbw 255.62, busbw 497.28" in said


def test_every_size_is_judged_not_the_peak(judge: Judge, tmp_path: Path) -> None:
    text = next(OUTPUTS.glob("01-*.txt")).read_text()
    path = tmp_path / "hole.txt"
    slow = "5118.4  104.89  196.67      0   5109.8  105.07  197.00"
    path.write_text(text.replace("2559.2  209.78  393.34      0   2554.9  210.14  394.00", slow))
    found, said = judge(path, "--machine", "p5.48xlarge", "--nodes", "2")
    assert found is FAIL, said
    assert "all-reduce of 536870912 bytes" in said


def test_wrong_elements_fail(judge: Judge, tmp_path: Path) -> None:
    text = next(OUTPUTS.glob("01-*.txt")).read_text()
    path = tmp_path / "wrong.txt"
    path.write_text(text.replace("487.09      0", "487.09     17"))
    found, said = judge(path, "--machine", "p5.48xlarge", "--nodes", "2")
    assert found is FAIL and "17 wrong elements of 16 GiB" in said


def test_a_node_of_another_type_is_named(judge: Judge, tmp_path: Path) -> None:
    lines = next(OUTPUTS.glob("14-*.txt")).read_text().splitlines()
    path = tmp_path / "mixed.txt"
    path.write_text("\n".join(x.replace("H100", "H200") if "on     node-c" in x else x for x in lines))
    found, said = judge(path, "--machine", HGX)
    assert found is FAIL and "node node-c" in said and "H200" in said


@pytest.mark.parametrize("machine", ["p5.48xlarg", "my-cluster"])
def test_an_unknown_machine_is_undecided_by_name(judge: Judge, machine: str) -> None:
    found, said = judge(next(OUTPUTS.glob("01-*.txt")), "--machine", machine, "--nodes", "2")
    assert found is OPEN and f"no machine type '{machine}'" in said
    assert ("p5.48xlarge" in said) is (machine == "p5.48xlarg")
    assert "smoke accept" not in said, "there is no result that it could take"


@pytest.mark.parametrize(
    ("machine", "more", "named"),
    [
        ("p5.48xlarg", (), "p5.48xlarge"),
        ("my-cluster", (), "no machine type 'my-cluster'"),
        ("p5.48xlarge", ("--fabric", "infiniband"), "p5.48xlarge over efa, not over infiniband"),
    ],
)
def test_where_no_line_names_the_ranks_the_machine_is_named_and_not_the_ranks(
    judge: Judge, machine: str, more: tuple[str, ...], named: str
) -> None:
    found, said = judge(next(OUTPUTS.glob("01-*.txt")), "--machine", machine, *more)
    assert found in (OPEN, REFUSED) and named in said


def test_a_large_log_is_read_in_constant_memory(judge: Judge, tmp_path: Path) -> None:
    noise = "node-a:29250:29311 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n" * 1000
    text = next(OUTPUTS.glob("01-*.txt")).read_text()
    path = tmp_path / "large.txt"
    with path.open("w") as stream:
        for _ in range(60):  # 5 MB
            stream.write(noise)
        stream.write("x" * 3_000_000 + "\n" + text)
    tracemalloc.start()
    found, said = judge(path, "--machine", "p5.48xlarge", "--nodes", "2")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is PASS, said
    assert peak < 8_000_000


def test_an_unknown_network_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["judge", "--nccl-tests", "-", "--fabric", "bogus"])
    assert end.value.code == EXIT_CODES[REFUSED]
    error = capsys.readouterr().err.splitlines()[-1]
    assert all(name in error for name in ("'bogus'", "efa", "infiniband"))


def test_a_network_has_its_earlier_name_too(judge: Judge) -> None:
    found, said = judge(next(OUTPUTS.glob("12-*.txt")), "--machine", HGX, "--fabric", "ib")
    assert found is PASS and "infiniband" in said
