"""Credentials for anyone: a certificate for any user, a token for any ServiceAccount, and kubeconfigs with them."""

import base64
import http.client
import json
import time
from collections.abc import Sequence
from pathlib import Path

from testbed import kubeconfig
from testbed.api import request
from testbed.errors import TestbedError
from testbed.pki import client_certificate, signature
from testbed.site import Site

_LENIENCE = 60  # seconds


def user_kubeconfig(site: Site, path: Path, user: str, groups: Sequence[str] = (), server: str | None = None) -> Path:
    """Write a kubeconfig with which one is that user, in those groups, at the API server's usual address or another."""
    certificate, key = client_certificate(site.pki, user, groups)
    user_entry = {
        "client-certificate-data": kubeconfig.encoded(certificate),
        "client-key-data": kubeconfig.encoded(key),
    }
    return kubeconfig.write(path, server or site.server, site.pki / "ca.crt", user_entry)


def service_account_token(site: Site, namespace: str, name: str, seconds: int = 24 * 3600) -> str:
    """Ask the API server for a token of a ServiceAccount that exists; it gives none for less than 600 seconds."""
    answer = request(
        "POST",
        f"{site.server}/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
        site.admin_trust,
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        },
    )
    if answer.code != http.client.CREATED:
        raise TestbedError(
            f"no token for ServiceAccount {namespace}/{name}: {answer.code} {answer.text}",
            "create the ServiceAccount first",
        )
    token: str = answer.json()["status"]["token"]
    return token


def expiring_token(site: Site, namespace: str, name: str, seconds: float) -> str:
    """Sign a token of a ServiceAccount with the cluster's own key: it can be as short-lived as nobody is given one.

    The API server is lenient by a minute, and remembers for ten seconds whom it has just let in. So the expiry that is
    written into the token lies a minute before the one that holds, and the ten seconds come on top.
    """
    account = request("GET", f"{site.server}/api/v1/namespaces/{namespace}/serviceaccounts/{name}", site.admin_trust)
    uid = account.json()["metadata"]["uid"]
    issuer, now = "https://kubernetes.default.svc", time.time()  # noqa: TID251 - a token holds for a time of day
    claims = {
        "iss": issuer,
        "aud": [issuer],
        "sub": f"system:serviceaccount:{namespace}:{name}",
        "iat": int(now) - 3600,
        "nbf": int(now) - 3600,
        "exp": int(now + seconds) - _LENIENCE,
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
    }
    text = b".".join(_url_safe(json.dumps(part).encode()) for part in ({"alg": "ES256", "typ": "JWT"}, claims))
    return b".".join((text, _url_safe(signature(site.pki, text)))).decode()


def _url_safe(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def service_account_kubeconfig(site: Site, path: Path, namespace: str, name: str, server: str | None = None) -> Path:
    """Write a kubeconfig with which one is that ServiceAccount, at the API server or at a proxy before it."""
    token = service_account_token(site, namespace, name)
    return kubeconfig.write(path, server or site.server, site.pki / "ca.crt", {"token": token})
