"""Tokens and certificates in files that somebody replaces."""

import asyncio
import json
from pathlib import Path

import pytest

from foresail.kube.connect import ConnectError, connect
from testbed.pki import make_authority


def kubeconfig(folder: Path, user: dict[str, object]) -> Path:
    file = folder / "kubeconfig"
    content = {
        "clusters": [{"name": "nowhere", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "me"}}],
        "current-context": "nowhere",
    }
    file.write_text(json.dumps(content))
    return file


def test_a_missing_token_file_is_named_in_the_error_and_read_again_once_it_is_back(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")

    async def run() -> None:
        connection = await connect(str(kubeconfig(tmp_path, {"tokenFile": str(token)})))
        token.unlink()
        with pytest.raises(ConnectError, match=f"cannot read the credentials for the API server, retrying: .*{token}"):
            await connection.renew()
        assert dict(await connection.headers()) == {"Authorization": "Bearer first"}
        token.write_text("second")
        await connection.renew()
        assert dict(await connection.headers()) == {"Authorization": "Bearer second"}

    asyncio.run(run())


def test_a_ca_that_was_replaced_is_trusted_after_the_next_renewal_and_one_that_was_not_keeps_its_connections(
    tmp_path: Path,
) -> None:
    for name in ("old", "new"):
        make_authority(tmp_path / name)
    authority = tmp_path / "ca.crt"
    authority.write_bytes((tmp_path / "old" / "ca.crt").read_bytes())
    file = kubeconfig(tmp_path, {"token": "t"})
    content = json.loads(file.read_text())
    content["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:9", "certificate-authority": str(authority)}
    file.write_text(json.dumps(content))

    async def run() -> None:
        connection = await connect(str(file))
        first = connection.tls
        await connection.renew()
        assert connection.tls is first
        authority.write_text("half of it")
        with pytest.raises(ConnectError, match="cannot read the credentials for the API server, retrying"):
            await connection.renew()
        assert connection.tls is first
        authority.write_bytes((tmp_path / "new" / "ca.crt").read_bytes())
        await connection.renew()
        assert connection.tls is not first
        assert connection.tls is not None
        assert first is not None
        assert connection.tls.get_ca_certs() != first.get_ca_certs()

    asyncio.run(run())
