"""What the canary tries, and what it makes of an answer."""

import asyncio

from foresail.cli.in_pods import reached, targets

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_it_tries_the_api_server_dns_and_what_it_was_told() -> None:
    found = targets(["bucket=192.0.2.1:9000"], POD, "search x\nnameserver 10.0.0.10\nnameserver fd00::a\n")
    assert found == {
        "API server": "10.0.0.1:443",
        "DNS server 10.0.0.10": "10.0.0.10:53",
        "DNS server fd00::a": "[fd00::a]:53",
        "bucket": "192.0.2.1:9000",
    }


def test_without_an_api_server_there_is_nothing_to_say() -> None:
    assert targets(["bucket=192.0.2.1:9000"], {}, "") == {}


def test_only_what_accepts_a_connection_is_reached() -> None:
    async def tried() -> list[str]:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            return await reached({"open": f"127.0.0.1:{port}", "refused": "127.0.0.1:1", "wrong": "nowhere"}, 2.0)

    assert asyncio.run(tried()) == ["open"]
