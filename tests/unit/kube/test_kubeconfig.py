"""kubeconfig files: which entries a context means, and what is reported of one that cannot be used."""

import asyncio
import base64
import json
import os
import ssl
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from foresail.kube import clock
from foresail.kube import connect as connecting
from foresail.kube.client import Client
from foresail.kube.connect import ConnectError, Connection, connect, namespace_of_context
from foresail.plan import Key, Kind
from testbed.pki import make_authority
from tests.unit.served import served

THING = Kind("runtime.foresail.dev", "v1", "things", "Thing")


def written(
    file: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, name: str = "a"
) -> Path:
    content = {
        "clusters": [{"name": name, "cluster": {"server": "https://127.0.0.1:9", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        "current-context": name,
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))
    return file


def connected(file: Path | str, context: str | None = None) -> Connection:
    return asyncio.run(connect(str(file), context))


def headers(connection: Connection) -> list[tuple[str, str]]:
    return asyncio.run(connection.headers())


def test_of_several_files_the_first_that_sets_a_name_wins_and_a_missing_one_is_left_out(tmp_path: Path) -> None:
    first = written(tmp_path / "first", user={"token": "1"})
    second = written(tmp_path / "second", user={"token": "2"}, cluster={"server": "https://127.0.0.1:10"})
    third = written(tmp_path / "third", user={"token": "3"}, name="b")
    paths = os.pathsep.join(map(str, (tmp_path / "missing", first, second, third)))
    connection = connected(paths)
    assert connection.server == "https://127.0.0.1:9"
    assert headers(connection) == [("Authorization", "Bearer 1")]
    assert headers(connected(paths, "b")) == [("Authorization", "Bearer 3")]
    assert (namespace_of_context(paths), namespace_of_context(paths, "b")) == ("of-a", "of-b")


@pytest.mark.parametrize(
    "server", ["HTTPS://127.0.0.1:9", "Https://127.0.0.1:9/", " https://127.0.0.1:9", "ht\ttps://127.0.0.1:9"]
)
def test_a_server_is_encrypted_however_its_scheme_is_written(server: str, tmp_path: Path) -> None:
    connection = connected(written(tmp_path / "config", cluster={"server": server}, user={"token": "1"}))
    assert connection.server == "https://127.0.0.1:9"
    assert connection.tls is not None
    assert headers(connection) == [("Authorization", "Bearer 1")]


def test_a_server_in_plain_http_gets_no_credentials(tmp_path: Path) -> None:
    connection = connected(written(tmp_path / "config", cluster={"server": "HTTP://127.0.0.1:9"}, user={"token": "1"}))
    assert (connection.server, connection.tls, headers(connection)) == ("http://127.0.0.1:9", None, [])


def test_a_relative_path_is_relative_to_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "token").write_text("from-file\n")
    file = written(tmp_path / "there" / "config", user={"tokenFile": "token"})
    assert headers(connected(file)) == [("Authorization", "Bearer from-file")]


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({}, []),
        ({"username": "ann", "password": "p"}, [("Authorization", f"Basic {base64.b64encode(b'ann:p').decode()}")]),
        (
            {
                "as": "bob",
                "as-uid": "7",
                "as-groups": ["x", "y"],
                "as-user-extra": {"scopes": ["view"], "a.b/c %": ["d"]},
            },
            [
                ("Impersonate-User", "bob"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "x"),
                ("Impersonate-Group", "y"),
                ("Impersonate-Extra-scopes", "view"),
                ("Impersonate-Extra-a.b%2Fc%20%25", "d"),
            ],
        ),
    ],
)
def test_a_user_becomes_the_headers_of_each_request(
    user: dict[str, Any], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert headers(connected(written(tmp_path / "config", user=user))) == expected


@pytest.mark.parametrize(
    ("cluster", "user", "problem"),
    [
        ({"server": "127.0.0.1"}, {}, "cluster 'a': server is not a URL that starts with https:// or http://"),
        ({"server": ""}, {}, "cluster 'a': server is not a URL"),
        ({"server": "https://[secret"}, {}, "cluster 'a': server is not a URL"),
        ({"server": "https://h:99999"}, {}, "cluster 'a': server is not a URL"),
        ({"certificate-authority-data": "sec=ret"}, {}, "cluster 'a': certificate-authority-data is not base64"),
        ({"proxy-url": "socks5://u:secret@h:1"}, {}, "cluster 'a': proxy-url does not start with http:// or https://"),
        ({"insecure-skip-tls-verify": "secret"}, {}, "insecure-skip-tls-verify is neither true nor false"),
        ({}, {"token": ["secret"]}, "user 'a': token is not text"),
        ({}, {"client-key-data": "c2VjcmV0"}, "sets one of client-certificate and client-key; it must set both"),
        ({}, {"as-groups": "secret"}, "user 'a': as-groups is not a list"),
        ({}, {"auth-provider": {"name": "oidc", "config": {"id-token": "secret"}}}, "configure an exec plugin"),
        ({}, {"tokenFile": "missing"}, "No such file or directory"),
        ({"server": "https://h", "certificate-authority-data": "c2VjcmV0"}, {}, "cannot be used: "),
    ],
)
def test_a_wrong_field_is_named_and_no_value_is_quoted(
    cluster: dict[str, Any], user: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    file = written(tmp_path / "config", cluster=cluster, user=user)
    with pytest.raises(ConnectError) as raised:
        connected(file)
    assert problem in str(raised.value)
    assert str(file) in str(raised.value) or "token" in problem or str(tmp_path) in str(raised.value)
    assert "secret" not in str(raised.value)
    assert "c2VjcmV0" not in str(raised.value)


def test_a_file_that_is_not_yaml_is_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("users: [{token: secret")
    with pytest.raises(ConnectError) as raised:
        connected(file)
    assert str(raised.value) == f"kubeconfig {file} is not YAML"


@pytest.mark.parametrize(("missing", "word"), [("clusters", "cluster"), ("users", "user")])
def test_a_context_that_names_an_entry_in_no_file_is_refused(missing: str, word: str, tmp_path: Path) -> None:
    file = written(tmp_path / "config")
    content = json.loads(file.read_text())
    content[missing] = []
    file.write_text(json.dumps(content))
    with pytest.raises(ConnectError, match=f"kubeconfig {file}: context 'a': its {word} 'a' is in no file"):
        connected(file)


def test_a_request_goes_through_the_proxy_of_the_cluster(tmp_path: Path) -> None:
    asked: list[tuple[str, str | None]] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Proxy-Authorization")))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    async def get(file: Path) -> None:
        async with Client(await connect(str(file))) as client:
            assert await client.get(THING, Key("ns", "x"), dict) == {}

    with served(Proxy) as proxy:
        through = f"http://u:p@127.0.0.1:{proxy.server_port}"
        asyncio.run(get(written(tmp_path / "c", cluster={"server": "http://api.invalid", "proxy-url": through})))
    path = "http://api.invalid/apis/runtime.foresail.dev/v1/namespaces/ns/things/x"
    assert asked == [(path, f"Basic {base64.b64encode(b'u:p').decode()}")]


def test_a_pod_uses_its_service_account_and_reads_its_token_again_every_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_authority(tmp_path / "pki")
    (tmp_path / "ca.crt").write_bytes((tmp_path / "pki" / "ca.crt").read_bytes())
    (tmp_path / "namespace").write_text("velero\n")
    (tmp_path / "token").write_text("first")
    monkeypatch.setattr(connecting, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    now = 0.0
    monkeypatch.setattr(clock, "steady", lambda: now)
    connection = asyncio.run(connect())
    assert connection.server == "https://[fd00::1]:443"
    assert namespace_of_context() == "velero"
    (tmp_path / "token").write_text("second")
    assert headers(connection) == [("Authorization", "Bearer first")]
    now = 60.0
    assert headers(connection) == [("Authorization", "Bearer second")]
    (tmp_path / "token").write_text("")
    now = 120.0
    assert headers(connection) == [("Authorization", "Bearer second")]
    with pytest.raises(ConnectError, match=f"the token file {tmp_path}/token is empty"):
        asyncio.run(connection.renew())
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT")
    with pytest.raises(ConnectError, match="KUBERNETES_SERVICE_PORT is not set in this pod"):
        asyncio.run(connect())


def test_a_current_context_that_changes_does_not_move_a_command_to_another_cluster(tmp_path: Path) -> None:
    file = written(tmp_path / "config", user={"token": "1"})
    content = json.loads(file.read_text())
    content["clusters"].append({"name": "prod", "cluster": {"server": "https://127.0.0.1:10"}})
    content["contexts"].append({"name": "prod", "context": {"cluster": "prod", "user": "a"}})
    file.write_text(json.dumps(content))

    async def run() -> Connection:
        connection = await connect(str(file))
        file.write_text(json.dumps({**content, "current-context": "prod"}))
        await connection.renew()
        return connection

    assert asyncio.run(run()).server == "https://127.0.0.1:9"


def test_a_server_that_was_replaced_in_the_kubeconfig_ends_the_command(tmp_path: Path) -> None:
    file = written(tmp_path / "config")

    async def run() -> None:
        connection = await connect(str(file))
        written(file, cluster={"server": "https://127.0.0.1:10"})
        with pytest.raises(ConnectError, match="now, and was https"):
            await connection.renew()

    asyncio.run(run())


def test_no_credentials_are_sent_without_encryption(tmp_path: Path) -> None:
    file = written(tmp_path / "config", cluster={"server": "http://127.0.0.1:9"}, user={"token": "secret"})
    assert headers(connected(file)) == []


def test_an_authority_beside_switched_off_verification_is_refused_as_by_kubectl(tmp_path: Path) -> None:
    make_authority(tmp_path / "pki")
    cluster = {"certificate-authority": str(tmp_path / "pki" / "ca.crt"), "insecure-skip-tls-verify": True}
    with pytest.raises(ConnectError, match="remove one of them"):
        connected(written(tmp_path / "config", cluster=cluster))


def test_verification_that_is_switched_on_again_holds_from_the_next_renewal(tmp_path: Path) -> None:
    file = written(tmp_path / "config", cluster={"insecure-skip-tls-verify": True})

    async def run() -> list[int]:
        connection = await connect(str(file))
        first = connection.tls
        written(file)
        await connection.renew()
        assert first is not None
        assert connection.tls is not None
        return [first.verify_mode, connection.tls.verify_mode]

    assert asyncio.run(run()) == [ssl.CERT_NONE, ssl.CERT_REQUIRED]


def test_a_kubeconfig_that_is_named_by_the_environment_is_used_in_a_pod_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("of the pod")
    monkeypatch.setattr(connecting, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(written(tmp_path / "config")))
    assert asyncio.run(connect()).server == "https://127.0.0.1:9"
    assert namespace_of_context() == "of-a"
