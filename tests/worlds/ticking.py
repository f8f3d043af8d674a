"""A controller of instants: every Ticker has a slot each so many seconds, and each slot gets one Tick of that name."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from foresail.kube.controller import Informer
from foresail.kube.reflector import WatchSpec
from foresail.kube.store import Store
from foresail.plan import Create, Key, Kind, Patch, Plan

TICKER = Kind("worlds.foresail.dev", "v1", "tickers", "Ticker")
TICK = Kind("worlds.foresail.dev", "v1", "ticks", "Tick")


class Metadata(msgspec.Struct, frozen=True):
    uid: str
    version: str = msgspec.field(name="resourceVersion")


class Spec(msgspec.Struct, frozen=True):
    first: datetime
    every: float


class Status(msgspec.Struct, frozen=True):
    next: datetime | None = None


class Ticker(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: Spec
    status: Status = Status()


class Ticking:
    """Makes the Tick of each slot at its instant, or as soon after it as there is somebody to make it."""

    name = "ticking"

    def __init__(self) -> None:
        self.tickers = Store[Ticker]()
        self.looks: list[datetime] = []

    @property
    def informers(self) -> Sequence[Informer]:
        return (Informer(WatchSpec(TICKER, Ticker, lambda row: row), self.tickers, lambda change: [change.key]),)

    def observe(self, key: Key, _now: datetime) -> tuple[Key, Ticker] | None:
        ticker = self.tickers.get(key)
        return None if ticker is None else (key, ticker)

    def decide(self, seen: tuple[Key, Ticker], now: datetime) -> Plan:
        self.looks.append(now)
        key, ticker = seen
        slot = ticker.status.next or ticker.spec.first
        if now < slot:
            return Plan(wake_at=slot)
        # What is remembered is the slot, never the clock: set back, it must not bring a slot a second time.
        following = slot + timedelta(seconds=ticker.spec.every)
        made = Key(key.namespace, f"{key.name}-{slot:%Y%m%d-%H%M%S}")
        spec = {"slot": _text(slot), "at": now.isoformat()}
        tick = Create(TICK, made, {"spec": spec}, {"worlds.foresail.dev/ticker": ticker.metadata.uid})
        status = Patch(TICKER, key, {"status": {"next": _text(following)}}, ticker.metadata.version, "status")
        return Plan((tick,), status, wake_at=following)


def ticker(first: datetime, every: timedelta) -> dict[str, object]:
    return {"spec": {"first": _text(first), "every": every.total_seconds()}}


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
