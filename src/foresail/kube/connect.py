"""Finds the API server and our credentials: in a kubeconfig, or as a pod's ServiceAccount."""

import asyncio
import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

from foresail.kube.clock import now, steady
from foresail.kube.credentials import Credentials, CredentialSource, TokenFile, anonymous, credential_source
from foresail.kube.kubeconfig import Entry, KubeconfigError, Secretive, context_names, kubeconfig_paths, read_context

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConnectError(Exception):
    """No usable configuration or credentials; the message names the searched locations."""


class _Settings(Secretive, frozen=True):
    server: str
    authority: bytes
    credentials: CredentialSource
    is_insecure: bool = False
    server_name: str = ""
    proxy: str = ""  # may hold a password
    impersonation: tuple[tuple[str, str], ...] = ()


def skew_since(answered: datetime, since: timedelta, clock: datetime) -> timedelta:
    """Return by how much a clock is ahead of the API server's, which gave this time so long ago."""
    return clock - answered - since


class Connection:
    """The API server's address, its TLS settings, and the headers that authenticate us."""

    def __init__(self, load: Callable[[], _Settings], settings: _Settings, credentials: Credentials) -> None:
        self._load = load
        self._settings = settings
        self._trusted = _trust(settings, credentials)
        self.tls = _tls(settings, credentials)
        self._renewing = asyncio.Lock()
        self._renewals = 0
        self._last_answer: tuple[str, float] | None = None  # its header Date, and when it came by the monotonic clock

    def note_date(self, date: str) -> None:
        """Note the header Date of an answer that has just come."""
        if date and (self._last_answer is None or date != self._last_answer[0]):
            self._last_answer = date, steady()

    @property
    def skew(self) -> timedelta | None:
        """By how much our clock is ahead of the API server's now, by its last answer; None if that is unknown.

        The time since that answer is measured on the monotonic clock: our wall clock may have been set meanwhile.
        """
        if self._last_answer is None:
            return None
        date, came = self._last_answer
        time = date_of(date)
        return None if time is None else skew_since(time, timedelta(seconds=steady() - came), now())

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self._settings.server

    @property
    def server_name(self) -> str:
        """The name in the server's certificate, if it is not that of the URL."""
        return self._settings.server_name

    @property
    def proxy(self) -> str:
        """The URL of the proxy; empty without one."""
        return self._settings.proxy

    async def headers(self) -> list[tuple[str, str]]:
        """Return the authorization for one request; credentials that are about to expire are renewed first."""
        try:
            credentials = await self._settings.credentials()
            self._use(self._settings, credentials)
        except (KubeconfigError, OSError) as error:
            raise _no_credentials(error) from error
        given = [("Authorization", credentials.authorization)] if credentials.authorization else []
        return [*self._settings.impersonation, *given]

    async def renew(self) -> None:
        """Read credentials and certificates again: the server has refused ours, or we its certificate.

        Concurrent calls share one renewal.
        """
        before = self._renewals
        async with self._renewing:
            if self._renewals != before:
                return
            try:
                settings = self._load()
                self._refuse_other_server(settings)
                self._use(settings, await settings.credentials())
            except (KubeconfigError, OSError) as error:
                raise _no_credentials(error) from error
            self._renewals += 1

    def _refuse_other_server(self, settings: _Settings) -> None:
        if settings.server != self.server:
            raise KubeconfigError(f"the API server is {settings.server} now, and was {self.server}; start again")

    def _use(self, settings: _Settings, credentials: Credentials) -> None:
        """Use these settings; without a change of certificates the open connections stay in use."""
        trusted = _trust(settings, credentials)
        if trusted != self._trusted:
            self.tls = _tls(settings, credentials)
        self._settings = settings
        self._trusted = trusted


def _no_credentials(error: Exception) -> ConnectError:
    # A token file that is being replaced, an exec plugin that cannot reach its own server:
    # they may be there a moment later, so it must not end the process.
    return ConnectError(f"cannot read the credentials for the API server, retrying: {error}")


async def connect(
    kubeconfig: str | None = None, context: str | None = None, as_user: str = "", as_groups: tuple[str, ...] = ()
) -> Connection:
    """Connect with a kubeconfig (KUBECONFIG and ~/.kube/config by default), or as a pod's ServiceAccount.

    In a pod without a kubeconfig of its own the ServiceAccount is used. The context is chosen once: whoever changes the
    current context of the kubeconfig later does not move a command that runs to another cluster.
    """
    try:
        own = _from_pod if _is_pods_own(kubeconfig, context) else _kubeconfig_loader(kubeconfig, context)
        load = _impersonating(own, as_user, as_groups) if as_user else own
        settings = load()
        return Connection(load, settings, await settings.credentials())
    except KubeconfigError as error:
        raise ConnectError(str(error)) from error
    except OSError as error:
        raise ConnectError(f"kubeconfig {kubeconfig_paths(kubeconfig)} cannot be used: {error}") from error


def namespace_of_context(kubeconfig: str | None = None, context: str | None = None) -> str:
    """Return the namespace that a context of the kubeconfig works in; in a pod without a kubeconfig, the pod's own."""
    if _is_pods_own(kubeconfig, context):
        return (_SERVICE_ACCOUNT / "namespace").read_text().strip()
    try:
        return read_context(kubeconfig_paths(kubeconfig), context).namespace
    except KubeconfigError as error:
        raise ConnectError(str(error)) from error


def cluster_of_context(kubeconfig: str | None = None, context: str | None = None) -> tuple[str, str]:
    """Return the name of a context and the host of its API server; in a pod without a kubeconfig, no name."""
    try:
        if _is_pods_own(kubeconfig, context):
            return "", host_of(_pods_server())
        chosen = read_context(kubeconfig_paths(kubeconfig), context)
        return chosen.name, host_of(chosen.cluster.text("server"))
    except KubeconfigError as error:
        raise ConnectError(str(error)) from error


def contexts_of(kubeconfig: str | None = None) -> list[str]:
    """Return the names of the contexts of the kubeconfig."""
    try:
        return context_names(kubeconfig_paths(kubeconfig))
    except KubeconfigError as error:
        raise ConnectError(str(error)) from error


def host_of(server: str) -> str:
    """Return host and port of a URL, without what may stand before them: a name and a password."""
    return urlsplit(server).netloc.rpartition("@")[2]


def _impersonating(load: Callable[[], _Settings], user: str, groups: tuple[str, ...]) -> Callable[[], _Settings]:
    headers = (("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups))
    return lambda: msgspec.structs.replace(load(), impersonation=headers)


def _is_pods_own(kubeconfig: str | None, context: str | None) -> bool:
    is_named = bool(kubeconfig or context or os.environ.get("KUBECONFIG"))
    return not is_named and (_SERVICE_ACCOUNT / "token").exists()


def _from_pod() -> _Settings:
    authority = (_SERVICE_ACCOUNT / "ca.crt").read_bytes()
    return _Settings(_pods_server(), authority, TokenFile(_SERVICE_ACCOUNT / "token"))


def _pods_server() -> str:
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{each}", "") for each in ("HOST", "PORT"))
    if not host or not port:
        raise KubeconfigError("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set in this pod")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


class Anonymous:
    """The API server of this pod, without an identity: each connection has the token that it is made with, or none.

    No kubeconfig and no ServiceAccount is read, whatever the environment names and wherever one is mounted.
    """

    def __init__(self, authority: bytes, server: str = "") -> None:
        try:
            self._server = server or _pods_server()
        except KubeconfigError as error:
            raise ConnectError(str(error)) from error
        if not _is_encrypted(self._server):
            raise ConnectError(f"{self._server} does not start with https://: tokens would not be encrypted")
        if not authority.strip():
            raise ConnectError("the file with the CA certificates of the API server is empty")
        self._authority = authority
        try:
            self.connection = self._made(Credentials())
        except ssl.SSLError as error:
            raise ConnectError(f"the CA certificates of the API server cannot be used: {error}") from error

    def with_token(self, token: str) -> Connection:
        """Return a connection that has this bearer token, and nothing else."""
        if not token:
            raise ConnectError("there is no token")
        return self._made(Credentials(f"Bearer {token}"))

    def _made(self, credentials: Credentials) -> Connection:
        async def given() -> Credentials:
            return credentials

        settings = _Settings(self._server, self._authority, given)
        return Connection(lambda: settings, settings, credentials)


def _kubeconfig_loader(kubeconfig: str | None, context: str | None) -> Callable[[], _Settings]:
    paths = kubeconfig_paths(kubeconfig)
    name = read_context(paths, context).name
    return lambda: _from_kubeconfig(paths, name)


def _from_kubeconfig(paths: str, name: str) -> _Settings:
    context = read_context(paths, name)
    cluster = context.cluster
    server = _server_of(cluster)
    proxy = cluster.text("proxy-url")
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise cluster.error("proxy-url does not start with http:// or https://; other proxies are not supported")
    authority = cluster.pem("certificate-authority")
    is_insecure = cluster.flag("insecure-skip-tls-verify")
    if authority and is_insecure:
        raise cluster.error("insecure-skip-tls-verify is set beside certificate-authority; remove one of them")
    return _Settings(
        server,
        authority,
        # As with kubectl: nothing secret goes over a connection that is not encrypted.
        credential_source(context) if _is_encrypted(server) else anonymous,
        is_insecure,
        cluster.text("tls-server-name"),
        proxy,
        _impersonation(context.user),
    )


def _server_of(cluster: Entry) -> str:
    """Return the URL of the API server with its scheme in lower case, as every reader of a URL takes it."""
    try:
        parts = urlsplit(cluster.text("server"))
        if parts.scheme in ("http", "https") and parts.port != 0:
            return parts.geturl().rstrip("/")
    except ValueError:
        pass  # such as a port that is not a number
    raise cluster.error("server is not a URL that starts with https:// or http://")


def _is_encrypted(server: str) -> bool:
    return urlsplit(server).scheme == "https"


def _impersonation(user: Entry) -> tuple[tuple[str, str], ...]:
    """Return the headers for the fields as, as-uid, as-groups and as-user-extra."""
    single = (("Impersonate-User", user.text("as")), ("Impersonate-Uid", user.text("as-uid")))
    groups = user.fields.get("as-groups") or []
    extra = user.fields.get("as-user-extra") or {}
    if not isinstance(groups, list) or not isinstance(extra, dict):
        raise user.error("as-groups is not a list, or as-user-extra is not an object")
    return (
        *(header for header in single if header[1]),
        *(("Impersonate-Group", str(group)) for group in groups),
        # As with kubectl: the name of a header cannot have every character that a key can.
        *(
            (f"Impersonate-Extra-{quote(str(key), safe='')}", str(value))
            for key, values in extra.items()
            for value in values
        ),
    )


def _trust(settings: _Settings, credentials: Credentials) -> tuple[object, ...]:
    """Return what the TLS settings are made from."""
    return settings.authority, settings.is_insecure, credentials.certificate, credentials.key


def _tls(settings: _Settings, credentials: Credentials) -> ssl.SSLContext | None:
    if not _is_encrypted(settings.server):
        return None
    context = ssl.create_default_context(cadata=settings.authority.decode("ascii", "replace") or None)
    # As with kubectl: Python is strict from 3.13 on, and refuses the CA of many a cluster, which lacks an extension.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if settings.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credentials.certificate:
        from tempfile import NamedTemporaryFile  # noqa: PLC0415 - few identities are certificates

        # Python's ssl loads a certificate of its own from a file only. This one is readable to its owner alone.
        with NamedTemporaryFile() as file:
            file.write(credentials.certificate + b"\n" + credentials.key)
            file.flush()
            context.load_cert_chain(file.name, password=b"")  # without a password OpenSSL would ask the terminal
    return context


def date_of(header: str) -> datetime | None:
    """Return the time in a header Date; None if there is none."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - only few commands ask for the time

    try:
        time = parsedate_to_datetime(header)
    except (ValueError, OverflowError, TypeError):
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
