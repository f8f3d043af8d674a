"""TLS to the API server: who is trusted, by which name, and with which certificate of our own."""

import asyncio
import base64
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.plan import Key, Kind
from testbed.pki import client_certificate, make_authority
from tests.unit.kube.nowhere import HTTP, MakeHttp
from tests.unit.kube.test_kubeconfig import written
from tests.unit.served import served

THING = Kind("runtime.foresail.dev", "v1", "things", "Thing")


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki") / "made"
    make_authority(folder)
    client_certificate(folder, "ann", [])
    return folder


class Answer(BaseHTTPRequestHandler):
    """Answers with the name of the client's certificate."""

    def do_GET(self) -> None:
        shown = self.connection.getpeercert()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"subject": str(dict(shown or {}).get("subject", ""))}).encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def api_server(pki: Path, names: list[str | None]) -> Iterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki / "ca.crt"))
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the testbed's CA lacks an extension, as those of many clusters do
    context.load_cert_chain(pki / "server.crt", pki / "server.key")
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    with served(Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        yield f"https://127.0.0.1:{server.server_port}"


async def get(file: Path, make_http: MakeHttp) -> Any:  # noqa: ANN401 - an answer or a failure
    connection = await connect(str(file))
    async with Client(connection, http=make_http(connection)) as client:
        return await client.get(THING, Key("ns", "x"), dict)


Asked = Callable[[dict[str, Any], dict[str, Any]], tuple[Any, list[str | None]]]


@pytest.fixture(params=HTTP.values(), ids=list(HTTP))
def asked(pki: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Asked:
    """Return what asks the server, by a cluster and a user of a kubeconfig, for an answer and the names in TLS."""

    def ask(cluster: dict[str, Any], user: dict[str, Any]) -> tuple[Any, list[str | None]]:
        names: list[str | None] = []
        with api_server(pki, names) as server:
            file = written(tmp_path / "c", cluster={"server": server, **cluster}, user=user)
            answer = asyncio.run(get(file, request.param))
        return answer, names

    return ask


def test_a_certificate_authenticates_from_files_and_from_data(pki: Path, asked: Asked) -> None:
    files = {"client-certificate": str(pki / "user-ann.crt"), "client-key": str(pki / "user-ann.key")}
    data = {f"{name}-data": base64.b64encode(Path(file).read_bytes()).decode() for name, file in files.items()}
    trust = {"certificate-authority": str(pki / "ca.crt")}
    for user in (files, data):
        answer, _ = asked(trust, user)
        assert "'ann'" in answer["subject"]
    assert asked(trust, {})[0] == {"subject": ""}


def test_the_name_for_tls_can_be_another_one_and_a_wrong_one_is_refused(pki: Path, asked: Asked) -> None:
    trust = {"certificate-authority": str(pki / "ca.crt")}
    answer, names = asked({**trust, "tls-server-name": "kubernetes.default.svc"}, {})
    assert (answer, names) == ({"subject": ""}, ["kubernetes.default.svc"])
    answer, _ = asked({**trust, "tls-server-name": "elsewhere.example"}, {})
    assert isinstance(answer, Failure)
    assert "certificate is not valid for 'elsewhere.example'" in answer.message


def test_nobody_is_trusted_without_an_authority_unless_verification_is_switched_off(asked: Asked) -> None:
    answer, _ = asked({}, {})
    assert isinstance(answer, Failure)
    assert asked({"insecure-skip-tls-verify": True}, {})[0] == {"subject": ""}


def test_a_cluster_whose_ca_lacks_an_extension_is_trusted_by_every_python_as_by_kubectl(
    pki: Path, tmp_path: Path
) -> None:
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(pki / "ca.crt")}
    tls = asyncio.run(connect(str(written(tmp_path / "config", cluster=cluster)))).tls
    assert tls is not None
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert not tls.verify_flags & ssl.VERIFY_X509_STRICT
