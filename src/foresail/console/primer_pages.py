"""The page of Primers: start delays cold against warm, the next fires, and how long capacity is held."""

from collections.abc import Sequence
from datetime import datetime

from foresail.cli.primer.get import HEADER, WIDE, short_cells, wide_cells
from foresail.cli.primer.selection import Document, key_of
from foresail.console.layout import Search, Site, cut, searched, shell
from foresail.console.pages import namespace_link
from foresail.console.web.markup import Html, element
from foresail.console.web.parts import section


def primers(site: Site, documents: Sequence[Document], search: Search, now: datetime) -> Html:
    """Return each Primer, and each CronJob that is primed by annotations."""
    header = (HEADER[0].lower(), "namespace", *(each.lower() for each in (*HEADER[1:], *WIDE)))
    cells = []
    for item in documents:
        name, *rest = map(cut, (*short_cells(item, now), *wide_cells(item, now)))
        cells.append((name, namespace_link(site, key_of(item).namespace), *rest))
    names = [str(key_of(item)) for item in documents]
    told = element("p", "Cold and warm are the medians of the last start delays.", class_="note")
    where = "-A" if site.is_administrator else f"-n {site.namespace}"
    table = searched(site, "primers", "Primers", header, names, cells.__getitem__, search)
    return shell(site, "Primers", f"foresail primer get {where} -o wide", section("primers", "Primers", told, table))
