"""Deletes ConfigMaps at the instant that their annotation names: python examples/expiring.py [KUBECONFIG]."""

import asyncio
import sys
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct, field

from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.controller import Informer
from foresail.kube.execute import Executor
from foresail.kube.loop import Loop
from foresail.kube.reflector import WatchSpec
from foresail.kube.store import Store
from foresail.plan import Delete, Key, Kind, Plan

CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")


class Annotations(Struct, frozen=True):  # noqa: D101
    expires: Annotated[datetime, Meta(tz=True)] | None = field(default=None, name="examples.foresail.dev/expires")


class Metadata(Struct, frozen=True):  # noqa: D101
    uid: str
    annotations: Annotations = Annotations()


class ConfigMap(Struct, frozen=True):  # noqa: D101 - all that is decoded; what does not fit is left alone
    metadata: Metadata


class Expiring:
    """A controller: what it watches, what a decision sees, and the decision."""

    name = "expiring"

    def __init__(self) -> None:
        self.store = Store[ConfigMap]()
        spec = WatchSpec(CONFIG_MAP, ConfigMap, lambda it: it, labels="expiring", metadata_only=True)
        self.informers = (Informer(spec, self.store, lambda change: [change.key]),)

    def observe(self, key: Key, _now: datetime) -> tuple[Key, ConfigMap] | None:  # noqa: D102 - reads from the stores alone
        return (key, it) if (it := self.store.get(key)) else None

    def decide(self, seen: tuple[Key, ConfigMap], now: datetime) -> Plan:  # noqa: D102 - pure: observed and time
        (key, it), at = seen, seen[1].metadata.annotations.expires
        return Plan(wake_at=at) if at is None or at > now else Plan((Delete(CONFIG_MAP, key, it.metadata.uid),))


async def main() -> None:  # noqa: D103
    async with Client(await connect(next(iter(sys.argv[1:]), None))) as client:
        await Loop(client, Expiring(), Executor(client), now).run()


asyncio.run(main())
