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
    ("old", "new", "words"),
    [
        ('accelerator = "t4"', 'accelerator = "t5"', "g4dn.xlarge: no accelerator 't5'"),
        ("cards = [1, 31]", "cards = [1, 32]", "names a card beyond the 32 of this type"),
        ("cards = [1, 31]", "cards = [0, 31]", "carries two EFA devices"),
        ("cards = [1, 31]", "cards = [0, 30]", "carries two EFA devices"),
        ('device = 0, type = "efa" }', 'device = 0, type = "efa-only" }', "must be card 0, device 0"),
        ('device = 0, type = "efa" }', 'device = 0, type = "rdma" }', "'interface', 'efa' or 'efa-only'"),
        ("cards = [0, 0], device", "card = [0, 0], device", "cards"),
        ("accelerator_count = 4", "accelerator_count = 0", "accelerator_count"),
    ],
)
def test_impossible_machine_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    book = edited(tmp_path, "instance_types.toml", old, new)
    with pytest.raises(CatalogError, match=words):
        _ = book.instance_types


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("usd_per_hour_min = 0.526", "usd_per_hour_min = 0.0", "usd_per_hour_min"),
        ("usd_per_hour_min = 0.526", "usd_per_hour_min = 9.9", "min <= expected <= max"),
        ("usd_per_hour_max = 0.526", "usd_per_hour_max = inf", "usd_per_hour_max"),
        ('capacity = "on_demand"', 'capacity = "free"', "capacity"),
    ],
)
def test_impossible_price_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    book = edited(tmp_path, "prices.toml", old, new)
    with pytest.raises(CatalogError, match=words):
        _ = book.prices


def test_addon_with_policies_but_no_account_is_refused(tmp_path: Path) -> None:
    book = edited(tmp_path, "eks.toml", 'service_account = "aws-node", ', "")
    with pytest.raises(CatalogError, match=r"identities\.0\.service_account: Field required"):
        _ = book.eks


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seconds = [447,", "seconds = [-447,", r"seconds\.0: "),
        ("seconds = [84]", "seconds = []", "seconds: "),
        ('"kube-proxy"', '"vpc-cni"', "listed twice"),
    ],
)
def test_impossible_duration_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    book = edited(tmp_path, "durations.toml", old, new)
    with pytest.raises(CatalogError, match=words):
        _ = book.durations


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('unit = "ACU-hour"\n', "", "unit: Field required"),
        (
            "[service_price.usd]\n",
            "usd = 0.1\n[service_price.us]\n",
            "usd is not a table of dollars by region",
        ),
        ("af-south-1 = 0.1047", "af-south-1 = 0.0", "usd: Input should be greater than 0"),
        ("good_for_days = 180\n", "", "good_for_days: Field required"),
        ("good_for_days = 180\n", "good_for_days = 0\n", "good_for_days: Input should be greater than"),
        ('key = "ebs_gp3"', 'key = "nat_gateway"', "listed twice"),
    ],
)
def test_impossible_service_price_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    book = edited(tmp_path, "service_prices.toml", old, new)
    with pytest.raises(CatalogError, match=words):
        _ = book.service_prices
