"""The spec of a tenant's own location: what reaches Velero, and what does not."""

from base64 import b64encode
from typing import Any

import pytest

from foresail.api.policy import LocationPolicy
from foresail.api.specs import BackupStorageLocationSpec
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.specs.location import (
    endpoint,
    is_allowed,
    location_spec,
    velero_location,
)
from foresail.tenancy.policies import PolicyRow
from tests.unit.selfservice.policies import policy

PEM = b64encode(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").decode()


def wished(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - a manifest
    stored = {"bucket": "red-backups", **changes.pop("objectStorage", {})}
    return {
        "provider": "aws",
        "objectStorage": stored,
        "credential": {"name": "keys", "key": "cloud"},
        "config": {"region": "eu-west-1"},
        **changes,
    }


def allowing(**locations: Any) -> PolicyRow:  # noqa: ANN401 - a manifest
    return policy(locations={"allowed": True, "endpoints": ["s3.corp.example", "http://lab.example:9000"], **locations})


def made(rules: PolicyRow | None = None, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - a manifest
    found = location_spec(wished(**changes), "red", rules or allowing())
    assert isinstance(found, BackupStorageLocationSpec), found
    return velero_location(found, "copy", "ReadWrite")


def refused(rules: PolicyRow | None = None, **changes: Any) -> Refused:  # noqa: ANN401 - a manifest
    found = location_spec(wished(**changes), "red", rules or allowing())
    assert isinstance(found, Refused), found
    return found


def test_a_plain_location_is_made_anew_with_the_folder_of_its_namespace_and_without_sync() -> None:
    assert made() == {
        "provider": "aws",
        "objectStorage": {"bucket": "red-backups", "prefix": "red"},
        "config": {"region": "eu-west-1", "checksumAlgorithm": ""},
        "credential": {"name": "copy", "key": "cloud"},
        "accessMode": "ReadWrite",
        "backupSyncPeriod": "0s",
    }


def test_the_form_of_the_upstream_documentation_is_accepted() -> None:
    found = made(
        objectStorage={"prefix": "velero", "caCert": PEM},
        backupSyncPeriod="2m0s",
        validationFrequency="5m",
        accessMode="ReadWrite",
        default=False,
        config={"region": "us-east-1", "s3Url": "https://s3.corp.example", "s3ForcePathStyle": "true"},
    )
    assert found["objectStorage"] == {"bucket": "red-backups", "prefix": "red/velero", "caCert": PEM}
    assert found["backupSyncPeriod"] == "0s", "Velero's sync would take Backups from a bucket of the tenant"
    assert found["validationFrequency"] == "5m"


def test_the_default_policy_allows_nothing() -> None:
    assert LocationPolicy().allowed is False
    assert LocationPolicy().approval == "Required"
    assert LocationPolicy().restores == "Refused", "Velero takes DataUploads and Namespaces from any archive"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"default": True}, "default is restricted"),
        ({"provider": "gcp"}, "provider gcp"),
        ({"credential": None}, "credential is not set"),
        ({"credential": {"key": "cloud"}}, "credential is not set"),
        ({"objectStorage": {"bucket": "../etc"}}, "not the name of a bucket"),
        ({"objectStorage": {"bucket": "a..b"}}, "not the name of a bucket"),
        ({"objectStorage": {"bucket": "UPPER"}}, "not the name of a bucket"),
        ({"objectStorage": {"prefix": "../blue"}}, "not a folder"),
        ({"objectStorage": {"prefix": "/blue"}}, "not a folder"),
        ({"objectStorage": {"prefix": "a//b"}}, "not a folder"),
        ({"objectStorage": {"prefix": "a/./b"}}, "not a folder"),
        ({"objectStorage": {"prefix": "a\nb"}}, "not a folder"),
        ({"objectStorage": {"caCert": "!!!"}}, "not a certificate"),
        ({"objectStorage": {"caCert": b64encode(b"/etc/passwd").decode()}}, "not a certificate"),
        ({"config": {"credentialsFile": "/credentials/cloud"}}, "not supported"),
        ({"config": {"profile": "admin"}}, "not supported"),
        ({"config": {"customerKeyEncryptionFile": "/etc/shadow"}}, "not supported"),
        ({"config": {"insecureSkipTLSVerify": "true"}}, "not supported"),
        ({"config": {"enableSharedConfig": "true"}}, "not supported"),
        ({"config": {"publicUrl": "http://169.254.169.254"}}, "not supported"),
        ({"config": {"region": "x.evil.example/#"}}, "not valid"),
        ({"config": {"region": "eu-west-1\nx"}}, "not valid"),
        ({"config": {"s3Url": "http://169.254.169.254"}}, "not an endpoint"),
        ({"config": {"s3Url": "https://elsewhere.example"}}, "not allowed"),
        ({"config": {"s3Url": "http://s3.corp.example"}}, "not allowed"),
        ({"config": {"tagging": "a=b"}}, "not allowed"),
        ({"validationFrequency": "1s"}, "too short"),
        ({"unknown": 1}, "not supported"),
    ],
)
def test_what_leads_elsewhere_or_takes_another_identity_is_refused(changes: dict[str, Any], word: str) -> None:
    assert word in refused(None, **changes).message


def test_a_policy_names_the_buckets_and_the_keys() -> None:
    rules = allowing(buckets=["team-*"], configKeys=["region"])
    assert "red-backups is not allowed" in refused(rules).message
    assert made(rules, objectStorage={"bucket": "team-red"})["objectStorage"]["bucket"] == "team-red"
    assert refused(rules, objectStorage={"bucket": "team-red"}, config={"s3ForcePathStyle": "true"}).reason == (
        Reason.POLICY_VIOLATION
    )


@pytest.mark.parametrize(
    "text",
    [
        "https://user:secret@s3.corp.example",
        "https://s3.corp.example@evil.example",
        "https://s3.corp.example.",
        "https://S3.corp.example",
        "https://s3.corp.example/path",
        "https://s3.corp.example?x=1",
        "https://s3.corp.example#x",
        "https://s3.corp.example\\@evil.example",
        "https://s3.corp.example:0443",
        "https://s3.corp.example:99999",
        "https://s3.corp.example:443\n",
        "https://127.0.0.1",
        "https://2130706433",
        "https://0x7f000001",
        "https://127.1",
        "https://0177.0.0.1",
        "https://[::1]",
        "https://xn--s3-corp.example",
        "https://s3.cörp.example",
        "https://s3。corp.example",
        "file:///etc/passwd",
        "gopher://s3.corp.example",
        "//s3.corp.example",
        "s3.corp.example",
        "",
    ],
)
def test_an_endpoint_has_one_spelling(text: str) -> None:
    assert endpoint(text) is None
    assert not is_allowed(text, ["s3.corp.example", "127.0.0.1", text])


def test_default_ports_and_a_closing_slash_are_the_same_endpoint() -> None:
    for text in ("https://s3.corp.example", "https://s3.corp.example:443", "https://s3.corp.example/"):
        assert is_allowed(text, ["s3.corp.example"])
    assert is_allowed("http://lab.example:9000", ["http://lab.example:9000"])
    assert not is_allowed("https://lab.example:9000", ["http://lab.example:9000"])
    assert not is_allowed("https://s3.corp.example:8443", ["s3.corp.example"])
