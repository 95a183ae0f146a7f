"""Malformed tables fail loudly, all rows at once, naming file, row and field."""

import shutil
from pathlib import Path

import pytest

from infra.catalog import tables
from infra.catalog.aws.catalog import AwsCatalog
from infra.catalog.tables import CatalogError

SOURCE = '[sources.doc]\ntext = "a document"\ndate = 2026-01-02\n'
QUOTA = '[[quota]]\nkey = "k"\nservice = "ec2"\ndescription = "d"\nvalue = 1\nunit = "u"\nsource = "doc"\n'


def quotas(folder: Path, text: str) -> AwsCatalog:
    (folder / "quotas.toml").write_text(text)
    return AwsCatalog(folder)


def complaint(book: AwsCatalog) -> str:
    with pytest.raises(CatalogError) as caught:
        _ = book.quotas
    return str(caught.value)


def test_well_formed_row_carries_text_and_day_of_its_source(tmp_path: Path) -> None:
    row = quotas(tmp_path, SOURCE + QUOTA).quotas["k"]
    assert (row.source, row.date.isoformat(), row.dated) == ("a document", "2026-01-02", "by source")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SOURCE + QUOTA.replace('source = "doc"\n', ""), "quotas.toml [[quota]] 1: "),
        (SOURCE + QUOTA.replace('"doc"', '"gossip"'), "source 'gossip'"),
        (SOURCE.replace("date = 2026-01-02\n", "") + QUOTA, "[[quota]] 1: date: "),
        (SOURCE.replace('text = "a document"\n', "") + QUOTA, "[[quota]] 1: source: "),
        (SOURCE.replace("2026-01-02", '"yesterday"') + QUOTA, "[[quota]] 1: date: "),
        (SOURCE + 'colour = "red"\n' + QUOTA, "keys: colour"),
        (SOURCE + QUOTA + "date = 2026-01-02\n", "to the source"),
        (SOURCE + "good_for_days = 9\n" + QUOTA, "good_for_days: "),
        (SOURCE + QUOTA.replace("value = 1", 'value = "1"'), "[[quota]] 1: value: "),
        (SOURCE + QUOTA.replace("value = 1", "value = -1"), "[[quota]] 1: value: "),
        (SOURCE + QUOTA + "colour = 1\n", "[[quota]] 1: colour: "),
        (SOURCE + QUOTA.replace('unit = "u"', 'unit = ""'), "[[quota]] 1: unit: "),
        (SOURCE + QUOTA + QUOTA, "'k' is listed twice"),
        (SOURCE, "no [[quota]] rows"),
        (SOURCE + "[[quota]\n", "is not TOML"),
    ],
)
def test_malformed_table_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in complaint(quotas(tmp_path, text))


def test_all_bad_rows_are_reported_at_once(tmp_path: Path) -> None:
    bad = QUOTA.replace("value = 1", "value = -1")
    reported = complaint(quotas(tmp_path, SOURCE + bad + QUOTA + bad.replace('"k"', '""')))
    assert "[[quota]] 1: value" in reported
    assert "[[quota]] 2" not in reported
    assert "[[quota]] 3: value" in reported
    assert "[[quota]] 3: key" in reported


def edited(folder: Path, name: str, old: str, new: str) -> AwsCatalog:
    """The shipped tables with one edit."""
    shutil.copytree(Path(tables.__file__).parent / "aws/tables", folder / "aws")
    path = folder / "aws" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return AwsCatalog(folder / "aws")


@pytest.mark.parametrize(
    ("table", "old", "new", "words"),
    [
        ("instance_types", 'accelerator = "t4"', 'accelerator = "t5"', "g4dn.xlarge: .*'t5'"),
        ("instance_types", "cards = [1, 31]", "cards = [1, 32]", "beyond the 32"),
        ("instance_types", "cards = [1, 31]", "cards = [0, 31]", "two EFA devices"),
        ("instance_types", "cards = [1, 31]", "cards = [0, 30]", "two EFA devices"),
        (
            "instance_types",
            'device = 0, type = "efa" }',
            'device = 0, type = "efa-only" }',
            "card 0, device 0",
        ),
        (
            "instance_types",
            'device = 0, type = "efa" }',
            'device = 0, type = "rdma" }',
            "'efa' or 'efa-only'",
        ),
        ("instance_types", "cards = [0, 0], device", "card = [0, 0], device", "cards"),
        ("instance_types", "accelerator_count = 4", "accelerator_count = 0", "accelerator_count"),
        ("prices", "usd_per_hour_min = 0.526", "usd_per_hour_min = 0.0", "usd_per_hour_min"),
        ("prices", "usd_per_hour_min = 0.526", "usd_per_hour_min = 9.9", "expected <= max"),
        ("prices", "usd_per_hour_max = 0.526", "usd_per_hour_max = inf", "usd_per_hour_max"),
        ("prices", 'capacity = "on_demand"', 'capacity = "free"', "capacity"),
        ("eks", 'service_account = "aws-node", ', "", r"identities\.0\.service_account: Field required"),
        ("durations", "seconds = [447,", "seconds = [-447,", r"seconds\.0: "),
        ("durations", "seconds = [84]", "seconds = []", "seconds: "),
        ("durations", '"kube-proxy"', '"vpc-cni"', "listed twice"),
        ("service_prices", 'unit = "ACU-hour"\n', "", "unit: Field required"),
        ("service_prices", "[service_price.usd]\n", "usd = 0.1\n[service_price.us]\n", "usd is not a table"),
        ("service_prices", "af-south-1 = 0.1047", "af-south-1 = 0.0", "usd: "),
        ("service_prices", "good_for_days = 180\n", "", "good_for_days: Field required"),
        ("service_prices", "good_for_days = 180\n", "good_for_days = 0\n", "good_for_days: "),
        ("service_prices", 'key = "ebs_gp3"', 'key = "nat_gateway"', "listed twice"),
    ],
)
def test_an_impossible_row_is_refused(tmp_path: Path, table: str, old: str, new: str, words: str) -> None:
    book = edited(tmp_path, f"{table}.toml", old, new)
    with pytest.raises(CatalogError, match=words):
        getattr(book, table)
