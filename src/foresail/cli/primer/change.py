"""`foresail primer suspend` and `resume`."""

import argparse
import sys

from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster
from foresail.cli.primer.place import in_namespace
from foresail.plan import Key


def suspend(chosen: argparse.Namespace) -> int:
    """Let Primers hold nothing."""
    return in_namespace(chosen, lambda cluster: _set(cluster, chosen, suspended=True))


def resume(chosen: argparse.Namespace) -> int:
    """Let Primers hold capacity again."""
    return in_namespace(chosen, lambda cluster: _set(cluster, chosen, suspended=False))


async def _set(cluster: Cluster, chosen: argparse.Namespace, *, suspended: bool) -> int:
    for name in chosen.names:
        await cluster.merge(PRIMER, Key(chosen.namespace, name), {"spec": {"suspend": suspended}})
        print(f"Primer {name} {'suspended' if suspended else 'resumed'}", file=sys.stderr)
    return 0
