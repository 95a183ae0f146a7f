"""Destroying a domain with a user's notebook: the clean-up functions run and are needed."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.aws.budget_stop import running
from agents.aws.leftovers import function
from components.aws.account import AwsAccount as Owner
from components.aws.jobs.cleaning import cleaning_rights
from rehearsal.aws.cloud import EmulatedAws
from rehearsal.core.fault_injection import FaultPlan
from rehearsal.core.model import RefusalError
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.core.validate import SIGNATURE
from rehearsal.jobs.services import EmulatedServices
from tests.rehearsal.aws.rules.world import trust
from tests.rehearsal.driver import CACHE, Driver
from tests.rehearsal.jobs.aws.test_functions import ARCHIVE, ASSET

boto3: Any = importlib.import_module("boto3")
ClientError: type[Exception] = importlib.import_module("botocore.exceptions").ClientError
OWNER, REGION = "123456789012", "us-east-1"
TAGS = {"trainstack:stack": "dev"}
DESK = {"DomainId": "", "SpaceName": "desk"}
APP = {"AppType": "JupyterLab", "AppName": "default"}


class Lab(Driver):
    """A domain with one profile, and the calls that clean up behind it, as a stack has them."""

    def __init__(self, home: Path, schemas: Schemas) -> None:
        state = State(home / "state.sqlite")
        super().__init__("aws", state, EmulatedAws(state, schemas, home), {"region": REGION})
        self.services = EmulatedServices(state, home, FaultPlan(home / "faults.json"))
        vpc = self.create("ec2/vpc:Vpc", "vpc", cidrBlock="10.0.0.0/16")["id"]
        subnet = self.create("ec2/subnet:Subnet", "subnet", vpcId=vpc, cidrBlock="10.0.0.0/24")["id"]
        name = self._function(vpc)
        self._call("groups", name, {"vpc": vpc})
        studio = self.create("iam/role:Role", "studio", assumeRolePolicy=trust("sagemaker.amazonaws.com"))
        settings = {"executionRole": studio["arn"]}
        domain = self.create(
            "sagemaker/domain:Domain",
            "domain",
            domainName="lab",
            authMode="IAM",
            vpcId=vpc,
            subnetIds=[subnet],
            defaultUserSettings=settings,
            tagPropagation="ENABLED",
            retentionPolicy={"homeEfsFileSystem": "Delete"},
            tags=TAGS,
        )["id"]
        self.create(
            "sagemaker/userProfile:UserProfile", "profile", domainId=domain, userProfileName="ada", tags=TAGS
        )
        self._call("spaces", name, {"domain": domain})
        self.desk = {**DESK, "DomainId": domain}
        self.sagemaker = self.client("sagemaker")

    def _function(self, vpc: str) -> str:
        """The function of the stack, with its own rights alone."""
        role = self.create("iam/role:Role", "cleaner", assumeRolePolicy=trust("lambda.amazonaws.com"))
        rights = cleaning_rights(REGION, "dev", Owner(OWNER, "aws"), vpc)
        document = json.dumps({"Version": "2012-10-17", "Statement": rights})
        self.create("iam/rolePolicy:RolePolicy", "rights", role=role["id"], policy=document)
        text = Path(function.__file__).read_text().replace("_PAUSE_S = 2.0", "_PAUSE_S = 0.1")
        code = {SIGNATURE: ARCHIVE, "assets": {"function.py": {SIGNATURE: ASSET, "text": text}}}
        made = self.create(
            "lambda/function:Function",
            "cleaning",
            role=role["arn"],
            runtime="python3.12",
            handler="function.handler",
            timeout=60,
            code=code,
        )
        return str(made["name"])

    def _call(self, name: str, function: str, event: dict[str, str]) -> None:
        made = self.create(
            "lambda/invocation:Invocation",
            name,
            functionName=function,
            input=json.dumps(event),
            lifecycleScope="CRUD",
        )
        assert json.loads(made["result"]) == {"removed": []}

    def client(self, service: str) -> Any:
        return boto3.client(
            service, region_name=REGION, endpoint_url=self.services.aws.url,
            aws_access_key_id="rehearsal", aws_secret_access_key="rehearsal",
        )  # fmt: skip

    def open_a_notebook(self) -> None:
        """Create a space and an app as the user does."""
        self.sagemaker.create_space(
            **self.desk,
            OwnershipSettings={"OwnerUserProfileName": "ada"},
            SpaceSharingSettings={"SharingType": "Private"},
        )
        self.sagemaker.create_app(**self.desk, **APP)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    schemas = Schemas("aws", CACHE)
    made = Lab(tmp_path, schemas)
    yield made
    made.services.stop()
    made.state.close()
    schemas.close()


def test_a_destroy_removes_notebooks_before_profiles_and_groups_after_the_domain(lab: Lab) -> None:
    lab.open_a_notebook()
    with pytest.raises(RefusalError, match="ResourceInUse: Unable to delete UserProfile"):
        lab.delete("profile")
    lab.delete("spaces")
    assert lab.sagemaker.list_spaces()["Spaces"] == lab.sagemaker.list_apps()["Apps"] == []
    lab.delete("profile")
    lab.delete("domain")
    lab.delete("subnet")
    with pytest.raises(RefusalError, match="DependencyViolation"):
        lab.delete("vpc")
    lab.delete("groups")
    lab.delete("vpc")


def test_a_failed_clean_up_fails_the_deletion(lab: Lab) -> None:
    lab.open_a_notebook()
    lab.delete("rights")
    with pytest.raises(RefusalError, match=r"invoking Lambda Function .*not authorized .*sagemaker:ListApps"):
        lab.delete("spaces")
    assert [one["SpaceName"] for one in lab.sagemaker.list_spaces()["Spaces"]] == ["desk"]


def test_a_used_up_budget_finds_and_ends_a_notebook(lab: Lab) -> None:
    lab.open_a_notebook()
    (found,) = running.everything(lab.sagemaker, "dev", {"ada": "vision"})
    assert (found.kind, found.name) == ("app", "ada/default")
    assert found.tags == {**TAGS, "trainstack:person": "ada", "trainstack:team": "vision"}
    assert running.end(lab.sagemaker, found) and not running.end(lab.sagemaker, found)
    assert running.everything(lab.sagemaker, "dev", {"ada": "vision"}) == []


def test_a_notebook_is_described_with_its_owner_and_the_tags_of_its_domain(lab: Lab) -> None:
    lab.open_a_notebook()
    space = lab.sagemaker.describe_space(**lab.desk)
    assert space["OwnershipSettings"] == {"OwnerUserProfileName": "ada"}
    app = lab.sagemaker.describe_app(**lab.desk, **APP)
    assert app["AppArn"].endswith("/desk/JupyterLab/default")
    tags = lab.sagemaker.list_tags(ResourceArn=app["AppArn"])["Tags"]
    assert tags == [{"Key": key, "Value": value} for key, value in TAGS.items()]
    domain = lab.sagemaker.describe_domain(DomainId=lab.desk["DomainId"])
    assert domain["DomainArn"].endswith(lab.desk["DomainId"])
    with pytest.raises(ClientError, match="ResourceInUse"):
        lab.sagemaker.delete_space(**lab.desk)
    lab.sagemaker.delete_app(**lab.desk, **APP)
    lab.sagemaker.delete_space(**lab.desk)
