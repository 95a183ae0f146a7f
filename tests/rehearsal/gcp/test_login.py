"""An OAuth client of the proxy, whose secret exists in Secret Manager before the stack."""

import pytest

from rehearsal.core.model import RefusalError
from rehearsal.gcp.existing import seed
from tests.rehearsal.gcp.harness import Driver

SECRET = "projects/research/secrets/login"
READ = "secretmanager/getSecretVersionAccess:getSecretVersionAccess"
SETTINGS = "projects/1/iap_web/cloud_run-us-central1/services/mlflow"


def test_the_newest_version_of_an_existing_secret_is_read_and_set(google: Driver) -> None:
    with pytest.raises(RefusalError, match="notFound"):
        google.invoke(READ, project="research", secret="login")
    rows = [
        {"type": "gcp:secretmanager/secret:Secret", "id": SECRET, "outputs": {"name": SECRET}},
        *(
            {
                "type": "gcp:secretmanager/secretVersion:SecretVersion",
                "id": f"{SECRET}/versions/{number}",
                "outputs": {
                    "name": f"{SECRET}/versions/{number}",
                    "version": f"{number}",
                    "secretData": f"value {number}",
                },
            }
            for number in (1, 2)
        ),
    ]
    seed(google.state, rows)
    found = google.invoke(READ, project="research", secret="login")["secretData"]
    assert found == "value 2"
    access = {"oauthSettings": {"clientId": "1-a.apps.googleusercontent.com", "clientSecret": found}}
    assert (
        google.create("iap/settings:Settings", "login", name=SETTINGS, accessSettings=access)["id"]
        == SETTINGS
    )
    renewed = {"oauthSettings": {**access["oauthSettings"], "clientSecret": "value 3"}}
    assert google.diff("login", name=SETTINGS, accessSettings=renewed).replaces == ()
    google.delete("login")
