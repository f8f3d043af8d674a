"""What one user, or one address, asked of the API server, read from its audit log: request metrics carry neither."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from testbed import replicas
from testbed.api import request
from testbed.errors import TestbedError
from testbed.site import Site

_POLL_SECONDS = 0.02
_WRITES = ("create", "update", "patch", "delete", "deletecollection")
_REVIEWS = ("reviews.authorization.k8s.io", "reviews.authentication.k8s.io")  # created, answered, and never stored


@dataclass(frozen=True, slots=True)
class Request:
    """One request: who asked what of which object, and what came back."""

    user: str
    verb: str
    uri: str
    resource: str  # as in a Role: "pods", "schedules.velero.io", "pods/status"; empty if it is none
    namespace: str
    name: str
    code: int
    at: datetime
    ended: bool  # False for a watch that is still open
    source: str = ""  # the address that it came from
    impersonated: str = ""  # the user that it acted as, if that is another

    @property
    def is_write(self) -> bool:
        """Whether it asked for something to be stored: neither a dry run nor a review does."""
        stores = self.verb in _WRITES and not self.resource.endswith(_REVIEWS)
        return stores and "dryRun=All" not in self.uri


def requests_of(site: Site, user: str, seconds: float = 60.0) -> list[Request]:
    """Return the requests of that user so far, in the order in which they came in."""
    return requests_where(site, lambda each: each.user == user, seconds)


def requests_from(site: Site, address: str, seconds: float = 60.0) -> list[Request]:
    """Return the requests from that address so far, whoever sent them, in the order in which they came in."""
    return requests_where(site, lambda each: each.source == address, seconds)


def requests_where(site: Site, matches: Callable[[Request], bool], seconds: float = 60.0) -> list[Request]:
    """Return the requests so far that match, in the order in which they came in; others take no memory."""
    if not site.options.audit:
        raise TestbedError(f"cluster {site.name!r} keeps no audit log", "bring it up with --audit")
    _wait_for_marker(site, seconds)
    found: dict[str, Request] = {}
    for entry in _entries(site):
        known = found.get(entry["auditID"])
        each = _request(entry)
        if known is not None:
            found[entry["auditID"]] = replace(known, ended=known.ended or each.ended)
        elif matches(each):
            found[entry["auditID"]] = each
    return sorted(found.values(), key=lambda r: r.at)


def _wait_for_marker(site: Site, seconds: float) -> None:
    # A line is written after its answer is sent. A request of our own, waited for, comes after all that matter.
    marker = f"/livez?marker={uuid.uuid4()}"
    servers = replicas.replicas(site.options, replicas.APISERVER)
    for each in servers:
        request("GET", site.url(each.port) + marker, site.admin_trust)
    deadline = time.monotonic() + seconds
    while sum(entry["requestURI"] == marker for entry in _entries(site)) < len(servers):
        if time.monotonic() > deadline:
            raise TestbedError(f"the audit log of {site.name!r} does not follow", "is the disk full?")
        time.sleep(_POLL_SECONDS)


def _entries(site: Site) -> Iterator[dict[str, Any]]:
    for file in sorted(site.audit_logs.glob("*.log")):  # a full log is set aside under a dated name
        with file.open() as lines:
            for line in lines:
                if line.endswith("\n"):  # the last line may be half written
                    yield json.loads(line)


def _request(entry: dict[str, Any]) -> Request:
    target = entry.get("objectRef", {})
    resource = target.get("resource", "")
    if target.get("apiGroup"):
        resource += "." + target["apiGroup"]
    if target.get("subresource"):
        resource += "/" + target["subresource"]
    return Request(
        user=entry["user"].get("username", ""),
        verb=entry["verb"],
        uri=entry["requestURI"],
        resource=resource,
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=entry.get("responseStatus", {}).get("code", 0),
        at=datetime.fromisoformat(entry["requestReceivedTimestamp"]),
        ended=entry["stage"] != "ResponseStarted",
        source=next(iter(entry.get("sourceIPs") or ()), ""),
        impersonated=entry.get("impersonatedUser", {}).get("username", ""),
    )
