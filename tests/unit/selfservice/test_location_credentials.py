"""The credentials in a tenant's Secret: only plain keys, written anew."""

import pytest

from foresail.selfservice.locations.credentials import Credentials, credentials_of

KEYS = "[default]\naws_access_key_id=AKIDEXAMPLE\naws_secret_access_key=wJalrXUtnFEMI/K7MDENG\n"


def test_credentials_are_written_anew() -> None:
    text = "# mine\n[default]\naws_access_key_id = AKIDEXAMPLE\n\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG\n"
    found = credentials_of(text.encode())
    assert isinstance(found, Credentials)
    assert found.text == KEYS
    assert found == credentials_of(KEYS.encode())
    assert "wJalr" not in repr(found)
    assert len(found.digest) == 64


@pytest.mark.parametrize(
    "line",
    [
        "role_arn=arn:aws:iam::1:role/velero",
        "web_identity_token_file=/var/run/secrets/token",
        "credential_process=/bin/sh -c id",
        "source_profile=admin",
        "credential_source=Ec2InstanceMetadata",
        "sso_session=corp",
        "ca_bundle=/etc/passwd",
        "endpoint_url=http://169.254.169.254",
        "services=x",
        "[profile admin]",
        "[default]",
        " aws_session_token=x",
        "aws_access_key_id=AGAIN",
        "aws_session_token=a b",
        "aws_session_token",
    ],
)
def test_credentials_with_anything_beside_plain_keys_are_refused(line: str) -> None:
    found = credentials_of(f"{KEYS}{line}\n".encode())
    assert isinstance(found, str), line
    assert "wJalr" not in found


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"[default]\n", KEYS.removeprefix("[default]\n").encode(), KEYS.encode() + b"#" * 9000],
)
def test_what_is_no_file_of_credentials_is_refused(content: bytes) -> None:
    assert isinstance(credentials_of(content), str)
