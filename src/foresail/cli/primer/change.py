"""`foresail primer suspend` and `resume`."""

import argparse
import sys

from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster
from foresail.cli.output.objects import as_text
from foresail.cli.primer.selection import as_document, check_selection, in_namespace, key_of, selected_primers


def suspend(chosen: argparse.Namespace) -> int:
    """Make Primers hold nothing."""
    check_selection(chosen, everything=False)
    return in_namespace(chosen, lambda cluster: _set(cluster, chosen, suspended=True))


def resume(chosen: argparse.Namespace) -> int:
    """Make Primers hold capacity again."""
    check_selection(chosen, everything=False)
    return in_namespace(chosen, lambda cluster: _set(cluster, chosen, suspended=False))


async def _set(cluster: Cluster, chosen: argparse.Namespace, *, suspended: bool) -> int:
    changed = []
    for each in await selected_primers(cluster, chosen):
        key = key_of(each)
        changed.append(as_document(await cluster.merge(PRIMER, key, {"spec": {"suspend": suspended}})))
        print(f"Primer {key} {'suspended' if suspended else 'resumed'}", file=sys.stderr)
    if changed and chosen.output not in ("table", "wide"):
        print(as_text(changed, chosen.output))
    return 0
