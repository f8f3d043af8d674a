"""The credentials of one identity, renewed in time: a token, a token file, a certificate or an exec plugin."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from foresail.kube import clock
from foresail.kube.exec_plugin import ExecPlugin, exec_plugin
from foresail.kube.kubeconfig import Context, Entry, KubeconfigError

_REREAD_SECONDS = 60.0  # a kubelet replaces a token when a fifth of its life is left, at least two minutes
_BEFORE_EXPIRY = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """What authenticates requests; it has no repr, because that would show secrets."""

    authorization: str = ""
    certificate: bytes = b""
    key: bytes = b""


CredentialSource = Callable[[], Awaitable[Credentials]]
"""Returns credentials for the next request; from a cache as long as they last."""


class TokenFile:
    """A bearer token in a file that may be replaced; read again every minute."""

    def __init__(self, path: Path, certificate: bytes = b"", key: bytes = b"") -> None:
        self._path, self._certificate, self._key = path, certificate, key
        self._read_at = clock.steady()
        self._token = self._read()

    async def __call__(self) -> Credentials:
        """Return the token; one that cannot be read just now leaves the last one in use until it is refused."""
        if clock.steady() - self._read_at >= _REREAD_SECONDS:
            self._read_at = clock.steady()
            with suppress(OSError, KubeconfigError):  # after a 401 the error is reported
                self._token = self._read()
        return Credentials(f"Bearer {self._token}", self._certificate, self._key)

    def _read(self) -> str:
        token = self._path.read_text().strip()
        if not token:
            raise KubeconfigError(f"the token file {self._path} is empty")
        return token


class PluginCredentials:
    """The output of an exec plugin, kept until shortly before it expires."""

    def __init__(self, plugin: ExecPlugin) -> None:
        self._plugin = plugin
        self._lock = asyncio.Lock()
        self._last: Credentials | None = None
        self._expires: datetime | None = None

    async def __call__(self) -> Credentials:
        """Return the plugin's credentials; the plugin runs once for all concurrent requests."""
        async with self._lock:
            if self._last is None or (self._expires is not None and clock.now() >= self._expires - _BEFORE_EXPIRY):
                found = await self._plugin.run()
                authorization = f"Bearer {found.token}" if found.token else ""
                self._last = Credentials(authorization, found.certificate, found.key)
                self._expires = found.expires
            return self._last


async def anonymous() -> Credentials:
    """Return no credentials."""
    return Credentials()


def credential_source(context: Context) -> CredentialSource:
    """Return the source of credentials that a user of a kubeconfig asks for."""
    user = context.user
    if user.fields.get("auth-provider") is not None:
        raise user.error("auth-provider is not supported; configure an exec plugin, such as kubelogin for OIDC")
    plugin = exec_plugin(user, context.cluster)
    if plugin is not None:
        return PluginCredentials(plugin)
    certificate = user.pem("client-certificate")
    key = user.pem("client-key")
    if bool(certificate) != bool(key):
        raise user.error("sets one of client-certificate and client-key; it must set both")
    token_file = user.path("tokenFile")
    if token_file is not None:
        return TokenFile(token_file, certificate, key)
    return _constant(Credentials(_authorization(user), certificate, key))


def _authorization(user: Entry) -> str:
    if user.text("token"):
        return f"Bearer {user.text('token').strip()}"
    if user.text("username"):
        pair = f"{user.text('username')}:{user.text('password')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    return ""


def _constant(credentials: Credentials) -> CredentialSource:
    async def same() -> Credentials:
        return credentials

    return same
