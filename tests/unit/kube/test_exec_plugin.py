"""Exec plugins as real programs: what they are told, how often they run, and what is reported when they fail."""

import asyncio
import json
import os
import pty
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foresail.kube import clock, credentials
from foresail.kube.client import Client
from foresail.kube.connect import ConnectError, connect
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key, Kind
from testbed.pki import client_certificate, make_authority
from tests.unit.kube.test_kubeconfig import written

V1 = "client.authentication.k8s.io/v1"
THING = Kind("runtime.foresail.dev", "v1", "things", "Thing")
SCRIPT = """#!{python}
import json, os, pathlib, sys
here = pathlib.Path({folder!r})
runs = len(list(here.glob("run-*")))
told = {{"info": json.loads(os.environ["KUBERNETES_EXEC_INFO"]), "args": sys.argv[1:], "zone": os.environ.get("ZONE"),
        "stdin": sys.stdin.isatty()}}
(here / f"run-{{runs}}").write_text(json.dumps(told))
sys.stdout.write((here / "answer").read_text())
sys.exit(int((here / "code").read_text()))
"""


class Plugin:
    """A plugin that prints what its answer file holds and records what it was told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "plugin"
        self.program.write_text(SCRIPT.format(python=sys.executable, folder=str(folder)))
        self.program.chmod(0o755)
        self.answers({"token": "secret-1"})

    def answers(self, status: dict[str, Any], code: int = 0, **other: str) -> None:
        self.prints(json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status, **other}), code)

    def prints(self, text: str, code: int = 0) -> None:
        (self.folder / "answer").write_text(text)
        (self.folder / "code").write_text(str(code))

    def runs(self) -> list[dict[str, Any]]:
        return [json.loads(each.read_text()) for each in sorted(self.folder.glob("run-*"))]

    def kubeconfig(self, cluster: dict[str, Any] | None = None, **fields: Any) -> str:  # noqa: ANN401 - of a file
        settings = {"apiVersion": V1, "command": "./plugin", "interactiveMode": "IfAvailable", **fields}
        kept = {name: value for name, value in settings.items() if value is not None}
        return str(written(self.folder / "config", user={"exec": kept}, cluster=cluster))


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def test_a_plugin_gets_its_settings_and_its_token_is_cached(plugin: Plugin) -> None:
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    file = plugin.kubeconfig(
        {"extensions": [extension], "tls-server-name": "api"},
        args=["get", "token"],
        env=[{"name": "ZONE", "value": "b"}],
        provideClusterInfo=True,
    )

    async def run() -> None:
        connection = await connect(file)
        for _ in range(3):
            assert dict(await connection.headers()) == {"Authorization": "Bearer secret-1"}

    asyncio.run(run())
    cluster = {"server": "https://127.0.0.1:9", "tls-server-name": "api", "config": {"audience": "x"}}
    info = {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False, "cluster": cluster}}
    assert plugin.runs() == [{"info": info, "args": ["get", "token"], "zone": "b", "stdin": False}]


def test_a_token_that_expires_is_replaced_in_time_by_one_run_for_all_requests(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    monkeypatch.setattr(clock, "now", lambda: now)
    plugin.answers({"token": "secret-1", "expirationTimestamp": "2026-01-01T13:00:00Z"})

    async def run() -> None:
        nonlocal now
        connection = await connect(plugin.kubeconfig())
        plugin.answers({"token": "secret-2", "expirationTimestamp": "2026-01-01T14:00:00Z"})
        now = datetime(2026, 1, 1, 12, 59, 49, tzinfo=UTC)
        assert dict(await connection.headers()) == {"Authorization": "Bearer secret-1"}
        now = datetime(2026, 1, 1, 12, 59, 50, tzinfo=UTC)
        for each in await asyncio.gather(*(connection.headers() for _ in range(8))):
            assert dict(each) == {"Authorization": "Bearer secret-2"}

    asyncio.run(run())
    assert len(plugin.runs()) == 2


def test_a_refused_token_is_replaced_by_one_run_for_all_requests(plugin: Plugin) -> None:
    async def run() -> None:
        connection = await connect(plugin.kubeconfig())
        plugin.answers({"token": "secret-2"})
        await asyncio.gather(*(connection.renew() for _ in range(8)))
        assert dict(await connection.headers()) == {"Authorization": "Bearer secret-2"}

    asyncio.run(run())
    assert len(plugin.runs()) == 2


def test_a_certificate_of_a_plugin_is_used_for_tls(plugin: Plugin) -> None:
    pki = plugin.folder / "pki"
    make_authority(pki)
    certificate, key = client_certificate(pki, "ann", [])
    plugin.answers({"clientCertificateData": certificate.read_text(), "clientKeyData": key.read_text()})
    https = {"server": "https://127.0.0.1:9", "certificate-authority": "pki/ca.crt"}
    connection = asyncio.run(connect(plugin.kubeconfig(https)))
    assert connection.tls is not None
    assert dict(asyncio.run(connection.headers())) == {}
    plugin.answers({"clientCertificateData": certificate.read_text(), "clientKeyData": "secret-key"})
    with pytest.raises(ConnectError) as raised:
        asyncio.run(connect(plugin.kubeconfig(https)))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("printed", "code", "problem"),
    [
        ("secret-1", 0, "printed no JSON; it must print an ExecCredential"),
        ("{}", 0, f"printed no ExecCredential of {V1}"),
        ('["secret-1"]', 0, f"printed no ExecCredential of {V1}"),
        ({"token": "secret-1", "expirationTimestamp": "secret-2"}, 0, "printed an expirationTimestamp that is not RFC"),
        ({"clientCertificateData": "secret-1"}, 0, "printed one of clientCertificateData and clientKeyData"),
        ({}, 0, "printed neither a token nor a client certificate"),
        ({"token": "secret-1"}, 4, "ended with exit code 4; run it by hand to see why"),
    ],
)
def test_what_a_plugin_printed_is_in_no_error(
    printed: str | dict[str, str], code: int, problem: str, plugin: Plugin
) -> None:
    if isinstance(printed, str):
        plugin.prints(printed, code)
    else:
        plugin.answers(printed, code)
    with pytest.raises(ConnectError) as raised:
        asyncio.run(connect(plugin.kubeconfig()))
    assert f"config: user 'a': exec plugin {plugin.folder}/plugin {problem}" in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"apiVersion": "v1"}, f"exec: apiVersion 'v1' is not one of {V1}, {V1}beta1"),
        ({"command": None}, "exec: command is not set"),
        ({"interactiveMode": None}, "exec: interactiveMode '' is not one of Never, IfAvailable, Always"),
        ({"interactiveMode": "Always"}, "needs a terminal (interactiveMode: Always); run this command in one"),
        ({"args": "get secret"}, "exec: args is not a list of texts"),
        ({"env": [{"value": "secret"}]}, "exec: an item of env has no name or no value"),
        ({"command": "./none"}, "exec plugin .*none cannot be started: No such file or directory; install it"),
        ({"command": "no-such-plugin", "installHint": "see example.com"}, "No such file or directory; see example.com"),
    ],
)
def test_a_plugin_that_cannot_run_is_named_with_what_to_do(
    fields: dict[str, Any], problem: str, plugin: Plugin
) -> None:
    with pytest.raises(ConnectError) as raised:
        asyncio.run(connect(plugin.kubeconfig(**fields)))
    assert problem.rsplit(".*", maxsplit=1)[-1] in str(raised.value)
    assert "secret" not in str(raised.value)
    assert plugin.runs() == []


def test_the_older_version_needs_no_interactive_mode(plugin: Plugin) -> None:
    older = f"{V1}beta1"
    plugin.answers({"token": "t"}, apiVersion=older)
    asyncio.run(connect(plugin.kubeconfig(apiVersion=older, interactiveMode=None)))
    assert plugin.runs()[0]["info"]["apiVersion"] == older


@pytest.mark.parametrize(("mode", "is_interactive"), [("IfAvailable", True), ("Always", True), ("Never", False)])
def test_a_plugin_may_ask_at_a_terminal(
    mode: str, is_interactive: bool, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, terminal = pty.openpty()
    kept = os.dup(0)
    try:
        os.dup2(terminal, 0)
        with open(0, closefd=False) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            asyncio.run(connect(plugin.kubeconfig(interactiveMode=mode)))
    finally:
        os.dup2(kept, 0)
        for each in (kept, main, terminal):
            os.close(each)
    told = plugin.runs()[0]
    assert (told["info"]["spec"]["interactive"], told["stdin"]) == (is_interactive, is_interactive)


def test_a_plugin_that_hangs_is_ended(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_UNATTENDED_SECONDS", 0.2)
    with pytest.raises(ConnectError, match="sleep has not ended after 0 s; run it by hand to see why"):
        asyncio.run(connect(plugin.kubeconfig(command="sleep", args=["60"])))


def test_a_plugin_that_fails_later_fails_the_request_and_not_the_process(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin.answers({"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"})

    async def run() -> tuple[object, ...]:
        connection = await connect(plugin.kubeconfig())
        plugin.answers({}, 1)
        async with Client(connection) as client:
            key = Key("ns", "a")
            return (
                await client.get(THING, key, object),
                await client.create(THING, key, {}, object),
                await client.stream(THING, "", {}),
            )

    monkeypatch.setattr(credentials, "_UNATTENDED_SECONDS", 30.0)
    for answer in asyncio.run(run()):
        assert isinstance(answer, Failure)
        assert answer.cause is Cause.UNAUTHORIZED
        assert "cannot read the credentials for the API server, retrying: " in answer.message
        assert "ended with exit code 1" in answer.message
