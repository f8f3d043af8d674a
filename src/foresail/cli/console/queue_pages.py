"""The page of the queue: who runs, who waits and why, and the share of each tenant."""

from collections.abc import Sequence

from foresail.cli.console.layout import Search, Site, cut, searched, shell
from foresail.cli.console.live import digest
from foresail.cli.console.pages import namespace_link, request_link, status_badge
from foresail.cli.policy.shares import TenantShare, is_running
from foresail.cli.policy.use import share
from foresail.cli.tenant.explain import summary
from foresail.cli.tenant.get import why
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.cli.web.markup import Html, element
from foresail.cli.web.parts import badge, command, data_table, section, tile, tiles

_ROWS = ("name", "namespace", "kind", "state", "status", "queue", "why")
_SHARES = ("namespace", "policy", "weight", "share", "running", "waiting", "backups")
_MOST = 200


def queue(site: Site, found: Sequence[TenantRequest], shares: Sequence[TenantShare], search: Search) -> Html:
    """Return the open requests in the order in which they are served, and the share of each namespace."""
    running = sum(map(is_running, found))
    names = [str(each.key) for each in found]
    cells = [
        (
            request_link(site, each),
            namespace_link(site, each.key.namespace),
            each.family.word,
            badge("runs", "good") if is_running(each) else badge("waits", "warn"),
            status_badge(each),
            str(each.position) if each.position else "n/a",
            cut(why(each, in_full=True) or summary(each)),
        )
        for each in found
    ]
    told = element("p", "Weights come from the SelfServicePolicy: ", command("foresail policy usage -A"), class_="note")
    more = len(shares) - _MOST
    rest = element("p", f"{more} more namespaces.", class_="note") if more > 0 else None
    rows = [_share(site, each) for each in shares[:_MOST]]
    return shell(
        site,
        "Queue",
        "foresail backup get -A",
        tiles(
            tile("Running", str(running), "backups and restores"),
            tile("Waiting", str(len(found) - running), "backups and restores", "warn" if len(found) > running else ""),
            tile("Namespaces", str(len(shares)), "with open requests"),
        ),
        section("requests", "Requests", searched(site, "queue", "Requests", _ROWS, names, cells.__getitem__, search)),
        section("shares", "Shares", data_table("Shares", _SHARES, rows, "No namespace waits."), rest, told),
        live=site.link("live", seen=digest(found)),
    )


def _share(site: Site, each: TenantShare) -> tuple[Html | str, ...]:
    return (
        namespace_link(site, each.namespace),
        each.policy or "none",
        str(each.weight),
        f"{each.share:.0%}",
        str(each.running),
        str(each.waiting),
        share(*each.stored),
    )
