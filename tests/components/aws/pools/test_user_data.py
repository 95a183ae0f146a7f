import base64
from email import message_from_string
from email.message import Message

import yaml

from components.aws.pools.user_data import encoded, node_user_data


def parts(text: str | None) -> dict[str, str]:
    assert text is not None
    message = message_from_string(text)
    assert message.is_multipart()
    assert not message.defects
    found: dict[str, str] = {}
    for part in message.walk():
        assert isinstance(part, Message)
        if not part.is_multipart():
            found[part.get_content_type()] = str(part.get_payload())
    return found


def test_local_disks_become_one_striped_volume() -> None:
    found = parts(node_user_data(local_nvme=True, huge_pages=0))
    config = yaml.safe_load(found["application/node.eks.aws"])

    assert list(found) == ["application/node.eks.aws"]
    assert (config["apiVersion"], config["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    assert config["spec"] == {"instance": {"localStorage": {"strategy": "RAID0"}}}


def test_huge_pages_are_set_by_a_script_that_stops_at_its_first_error() -> None:
    found = parts(node_user_data(local_nvme=False, huge_pages=5128))
    script = found["text/x-shellscript"]

    assert list(found) == ["text/x-shellscript"]
    assert script.startswith("#!")
    assert "set -euo pipefail" in script
    assert "vm.nr_hugepages = 5128" in script


def test_both_travel_in_one_message() -> None:
    found = parts(node_user_data(local_nvme=True, huge_pages=5128))

    assert set(found) == {"application/node.eks.aws", "text/x-shellscript"}


def test_a_node_without_either_is_told_nothing() -> None:
    assert node_user_data(local_nvme=False, huge_pages=0) is None
    assert encoded(None) is None


def test_a_launch_template_gets_it_in_base64() -> None:
    text = node_user_data(local_nvme=True, huge_pages=0)

    assert base64.b64decode(encoded(text) or "").decode() == text
