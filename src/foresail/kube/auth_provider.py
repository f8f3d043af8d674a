"""Authenticates with an auth-provider of a kubeconfig, which Kubernetes has deprecated, by the official client."""

from typing import TYPE_CHECKING

from foresail.kube.credentials import Credentials

if TYPE_CHECKING:
    from foresail.kube.kubeconfig import Entry

_EXTRA = "install the extra foresail[auth-provider], or configure an exec plugin"


class AuthProvider:
    """A token of an auth-provider; the official client refreshes it when the credentials are renewed."""

    def __init__(self, user: "Entry", paths: str, context: str) -> None:
        self._user, self._paths, self._context = user, paths, context
        self._last: Credentials | None = None

    async def __call__(self) -> Credentials:
        """Return the token; an error of the official client is reported by its type alone, for it may quote secrets."""
        if self._last is None:
            self._last = await self._load()
        return self._last

    async def _load(self) -> Credentials:
        try:
            from kubernetes.aio import config  # noqa: PLC0415 - an extra, and its import takes half a second
            from kubernetes.aio.client import Configuration  # noqa: PLC0415
        except ImportError:
            raise self._user.error(f"auth-provider is not supported by itself; {_EXTRA}") from None
        configuration = Configuration()
        try:
            await config.load_kube_config(self._paths, self._context, configuration, persist_config=False)
        except Exception as error:  # noqa: BLE001 - it lists none
            raise self._user.error(f"auth-provider failed ({type(error).__name__}); log in again") from None
        token = configuration.api_key.get("BearerToken")
        if not token:
            raise self._user.error("auth-provider returned no token; log in again")
        return Credentials(str(token))
