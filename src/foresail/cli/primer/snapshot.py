"""A snapshot of what the operator observes: its own stores, filled by one read of each kind."""

import argparse
from typing import Any

import msgspec

from foresail.api import pods
from foresail.api.capacity_buffers import POD_TEMPLATE, capacity_buffer, served_kind
from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.kube.controller import Informer
from foresail.kube.reflector import Change
from foresail.plan import Key
from foresail.primers.controller import Primers
from foresail.primers.view import Settings

# What a tenant may not be allowed to read.
_OPTIONAL = (pods.NODE, pods.PRIORITY_CLASS, pods.RESOURCE_QUOTA, POD_TEMPLATE)


async def read_snapshot(cluster: Cluster, args: argparse.Namespace) -> Primers:
    """Return the controller with its stores filled as far as the user may read; it decides, and writes nothing."""
    discovery = await cluster.discovered()
    buffers = served_kind(discovery) if discovery is not None else None
    settings = Settings(zone=args.zone, hold_image="any", annotated_cron_jobs=True)
    known = Primers(settings, buffer_kind=buffers or capacity_buffer())
    known.state.buffers.buffers.is_served = buffers is not None
    for informer in known.informers:
        kind = informer.spec.kind
        try:
            place = args.namespace if kind.namespaced else ""
            if kind == PRIMER:  # a preview works without an installed operator
                items = await cluster.listed_if_known(kind, place)
            elif not informer.store.is_served:
                continue
            else:
                items = await cluster.listed(kind, place, informer.spec.labels)
        except CommandError:
            if kind not in _OPTIONAL and not informer.spec.optional:
                raise
            continue
        fill(informer, items)
    return known


def fill(informer: Informer, raws: list[msgspec.Raw]) -> None:
    """Put objects into a store as an informer would."""
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(informer.spec.wire)
    for raw in raws:
        try:
            wire = decoder.decode(raw)
            row = informer.spec.row(wire)
        except (msgspec.DecodeError, ValueError):
            continue
        key = Key(getattr(wire.metadata, "namespace", ""), wire.metadata.name)
        informer.store.put(key, row)
        change = Change(key, None, row, initial=True)
        tuple(informer.learn(change))
        tuple(informer.keys(change))
