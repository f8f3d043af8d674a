"""The cluster's certificates, made by openssl: one authority, one server certificate, one for each user."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import TestbedError

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_DAYS = "3650"


def make_authority(folder: Path, addresses: Sequence[str] = ()) -> None:
    """Make the authority, the certificate that every server of the cluster shows, and the token signing key.

    Clients also find the servers at these addresses, besides loopback.
    """
    folder.mkdir(parents=True)
    named = [f"IP:{address}" for address in addresses]
    _openssl(
        "req", "-x509", *_KEY, "-days", _DAYS, "-subj", "/CN=testbed",
        "-keyout", folder / "ca.key", "-out", folder / "ca.crt",
    )  # fmt: skip
    _certificate(
        folder, "server", "/CN=127.0.0.1",
        ",".join(["subjectAltName=IP:127.0.0.1", *named, "DNS:localhost", "DNS:kubernetes.default.svc"]),
        "extendedKeyUsage=serverAuth",
    )  # fmt: skip
    private, public = folder / "service-accounts.key", folder / "service-accounts.pub"
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", private)
    _openssl("pkey", "-in", private, "-pubout", "-out", public)


def client_certificate(folder: Path, user: str, groups: Sequence[str]) -> tuple[Path, Path]:
    """Return certificate and key with which the API server takes their holder for that user in those groups."""
    name = "user-" + user.replace("/", "_")
    subject = "".join(f"/{kind}={_escaped(value)}" for kind, value in [*(("O", g) for g in groups), ("CN", user)])
    _certificate(folder, name, subject, "extendedKeyUsage=clientAuth")
    return folder / f"{name}.crt", folder / f"{name}.key"


def signature(folder: Path, text: bytes) -> bytes:
    """Return the signature of a text with the token signing key, as a token carries it: two numbers of 32 bytes."""
    file = folder / "to-sign"
    file.write_bytes(text)
    _openssl("dgst", "-sha256", "-sign", folder / "service-accounts.key", "-out", folder / "signed", file)
    der = (folder / "signed").read_bytes()  # openssl writes each number with its length before it
    first = der[4 : 4 + der[3]]
    second = der[6 + len(first) : 6 + len(first) + der[5 + len(first)]]
    return b"".join(number[-32:].rjust(32, b"\0") for number in (first, second))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("/", "\\/").replace("+", "\\+")


def _certificate(folder: Path, name: str, subject: str, *extensions: str) -> None:
    added = [
        word for extension in ("basicConstraints=critical,CA:FALSE", *extensions) for word in ("-addext", extension)
    ]
    _openssl(
        "req", "-x509", *_KEY, "-days", _DAYS, "-subj", subject, *added,
        "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
        "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt",
    )  # fmt: skip


def _openssl(*arguments: str | Path) -> None:
    try:
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)  # noqa: S607 - the user's own
    except FileNotFoundError:
        raise TestbedError("there is no `openssl` command", "install OpenSSL 3 and put it on PATH") from None
    if done.returncode != 0:
        raise TestbedError(
            f"openssl {arguments[0]} failed: {done.stderr.strip()}", "the testbed needs OpenSSL 3.0 or newer"
        )
