"""The credentials of one identity, renewed in time: a token, a token file, a certificate or an exec plugin.

An exec plugin is a program that prints credentials (client.authentication.k8s.io).
"""

import asyncio
import base64
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from foresail.kube import clock
from foresail.kube.kubeconfig import Context, Entry, KubeconfigError, Secretive

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
_UNATTENDED_SECONDS = 120.0


class ExecCredential(Secretive, frozen=True):
    """What a plugin printed."""

    token: str
    certificate: bytes
    key: bytes
    expires: datetime | None


class ExecPlugin(Secretive, frozen=True):
    """How a kubeconfig asks to run the plugin: arguments and variables may hold secrets."""

    user: Entry
    version: str
    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    interactive_mode: str
    install_hint: str
    cluster: Mapping[str, Any] | None

    async def run(self) -> ExecCredential:
        """Run the plugin; its standard error goes to ours, as with kubectl, and its output into no message."""
        interactive = self._is_interactive()
        try:
            process = await asyncio.create_subprocess_exec(
                self.command,
                *self.arguments,
                env={**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": json.dumps(self._request(interactive))},
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"; {self.install_hint.strip()}" if self.install_hint else "; install it, or correct its path"
            raise self._error(f"cannot be started: {error.strerror}{hint}") from None
        try:
            async with asyncio.timeout(None if interactive else _UNATTENDED_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            raise self._error(f"has not ended after {_UNATTENDED_SECONDS:.0f} s; run it by hand to see why") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._error(f"ended with exit code {process.returncode}; run it by hand to see why")
        return self._parse(output)

    def _is_interactive(self) -> bool:
        has_terminal = sys.stdin is not None and sys.stdin.isatty()
        if self.interactive_mode == "Always" and not has_terminal:
            raise self._error("needs a terminal (interactiveMode: Always); run this command in one")
        return has_terminal and self.interactive_mode != "Never"

    def _request(self, interactive: bool) -> dict[str, Any]:  # noqa: FBT001 - a field of the request
        spec: dict[str, Any] = {"interactive": interactive}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        return {"apiVersion": self.version, "kind": "ExecCredential", "spec": spec}

    def _parse(self, output: bytes) -> ExecCredential:
        try:
            answer = json.loads(output)
        except ValueError:
            raise self._error("printed no JSON; it must print an ExecCredential") from None
        if not isinstance(answer, dict) or (answer.get("kind"), answer.get("apiVersion")) != (
            "ExecCredential",
            self.version,
        ):
            raise self._error(f"printed no ExecCredential of {self.version}")
        status = answer.get("status")
        item = status if isinstance(status, dict) else {}
        token, certificate, key, expires = (
            str(item.get(name) or "")
            for name in ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
        )
        if bool(certificate) != bool(key):
            raise self._error("printed one of clientCertificateData and clientKeyData; it must print both")
        if not token and not certificate:
            raise self._error("printed neither a token nor a client certificate")
        return ExecCredential(token, certificate.encode(), key.encode(), self._instant(expires))

    def _instant(self, text: str) -> datetime | None:
        if not text:
            return None
        try:
            instant = datetime.fromisoformat(text)
        except ValueError:
            instant = None
        if instant is None or instant.tzinfo is None:
            raise self._error("printed an expirationTimestamp that is not RFC 3339")
        return instant

    def _error(self, problem: str) -> KubeconfigError:
        return self.user.error(f"exec plugin {self.command} {problem}")


def exec_plugin(user: Entry, cluster: Entry) -> ExecPlugin | None:
    """Return the exec plugin of a user; None if the user has none."""
    fields = user.fields.get("exec")
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise user.error("exec is not an object")
    settings = Entry(user.name, user.file, fields)
    version = settings.text("apiVersion")
    command = settings.text("command")
    if version not in _VERSIONS:
        raise user.error(f"exec: apiVersion {version!r} is not one of {', '.join(_VERSIONS)}")
    if not command:
        raise user.error("exec: command is not set")
    mode = settings.text("interactiveMode") or ("IfAvailable" if version.endswith("beta1") else "")
    if mode not in _INTERACTIVE_MODES:
        raise user.error(f"exec: interactiveMode {mode!r} is not one of {', '.join(_INTERACTIVE_MODES)}")
    return ExecPlugin(
        user,
        version,
        str(user.file.absolute().parent / command) if os.sep in command else command,
        _arguments(user, fields.get("args")),
        _environment(user, fields.get("env")),
        mode,
        settings.text("installHint"),
        _cluster_info(cluster) if settings.flag("provideClusterInfo") else None,
    )


def _arguments(user: Entry, listed: object) -> tuple[str, ...]:
    arguments = listed or []
    if not isinstance(arguments, list) or not all(isinstance(item, str) for item in arguments):
        raise user.error("exec: args is not a list of texts")
    return tuple(arguments)


def _environment(user: Entry, listed: object) -> dict[str, str]:
    variables = listed or []
    if not isinstance(variables, list):
        raise user.error("exec: env is not a list of names and values")
    try:
        return {str(item["name"]): str(item["value"]) for item in variables}
    except (KeyError, TypeError):
        raise user.error("exec: an item of env has no name or no value") from None


def _cluster_info(cluster: Entry) -> dict[str, Any]:
    """Return the cluster as plugins receive it, with the configuration that its extension has for them."""
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
    info = {name: cluster.fields[name] for name in names if name in cluster.fields}
    authority = cluster.pem("certificate-authority")
    if authority:
        info["certificate-authority-data"] = base64.b64encode(authority).decode()
    for item in cluster.fields.get("extensions") or []:
        if isinstance(item, dict) and item.get("name") == f"{_GROUP}/exec":
            info["config"] = item.get("extension")
    return info


_REREAD_SECONDS = 60.0  # a kubelet replaces a token when a fifth of its life is left, at least two minutes
_BEFORE_EXPIRY = timedelta(seconds=10)


class Credentials(Secretive, frozen=True):
    """What authenticates requests."""

    authorization: str = ""
    certificate: bytes = b""
    key: bytes = b""


CredentialSource = Callable[[], Awaitable[Credentials]]
"""Returns credentials for the next request; from a cache as long as they last."""


class TokenFile:
    """A bearer token in a file that may be replaced; read again every minute."""

    def __init__(self, path: Path, certificate: bytes = b"", key: bytes = b"") -> None:
        self._path = path
        self._certificate = certificate
        self._key = key
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
                credentials = await self._plugin.run()
                authorization = f"Bearer {credentials.token}" if credentials.token else ""
                self._last = Credentials(authorization, credentials.certificate, credentials.key)
                self._expires = credentials.expires
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
