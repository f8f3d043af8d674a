"""Finds the API server and our credentials through the official client's configuration.

Its import costs half a second and 55 MiB, so only the call that connects imports it.
"""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foresail.kube.kubeconfig import kubeconfig_paths, kubeconfig_problem

_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


class ConnectError(Exception):
    """No usable configuration or credentials; the message names the searched locations."""


@dataclass(slots=True)
class Connection:
    """The API server's address, its TLS settings, and the headers that authenticate us."""

    server: str
    _configuration: Any = field(repr=False)
    _reload: Callable[[Any], Awaitable[None]] = field(repr=False)
    tls: ssl.SSLContext | None = field(init=False)
    _certificates: tuple[bytes, ...] = field(init=False, repr=False)  # as read, to notice a change

    def __post_init__(self) -> None:
        self._certificates = _read_certificates(self._configuration)
        self.tls = _tls(self._configuration)

    async def headers(self) -> dict[str, str]:
        """Return the authorisation for one request; the configuration renews a token that is about to expire."""
        try:
            settings = await self._configuration.auth_settings()
        except Exception as error:
            raise _no_credentials(error) from error
        return {each["key"]: each["value"].strip() for each in settings.values() if each.get("value")}

    async def renew(self) -> None:
        """Read credentials and certificates again: the server has refused ours, or we its certificate."""
        try:
            await self._reload(self._configuration)
            certificates = _read_certificates(self._configuration)
            if certificates != self._certificates:  # else the open connections stay in use
                self.tls = _tls(self._configuration)
                self._certificates = certificates
        except Exception as error:
            raise _no_credentials(error) from error


def _no_credentials(error: Exception) -> ConnectError:
    # Any error at all: a token file that is being replaced, an exec plugin that cannot reach its own server.
    # They may be there a moment later, so it must not end the process.
    return ConnectError(f"the credentials for the API server cannot be read, trying again: {error}")


async def connect(kubeconfig: str | None = None, context: str | None = None) -> Connection:
    """Connect with a kubeconfig (KUBECONFIG and ~/.kube/config by default), or as a pod's ServiceAccount.

    In a pod without a kubeconfig of its own the ServiceAccount is used.
    """
    paths = _checked_paths(kubeconfig, context)

    from kubernetes.aio import config  # noqa: PLC0415 - see the module's docstring
    from kubernetes.aio.client import Configuration  # noqa: PLC0415
    from kubernetes.aio.config.config_exception import ConfigException  # noqa: PLC0415

    async def from_kubeconfig(into: Any) -> None:  # noqa: ANN401 - the official client has no types
        await config.load_kube_config(paths, context, into, persist_config=False)

    async def from_pod(into: Any) -> None:  # noqa: ANN401
        config.load_incluster_config(into)

    reload = from_pod if _is_pods_own(kubeconfig, context) else from_kubeconfig
    configuration = Configuration()
    try:
        await reload(configuration)
        return Connection(configuration.host.rstrip("/"), configuration, reload)
    except (ConfigException, OSError) as error:
        raise ConnectError(f"kubeconfig {paths} cannot be used: {error}") from error


def namespace_of_context(kubeconfig: str | None = None, context: str | None = None) -> str:
    """Return the namespace that a context of the kubeconfig works in; in a pod without a kubeconfig, the pod's own."""
    paths = _checked_paths(kubeconfig, context)

    from kubernetes.aio import config  # noqa: PLC0415 - see the module's docstring
    from kubernetes.aio.config.config_exception import ConfigException  # noqa: PLC0415

    if _is_pods_own(kubeconfig, context):
        return Path(_SERVICE_ACCOUNT).with_name("namespace").read_text().strip()
    try:
        known, current = config.list_kube_config_contexts(paths)
    except (ConfigException, OSError) as error:
        raise ConnectError(f"kubeconfig {paths} cannot be used: {error}") from error
    wanted = context or current["name"]
    found = [each["context"].get("namespace") for each in known if each["name"] == wanted]
    return str(next(iter(found), None) or "default")


def _checked_paths(kubeconfig: str | None, context: str | None) -> str:
    """Return the paths of the kubeconfig, which is not looked at in a pod that uses its ServiceAccount."""
    paths = kubeconfig_paths(kubeconfig)
    problem = None if _is_pods_own(kubeconfig, context) else kubeconfig_problem(paths, context)
    if problem is not None:
        raise ConnectError(problem)
    return paths


def _is_pods_own(kubeconfig: str | None, context: str | None) -> bool:
    return kubeconfig is None and context is None and Path(_SERVICE_ACCOUNT).exists()


def _read_certificates(configuration: Any) -> tuple[bytes, ...]:  # noqa: ANN401
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return (*(Path(each).read_bytes() for each in files if each), str(configuration.ca_cert_data).encode())


def _tls(configuration: Any) -> ssl.SSLContext | None:  # noqa: ANN401
    if not configuration.host.startswith("https:"):
        return None
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
