"""auth-provider of a kubeconfig, by the official client, which is an extra."""

import asyncio
import base64
import json
import sys
from pathlib import Path

import pytest

from foresail.kube.connect import ConnectError, connect
from tests.unit.kube.test_kubeconfig import written


def provider(folder: Path, token: str) -> str:
    return str(written(folder / "config", user={"auth-provider": {"name": "oidc", "config": {"id-token": token}}}))


@pytest.mark.filterwarnings("ignore:datetime.datetime.utc:DeprecationWarning")  # by the official client, from 3.12 on
def test_an_id_token_that_holds_is_used(tmp_path: Path) -> None:
    middle = base64.urlsafe_b64encode(json.dumps({"exp": 4_000_000_000}).encode()).decode().rstrip("=")
    token = f"a.{middle}.c"
    connection = asyncio.run(connect(provider(tmp_path, token)))
    assert dict(asyncio.run(connection.headers())) == {"Authorization": f"Bearer {token}"}


def test_a_token_that_cannot_be_used_is_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=r"user 'a': auth-provider failed \(\w+\); log in again") as raised:
        asyncio.run(connect(provider(tmp_path, "secret")))
    assert "secret" not in str(raised.value)


def test_without_the_extra_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.aio", None)
    with pytest.raises(ConnectError, match=r"install the extra foresail\[auth-provider\], or configure an exec plugin"):
        asyncio.run(connect(provider(tmp_path, "a.b.c")))
