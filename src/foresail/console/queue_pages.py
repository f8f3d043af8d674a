"""The page of the queue: who runs, who waits and why, and the share of each tenant."""

from collections.abc import Sequence

from foresail.cli.policy.get import share
from foresail.cli.policy.usage import TenantShare, is_running
from foresail.cli.tenant.explain import summary
from foresail.cli.tenant.get import why
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.console.layout import Search, Site, cut, searched, shell
from foresail.console.live import digest
from foresail.console.pages import namespace_link, request_link, status_badge
from foresail.console.web.markup import Html, element
from foresail.console.web.parts import badge, command, data_table, section, tile, tiles

_ROWS = ("name", "namespace", "kind", "state", "status", "queue", "why")
_SHARES = ("namespace", "policy", "weight", "share", "running", "waiting", "backups")
_MOST = 200


def queue(site: Site, requests: Sequence[TenantRequest], shares: Sequence[TenantShare], search: Search) -> Html:
    """Return the open requests in the order in which they are served, and the share of each namespace."""
    running = sum(map(is_running, requests))
    names = [str(request.key) for request in requests]
    cells = [
        (
            request_link(site, request),
            namespace_link(site, request.key.namespace),
            request.family.word,
            badge("runs", "good") if is_running(request) else badge("waits", "warn"),
            status_badge(request),
            str(request.position) if request.position else "n/a",
            cut(why(request, in_full=True) or summary(request)),
        )
        for request in requests
    ]
    told = element("p", "Weights come from the SelfServicePolicy: ", command("foresail policy usage -A"), class_="note")
    more = len(shares) - _MOST
    rest = element("p", f"{more} more namespaces.", class_="note") if more > 0 else None
    rows = [_share(site, tenant_share) for tenant_share in shares[:_MOST]]
    return shell(
        site,
        "Queue",
        "foresail backup get -A",
        tiles(
            tile("Running", str(running), "backups and restores"),
            tile(
                "Waiting",
                str(len(requests) - running),
                "backups and restores",
                "warn" if len(requests) > running else "",
            ),
            tile("Namespaces", str(len(shares)), "with open requests"),
        ),
        section("requests", "Requests", searched(site, "queue", "Requests", _ROWS, names, cells.__getitem__, search)),
        section("shares", "Shares", data_table("Shares", _SHARES, rows, "No namespace waits."), rest, told),
        live=site.link("live", seen=digest(requests)),
    )


def _share(site: Site, tenant_share: TenantShare) -> tuple[Html | str, ...]:
    return (
        namespace_link(site, tenant_share.namespace),
        tenant_share.policy or "none",
        str(tenant_share.weight),
        f"{tenant_share.share:.0%}",
        str(tenant_share.running),
        str(tenant_share.waiting),
        share(*tenant_share.stored),
    )
