"""`foresail backup get` starts fast: it imports what it needs, and nothing else."""

import json
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from testbed.pki import make_authority
from tests.machine_speed import cost_beside_plain_python
from tests.unit.kube.test_kubeconfig import written
from tests.unit.served import served

UNUSED = (
    "aiohttp",
    "multidict",
    "yarl",
    "email",
    "prometheus_client",
    "foresail.cron",
    "foresail.operator",
    "foresail.api.policy",
)
_LIST = json.dumps(
    {
        "metadata": {"resourceVersion": "1"},
        "items": [
            {"metadata": {"namespace": "shop", "name": f"b{number}", "uid": str(number)}, "spec": {"backupSpec": {}}}
            for number in range(20)
        ],
    }
).encode()


class Answer(BaseHTTPRequestHandler):
    """Answers with twenty NonAdminBackups."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(_LIST)))
        self.end_headers()
        self.wfile.write(_LIST)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the kubeconfig of a server that answers over TLS."""
    folder = tmp_path_factory.mktemp("server")
    make_authority(folder / "pki")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "pki" / "server.crt", folder / "pki" / "server.key")
    with served(Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = f"https://127.0.0.1:{server.server_port}"
        cluster = {"server": url, "certificate-authority": str(folder / "pki" / "ca.crt")}
        yield str(written(folder / "config", cluster=cluster, user={"token": "t"}))


def run(kubeconfig: str, *program: str) -> str:
    """Run the command by `-m foresail` or a program that calls it; return stderr."""
    command = [sys.executable, *program, "backup", "get", "-n", "shop", "--kubeconfig", kubeconfig]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 21
    return done.stderr


def test_a_command_with_one_request_imports_neither_aiohttp_nor_packages_that_it_does_not_use(kubeconfig: str) -> None:
    program = "import sys; from foresail.cli.main import main; main(); print(*sys.modules, file=sys.stderr)"
    imported = run(kubeconfig, "-c", program).split()
    assert {"foresail.cli.tenant.get", "foresail.kube.http_direct"} <= set(imported)
    assert [each for each in imported if each.startswith(UNUSED)] == []


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        ("backup describe x", UNUSED),
        ("backup explain x", UNUSED),
        ("restore describe x", UNUSED),
        ("schedule get", ("aiohttp", "prometheus_client", "foresail.operator")),
        ("schedule describe x", ("aiohttp", "prometheus_client", "foresail.operator")),
        ("policy get", ("aiohttp", "prometheus_client", "foresail.operator")),
        ("doctor", ("aiohttp", "prometheus_client", "foresail.operator")),
    ],
)
def test_commands_that_people_type_often_import_no_web_server_and_no_metrics(
    words: str, unused: tuple[str, ...], tmp_path: Path
) -> None:
    program = "import sys; from foresail.cli.main import main; main(); print(*sys.modules, file=sys.stderr)"
    nowhere = written(tmp_path / "config", cluster={"server": "http://127.0.0.1:1"}, user={"token": "t"})
    command = [sys.executable, "-c", program, *words.split(), "--kubeconfig", str(nowhere)]
    imported = subprocess.run(command, capture_output=True, text=True, check=False).stderr.split()
    assert "foresail.kube.http_direct" in imported
    assert [each for each in imported if each.startswith(unused)] == []


@pytest.mark.timed
def test_a_command_with_one_request_costs_less_than_three_and_a_half_plain_programs(
    kubeconfig: str, figure: Callable[[str], None]
) -> None:
    own, plain = cost_beside_plain_python(lambda: run(kubeconfig, "-m", "foresail"), times=20)
    figure(
        f"`foresail backup get` over TLS: {own * 1000:.0f} ms of CPU, best of 20; "
        f"{own / plain:.1f} times that of a program that only imports what speaks TLS"
    )
    assert own < 3.5 * plain
