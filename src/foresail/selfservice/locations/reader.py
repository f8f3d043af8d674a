"""The background read of a tenant's Secret: only if its requester may read it, and only one key of it."""

import logging
from typing import Protocol, TypeVar

from foresail.api.authorization import SUBJECT_ACCESS_REVIEW, Review
from foresail.api.core import SECRET, Secret
from foresail.kube.failures import Cause, Failure
from foresail.plan import Body, Key, Kind
from foresail.selfservice.locations.credentials import credentials_of
from foresail.selfservice.locations.view import CredentialsCheck, CredentialsChecked

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Reads(Protocol):
    """What is asked of the API server."""

    async def create(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        """Create an object; an access review is answered and not stored."""

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        """Read one object."""


class SecretReader:
    """Reads Secrets of tenants that have given the operator access to them."""

    def __init__(self, server: Reads | None) -> None:
        self._server = server

    async def run(self, query: CredentialsCheck) -> CredentialsChecked:
        """Return the credentials, or why there are none."""
        if self._server is None:
            return CredentialsChecked(problem="The API server did not answer")
        where = f"Secret {query.name} in namespace {query.namespace}"
        may = await self._server.create(SUBJECT_ACCESS_REVIEW, Key("", ""), _review(query), Review)
        if isinstance(may, Failure):
            return _unanswered(where, may)
        if not may.status.allowed:
            return CredentialsChecked(
                problem=f"{query.user} may not read {where}; create the location as a user who may"
            )
        secret = await self._server.get(SECRET, Key(query.namespace, query.name), Secret)
        if isinstance(secret, Failure):
            return _unanswered(where, secret)
        return _credentials(where, query.key, secret)


def _credentials(where: str, key: str, secret: Secret) -> CredentialsChecked:
    content = (secret.data or {}).get(key)
    if content is None:
        return CredentialsChecked(problem=f"{where} has no key {key}; correct the Secret or the location")
    credentials = credentials_of(content)
    if isinstance(credentials, str):
        return CredentialsChecked(problem=f"Key {key} of {where} cannot be used: {credentials}")
    return CredentialsChecked(credentials)


def _unanswered(where: str, failure: Failure) -> CredentialsChecked:
    if failure.cause is Cause.NOT_FOUND:
        return CredentialsChecked(problem=f"{where} does not exist; create it")
    if failure.cause is Cause.FORBIDDEN:
        text = f"The operator may not read {where}"
        return CredentialsChecked(problem=f"{text}; let a namespace administrator run foresail location grant")
    _log.warning("cannot read %s: %s", where, failure)
    return CredentialsChecked(
        problem=f"Cannot read {where} ({failure.cause.value}); the operator retries automatically"
    )


def _review(query: CredentialsCheck) -> Body:
    attributes = {"verb": "get", "group": "", "resource": "secrets", "namespace": query.namespace, "name": query.name}
    spec = {"user": query.user, "groups": list(query.groups), "resourceAttributes": attributes}
    kind = SUBJECT_ACCESS_REVIEW
    return {"apiVersion": kind.api_version, "kind": kind.name, "spec": spec}
