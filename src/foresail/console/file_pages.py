"""The pages of files that Velero keeps: the log of a backup or a restore, and what is in a backup."""

from collections.abc import Sequence

from foresail.cli.tenant.held import HeldKind
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.console.layout import Site, cut, shell
from foresail.console.web.markup import Html, element
from foresail.console.web.parts import data_table, section

LOG, CONTENTS = "log", "contents"
"""The files, as they are named in paths."""

MOST_LOG = 256 << 10
"""Bytes of a log that are shown: its end."""

LARGEST_LOG = 32 << 20
"""Bytes of a log that are read for its end."""

_MOST_KINDS = 500
_LONGEST_NAMES = 2000


def log(site: Site, request: TenantRequest, text: str) -> Html:
    """Return the end of a log."""
    shown = element("pre", text or "The log is empty.", class_="scroll", tabindex=0, role="region", aria_label="Log")
    note = element("p", f"At most the last {MOST_LOG >> 10} KiB are shown.", class_="note")
    return shell(
        site,
        f"Log of {request.key.name}",
        _command(request, "logs"),
        _back(site, request),
        section(LOG, "Log", note, shown),
    )


def contents(site: Site, request: TenantRequest, held: Sequence[HeldKind]) -> Html:
    """Return the objects of a backup by their kinds."""
    rows = [
        (cut(kind.title), cut(kind.api_version), str(len(kind.names)), cut(", ".join(kind.names), _LONGEST_NAMES))
        for kind in held[:_MOST_KINDS]
    ]
    more = len(held) - _MOST_KINDS
    rest = element("p", f"{more} more kinds: use the command line.", class_="note") if more > 0 else None
    table = data_table("Contents", ("kind", "API version", "count", "names"), rows, "The backup is empty.")
    count = sum(len(kind.names) for kind in held)
    told = element("p", f"{count} objects of {len(held)} kinds.")
    same = _command(request, "contents")
    title = f"Contents of {request.key.name}"
    return shell(site, title, same, _back(site, request), section(CONTENTS, "Contents", told, table, rest))


def _back(site: Site, request: TenantRequest) -> Html:
    path = site.link("ns", request.key.namespace, request.family.word, request.key.name)
    return element("p", element("a", f"{request.family.kind.name} {request.key.name}", href=path))


def _command(request: TenantRequest, verb: str) -> str:
    return f"foresail {request.family.word} {verb} {request.key.name} -n {request.key.namespace}"
